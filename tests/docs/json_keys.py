"""The keys of what each command prints with `--json`, as tables for docs/shell.md, from the shapes that tests check."""

from __future__ import annotations

from typing import Any

from tests.harness.cli_shapes import (
    BACKFILL,
    CHANGES,
    CHECK,
    GROUP,
    JOB,
    NUMBER,
    PERIODIC_TASK,
    SHAPES,
    WITH_WORDS,
    each,
    instant,
    maybe,
    uuid,
)

SHARED = {
    "periodic task": PERIODIC_TASK,
    "job": JOB,
    "backfill": BACKFILL,
    "group": GROUP,
    "check": CHECK,
}
WORDS = {str: "text", int: "whole number", bool: "true or false", list: "list", dict: "object"}


def rendered() -> str:
    """Return the section of the page."""
    shared = "".join(f"\n### A {word}\n\n{_table(shape)}" for word, shape in SHARED.items())
    shapes = {**SHAPES, **WITH_WORDS}
    commands = "".join(f"| `{name}` | {_of_command(shapes[name])} |\n" for name in sorted(shapes))
    return f"\n## Keys of the JSON\n\n| command | prints |\n|---|---|\n{commands}{shared}"


def _of_command(shape: Any) -> str:
    """Return what a command prints in one cell of a table."""
    if isinstance(shape, list):
        return f"a list, for each: {_of_command(shape[0])}"
    for word, known in SHARED.items():
        if all(shape.get(key) == of_key for key, of_key in known.items()):
            rest = {key: of_key for key, of_key in shape.items() if key not in known}
            return f"a {word}{f', and {_keys(rest)}' if rest else ''}"
    return _keys(shape)


def _table(shape: dict[str, Any]) -> str:
    return "| key | value |\n|---|---|\n" + "".join(
        f"| `{key}` | {_words(of_key)} |\n" for key, of_key in shape.items()
    )


def _keys(shape: dict[str, Any]) -> str:
    return ", ".join(f"`{key}` ({_words(of_key)})" for key, of_key in shape.items())


def _words(shape: Any) -> str:
    """Return the kind of a value in words."""
    if isinstance(shape, maybe):
        return f"{_words(shape.shape)} or null"
    for word, known in SHARED.items():
        if shape is known:
            return word
    if shape is CHANGES:
        return "object: for each column an object with `from` and `to`"
    if isinstance(shape, each):
        return f"object: {_words(shape.shape)} for each key"
    if isinstance(shape, list):
        return f"list: {_words(shape[0])} each"
    if isinstance(shape, dict):
        return f"object: {_keys(shape)}"
    return {instant: "instant", uuid: "id", NUMBER: "number"}.get(shape) or WORDS[shape]
