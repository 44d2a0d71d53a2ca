"""The configuration of the documentation site: `tox -e docs` builds it, with warnings as errors.

The pages are plain Markdown that reads well in the repository, so nothing in them is written for Sphinx. The source
folder is the root of the repository, because the pages link to README.md, CHANGELOG.md and examples/. The table of
contents is docs/index.md: its headings and links become the side bar.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

import celery_pgbeat

project = "celery-pgbeat"
author = "the celery-pgbeat maintainers"
copyright = "2026, the celery-pgbeat maintainers"
version = release = celery_pgbeat.__version__

extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md", "examples/*/README.md"]
exclude_patterns = [".*", "build"]  # Sphinx walks through all other folders
root_doc = "docs/index"
nitpicky = True

myst_heading_anchors = 4  # links to headings work as they do in the repository
suppress_warnings = ["misc.highlighting_failure"]  # `{schema}` in SQL is ours
highlight_language = "none"  # a block without a language is a drawing, or what a program prints

html_theme = "furo"
html_title = f"celery-pgbeat {release}"
html_extra_path = ["site"]
html_show_sphinx = False
html_copy_source = False
html_use_index = False

CONTENTS = re.compile(r"^(?:## (?P<heading>.+)|- \[(?P<title>[^\]]+)\]\((?P<page>[^)#]+)\.md\))", re.MULTILINE)
PICTURE = re.compile(r'<picture>.*?<img alt="(?P<says>[^"]*)" src="(?P<file>[^"]*)">\s*</picture>', re.DOTALL)
ANCHOR = re.compile(r'<a id="([^"]+)">')


def add_side_bar(_: Sphinx, page: str, source: list[str]) -> None:
    """Add a hidden table of contents for each heading of docs/index.md, with the pages that it lists."""
    if page != root_doc:
        return
    parts: list[str] = []
    for found in CONTENTS.finditer(source[0]):
        if found["heading"]:
            parts.append(f"```\n\n```{{toctree}}\n:hidden:\n:caption: {found['heading']}\n")
        else:
            parts.append(f"{found['title']} </docs/{found['page']}>")
    source[0] += "\n" + "\n".join(parts).removeprefix("```\n") + "\n```\n"


def show_pictures(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Show one image for both themes: Sphinx copies the files of images, and not those that HTML names."""
    source[0] = PICTURE.sub(r"![\g<says>](\g<file>)", source[0])


def name_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Let other pages link to `<a id=…>`, by which the glossary names its words."""
    slugs = app.env.metadata[app.env.current_document.docname].setdefault("myst_slugs", {})
    for node in doctree.findall(nodes.raw):
        for anchor in ANCHOR.findall(node.astext()):
            slugs[anchor] = (node.line, anchor, "")


def setup(app: Sphinx) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("source-read", add_side_bar)
    app.connect("source-read", show_pictures)
    app.connect("doctree-read", name_anchors)
