"""The table of contents names every page, and links to headings have targets. (`tox -e docs` builds the site.)"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import EXAMPLES, PAGES, ROOT, name_of

CONTENTS = ROOT / "docs" / "index.md"
CHANGELOG = ROOT / "CHANGELOG.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return what a link to a part of the page may name: its headings as GitHub and the site name them, and its ids."""
    text = prose(page)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)]
    again = {f"{slug}-{count}" for slug in slugs for count in range(1, slugs.count(slug))}
    return {*slugs, *again, *ANCHOR.findall(text)}


def broken(page: Path) -> list[str]:
    """List the relative links of a page whose file, or whose part of the file, does not exist."""
    found = []
    for link in LINK.findall(prose(page)):
        path, _, part = unquote(link).partition("#")
        target = page.parent / path if path else page
        if not link.startswith(("http://", "https://")) and (
            not target.exists() or (part and part not in anchors(target))
        ):
            found.append(link)
    return found


def test_the_table_of_contents_names_each_page_once() -> None:
    listed = [
        (CONTENTS.parent / link).resolve() for link in re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", prose(CONTENTS), re.M)
    ]

    assert sorted([*PAGES, *EXAMPLES, CHANGELOG]) == sorted([*listed, CONTENTS])


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES, CHANGELOG], ids=name_of)
def test_every_relative_link_has_a_file_and_a_heading(page: Path) -> None:
    assert [] == broken(page)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `thing`\n\n[a](#one-thing) [b](page.md#two) [c](gone.md)\n\n```\n[d](e.md)\n```\n")

    assert ["page.md#two", "gone.md"] == broken(page)
