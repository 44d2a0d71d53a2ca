"""Packages and programs that check the files of the examples. `tox -e examples` installs the packages."""

from __future__ import annotations

import importlib
import shutil
from typing import Any

from tests.harness.servers import missing


def checker(module: str, package: str) -> Any:
    """Import a package; skip the test without it, unless PGBEAT_TEST_REQUIRE names the package."""
    try:
        return importlib.import_module(module)
    except ImportError:
        missing(package, f"{package} is not installed: tox -e examples")


def require_program(name: str) -> None:
    """Skip the test if a program is not on PATH, unless PGBEAT_TEST_REQUIRE names it."""
    if shutil.which(name) is None:
        missing(name, f"{name} is not installed")
