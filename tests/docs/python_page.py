"""The reference of docs/python.md, made from the public names, their signatures and their docstrings.

`python -m tests.docs.python_page` writes it into the page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args

import celery_pgbeat
from celery_pgbeat import api, choices, columns_of_job, errors, schedules, testing
from celery_pgbeat.columns import DECLARED, PUBLIC
from celery_pgbeat.declare.timing import Timing
from celery_pgbeat.worker.stop.current import CurrentJob
from tests.docs.docstring import cell, paragraphs, prose, read
from tests.docs.pages import ROOT, noted

PAGE = ROOT / "docs" / "python.md"
NOTE = "Made from the code by `python -m tests.docs.python_page`. `help(PgBeat)` says the same."
PART = re.compile(r"(?<=<!-- made from the code -->\n).*", re.DOTALL)
WIDTH = 100  # characters of a signature on one line

ROWS = [getattr(api, name) for name in api.__all__ if name != "PgBeat"]
ENGINE = ("parse", "Schedule", "parse_windows", "Windows")


def rendered() -> str:
    """Return the part as it has to be."""
    return "".join(
        [
            "\n## PgBeat\n\n",
            *_class(celery_pgbeat.PgBeat, "beat"),
            "\n## Schedules\n\n",
            "From `celery_pgbeat`.\n",
            *_function(celery_pgbeat.cron),
            *_function(celery_pgbeat.every),
            "\n### Timing\n\n",
            *_class(Timing, ""),
            "\n## Columns\n\n",
            *_columns(),
            "\n## Words\n\n",
            *_words(),
            "\n## Rows\n\n",
            "From `celery_pgbeat.api`. What the methods return; each is as it was when it was read.\n",
            *(line for row in ROWS for line in (f"\n### {row.__name__}\n\n", *_class(row, ""))),
            "\n## Inside a task\n\n",
            "From `celery_pgbeat`.\n",
            *_function(celery_pgbeat.current),
            "\n### CurrentJob\n\n",
            *_class(CurrentJob, "current()"),
            "\n## Errors\n\n",
            *_errors(),
            "\n## The engine of schedules\n\n",
            "From `celery_pgbeat.schedules`. Pure: no Celery, no database. See [Schedules](schedules.md).\n",
            *_module(schedules, ENGINE),
            "\n## Testing kit\n\n",
            "From `celery_pgbeat.testing`. See [Testing](testing.md).\n",
            *_module(testing, testing.__all__),
        ]
    )


def _module(module: Any, names: tuple[str, ...] | list[str]) -> Iterator[str]:
    for name in names:
        public = getattr(module, name)
        if inspect.isclass(public):
            yield f"\n### {name}\n\n"
            yield from _class(public, name if is_dataclass(public) else "kit")
        else:
            yield from _function(public)


def _class(kind: type, instance: str) -> Iterator[str]:
    """Describe a class: how it is made, unless it is what a call returns, its fields, and its own methods."""
    if "__init__" in {name for one in _ours(kind) for name in vars(one)} and not is_dataclass(kind):
        yield f"```\n{_signature(kind.__name__, kind.__init__)}\n```\n\n"  # type: ignore[misc]
    yield from _body(kind)
    if is_dataclass(kind):
        yield from _fields(kind)
    for name, member in _members(kind).items():
        if isinstance(member, property):
            yield f"\n### {instance}.{name}\n\n"
            yield from _body(member)
        elif inspect.isfunction(member):
            yield from _function(member, f"{instance}.{name}")


def _members(kind: type) -> dict[str, Any]:
    """Return what the class and its parents in this package have, under public names."""
    return {name: member for one in _ours(kind) for name, member in vars(one).items() if not name.startswith("_")}


def _ours(kind: type) -> list[type]:
    """Return the class and its parents in this package, the parents first."""
    return [one for one in reversed(kind.__mro__) if one.__module__.startswith("celery_pgbeat")]


def _function(function: Callable[..., Any], name: str = "") -> Iterator[str]:
    yield f"\n### {name or function.__name__}\n\n```\n{_signature(name or function.__name__, function)}\n```\n\n"
    yield from _body(function)


def _body(documented: object) -> Iterator[str]:
    """Describe what a docstring says, without the attributes of a dataclass, which are in its table."""
    said = read(documented)
    yield f"{paragraphs(said.text)}\n"
    for title in ("Args", "Attributes", "Raises"):
        items = said.items.get(title, {})
        if items and not (title == "Attributes" and is_dataclass(documented)):
            yield "\n" + {"Args": "", "Attributes": "Attributes:\n\n", "Raises": "Raises:\n\n"}[title]
            yield from (f"- `{name}`: {prose(text)}\n" for name, text in items.items())
    if said.example:
        yield f"\n```\n{said.example}\n```\n"


def _fields(kind: Any) -> Iterator[str]:
    said: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        said |= read(one).items.get("Attributes", {}) if is_dataclass(one) else {}
    if kind is api.PeriodicTask:
        said = {name: column.comment for name, column in PUBLIC.items()}
    if kind is api.Job:
        said = {name: column.says for name, column in columns_of_job.PUBLIC.items()}
    yield "\n| field | type | |\n|---|---|---|\n"
    for one in fields(kind):
        if not one.name.startswith("_"):
            yield f"| {one.name} | `{cell(str(one.type))}` | {cell(said.get(one.name, ''))} |\n"


def _columns() -> Iterator[str]:
    yield f"{paragraphs(read(celery_pgbeat.Columns).text)}\n\n"
    yield "| column | type | default | |\n|---|---|---|---|\n"
    for name, hint in celery_pgbeat.Columns.__annotations__.items():
        column = DECLARED[name]
        initial = "" if column.default is None else f"`{column.default!r}`"
        kind = getattr(hint, "__forward_arg__", hint)
        yield f"| {name} | `{cell(str(kind))}` | {initial} | {cell(column.comment)} |\n"


def _words() -> Iterator[str]:
    yield "From `celery_pgbeat.choices`. A type checker refuses any other text, and so does each call.\n\n"
    yield "| type | values |\n|---|---|\n"
    for name, values in vars(choices).items():
        if get_args(values):
            yield f"| {name} | {', '.join(f'`{value}`' for value in get_args(values))} |\n"


def _errors() -> Iterator[str]:
    yield "From `celery_pgbeat.errors`. Each is a `PgBeatError`. None contains a password.\n\n"
    yield "| error | is also | |\n|---|---|---|\n"
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.PgBeatError) and kind is not errors.PgBeatError:
            also = [f"`{base.__name__}`" for base in kind.__bases__ if base is not errors.PgBeatError]
            yield f"| {name} | {', '.join(also)} | {cell(read(kind).text)} |\n"
    yield "\n`InvalidSchedule` has attributes:\n\n"
    attributes = read(errors.InvalidSchedule).items["Attributes"]
    yield from (f"- `{name}`: {prose(text)}\n" for name, text in attributes.items())


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    arguments = list(_arguments(signature))
    returned = "" if signature.return_annotation in ("None", inspect.Parameter.empty) else signature.return_annotation
    arrow = f" -> {returned}" if returned else ""
    line = f"{name}({', '.join(arguments)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return "\n    ".join([f"{name}(", *(f"{one}," for one in arguments)]) + f"\n){arrow}"


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
            starred = True
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        initial = "" if one.default is one.empty else f" = {one.default!r}"
        yield f"{stars}{one.name}: {one.annotation}{initial}"


if __name__ == "__main__":
    PAGE.write_text(noted(PART.sub(lambda _: rendered(), PAGE.read_text(encoding="utf-8")), NOTE), encoding="utf-8")
