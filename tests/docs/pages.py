"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ABOUT = ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in ABOUT), *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
# Pages about a project in examples/, of the same name: a block that begins with a file's name is an excerpt of it.
PROJECTS = {page: project for page in PAGES if (project := ROOT / "examples" / page.stem).is_dir()}

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")  # as pages name a test
FILE = re.compile(r"# ([\w/]+\.py)\n")  # the first line of an excerpt
BELOW_TITLE = re.compile(r"\A(# .+\n\n)(?:Made from .+\n\n)?")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code: its language, its text, and the line of the page at which the text begins."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file of the page's project that the block is an excerpt of."""
        found = FILE.match(self.text)
        return found.group(1) if found else None

    @property
    def excerpt(self) -> str:
        """The text without the line that names the file."""
        return FILE.sub("", self.text, count=1)


def blocks(page: Path) -> list[Block]:
    """List the blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found.group(1), found.group(2), text.count("\n", 0, found.start(2)) + 1) for found in FENCE.finditer(text)
    ]


def noted(text: str, note: str) -> str:
    """Return the text of a page with the note about what it is made from below its title."""
    return BELOW_TITLE.sub(lambda found: f"{found[1]}{note}\n\n", text)


def written_in(path: Path) -> list[str]:
    """List the tests that are written in a file."""
    functions = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.name.startswith("test_")]


def name_of(page: Path) -> str:
    """Return a page's name for a test."""
    return str(page.relative_to(ROOT))
