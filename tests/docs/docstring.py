"""A docstring in Google's style, read into its parts, and the Markdown of each of them."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

SECTION = re.compile(r"^(Args|Attributes|Raises|Example):$", re.MULTILINE)
ITEM = re.compile(r"^(?=\S)([^:]+): (.*)$")
CODE = re.compile(r"(``.*?``|`[^`]*`)", re.DOTALL)


@dataclass(slots=True)
class Docstring:
    """The parts of a docstring.

    Attributes:
        text: everything before the first section and between sections, in paragraphs.
        items: of each section with items, what stands for each name.
        example: the lines of the example.
    """

    text: str = ""
    items: dict[str, dict[str, str]] = field(default_factory=dict)
    example: str = ""


def read(documented: object) -> Docstring:
    """Read the docstring of a class, a function or a property."""
    found = Docstring()
    before, *sections = SECTION.split(inspect.getdoc(documented) or "")
    found.text = before.strip()
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        indented, rest = _until_dedent(body)
        if title == "Example":
            found.example = indented
        else:
            found.items[title] = _items(indented)
        found.text = f"{found.text}\n\n{rest}".strip()
    return found


def prose(text: str) -> str:
    """Return a text as Markdown on one line: what is not code keeps its asterisks and angle brackets."""
    parts = CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else re.sub(r"([*<])", r"\\\1", part) for number, part in enumerate(parts))


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return prose(text).replace("|", r"\|")


def paragraphs(text: str) -> str:
    """Return paragraphs as Markdown; what is indented is a block as it is."""
    blocks = (part for part in text.split("\n\n") if part.strip())
    return "\n\n".join(f"```\n{inspect.cleandoc(part)}\n```" if part[0] == " " else prose(part) for part in blocks)


def _until_dedent(body: str) -> tuple[str, str]:
    """Return the indented part of a section, and what follows it."""
    lines = body.strip("\n").split("\n")
    end = next((number for number, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return inspect.cleandoc("\n".join(lines[:end])), "\n".join(lines[end:]).strip()


def _items(text: str) -> dict[str, str]:
    items: dict[str, str] = {}
    name = ""
    for line in text.split("\n"):
        begun = ITEM.match(line)
        if begun:
            name = begun.group(1)
            items[name] = begun.group(2)
        elif line.strip():
            items[name] += f" {line.strip()}"
    return items
