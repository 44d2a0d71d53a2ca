"""The version, which is written in one place, and what else of the repository speaks of it."""

from __future__ import annotations

import re
from pathlib import Path

from release.failure import Failure

WRITTEN = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def of_package(root: Path) -> str:
    """Return `__version__`, without importing the package."""
    found = WRITTEN.search((root / "celery_pgbeat" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise Failure('celery_pgbeat/__init__.py has no line __version__ = "…"')
    return found.group(1)
