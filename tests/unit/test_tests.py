"""The tests themselves: each promise has tests that are named after it, and folders share helpers by the harness."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("*.py"))
PROMISES = {f"P{number}" for number in range(1, 13)}
# What one folder makes and another one tries once more, and may not be moved apart from its neighbours.
SHARED = {
    "tests.docs",  # what makes the pages, for the test that adds a column
    "tests.model.mutants",  # the pairs mutate statements as the model does
}


def test_each_promise_has_tests_in_the_core_layer_that_are_named_after_it(request: pytest.FixtureRequest) -> None:
    core = [path for part in request.config.getini("testpaths") for path in (ROOT / part, *(ROOT / part).rglob("*.py"))]
    text = "".join(path.read_text(encoding="utf-8") for path in core if path.is_file())

    named = re.findall(r"^def test((?:_p\d+)+)_", text, re.MULTILINE)
    assert PROMISES == {f"P{number}" for name in named for number in re.findall(r"\d+", name)}


def test_the_promises_are_listed_where_users_and_contributors_look() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")

    assert PROMISES == set(re.findall(r"^\| (P\d+) \|", page, re.MULTILINE))
    assert PROMISES == set(re.findall(r"^(P\d+) ", str(tests.__doc__), re.MULTILINE))


def imported(path: Path) -> Iterator[str]:
    """Iterate over the modules of the tests that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests."):
            yield node.module


def test_a_folder_of_tests_imports_the_harness_and_no_other_folder() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in FILES
        for module in imported(path)
        if module.split(".")[1] not in ("harness", path.relative_to(ROOT).parts[1]) and module not in SHARED
    ]

    assert [] == wrong
