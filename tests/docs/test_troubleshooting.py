"""The lines that docs/troubleshooting.md explains are lines that the code logs."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
LOGGED = PAGE.read_text(encoding="utf-8").partition("## What a beat logs")[2]
LINES = re.findall(r"^\| `([^`]+)` \|", LOGGED, re.MULTILINE)


def texts() -> list[str]:
    """List the texts of the package: each is one expression, however many lines it is written on."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "celery_pgbeat").rglob("*.py"))
    return [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


TEXTS = texts()


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_is_explained_is_logged(line: str) -> None:
    wanted = re.compile(".*".join(re.escape(part) for part in line.split("…")), re.DOTALL)

    assert any(wanted.match(text) for text in TEXTS), line


def test_a_line_that_nobody_logs_would_be_noticed() -> None:
    assert len(LINES) > 20
    with pytest.raises(AssertionError):
        test_a_line_that_is_explained_is_logged("The beat … has gone fishing")
