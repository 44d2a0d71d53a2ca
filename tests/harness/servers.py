"""What the tests' own servers are started with, and what becomes of a test whose server is missing."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

POSTGRES_OPTIONS = {"max_connections": "300"}


def missing(kind: str, reason: str) -> NoReturn:
    """Skip the test; fail it if PGBEAT_TEST_REQUIRE names this kind of server."""
    if kind in os.environ.get("PGBEAT_TEST_REQUIRE", "").replace(" ", "").split(","):
        pytest.fail(f"PGBEAT_TEST_REQUIRE names {kind}: {reason}", pytrace=False)
    pytest.skip(reason)
