"""Tables that fit the terminal, and are uncut in a pipe.

In a pipe a table has all its columns, at their full width, and one line for each row. On a terminal no line is longer
than the terminal is wide:

1. Columns that are empty in all rows are left out, but for the most important ones.
2. Texts that may be long, such as an error, move to lines of their own beneath the row.
3. Columns are left out, the least important first, until the rest fits; what may be cut is cut.
4. A name is never cut: a long one has a line of its own, above the rest of its row.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

import click

GAP = "  "
NARROWEST = 40  # characters; a terminal that says it has fewer is not believed
FOR_A_NAME = 0.375  # of the terminal's width: a longer name has a line of its own
EXTRA = 3  # a column of this rank or higher is shown only where no other has to be cut for it
INDENT = "    "  # before the lines beneath a row
MOST_BENEATH = 5  # lines of one text beneath a row
EMPTY = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        heading: what stands above it.
        key: the key of --json that has its value.
        cell: what it shows of a row; EMPTY for nothing.
        short: what it shows of a row on a terminal, where that is shorter.
        rank: 0 is always shown; of the others the highest is left out first.
        least: it may be cut to this number of characters; None for never.
        whole: it is a name: never cut; a long one has a line of its own.
        beneath: it is a text that may be long, which moves to lines of its own.
        colours: of its cells, by their first word.
    """

    heading: str
    key: str
    cell: Callable[[Any], str]
    short: Callable[[Any], str] | None = None
    rank: int = 0
    least: int | None = None
    whole: bool = False
    beneath: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)


class Line(NamedTuple):
    """A line, without and with its colours."""

    plain: str
    styled: str


class Table(NamedTuple):
    """A table that is laid out: its heading, and the lines of each row."""

    heading: Line
    rows: list[list[Line]]


def print_table(columns: Sequence[Column], rows: Sequence[Any]) -> None:
    """Print a table to stdout."""
    table = lay_out(columns, rows, terminal_width())
    click.echo(table.heading.styled)
    for lines in table.rows:
        for line in lines:
            click.echo(line.styled)


def terminal_width(stream: IO[Any] | None = None) -> int | None:
    """Return how wide the terminal is (COLUMNS, if that is set); None if the stream, or stdout, is not a terminal."""
    if not (stream or sys.stdout).isatty():
        return None
    return max(shutil.get_terminal_size().columns, NARROWEST)


def lay_out(columns: Sequence[Column], rows: Sequence[Any], width: int | None) -> Table:
    """Lay a table out for a terminal of this width; None for a pipe."""
    cells = {
        column.heading: [(column.short or column.cell if width else column.cell)(row) for row in rows]
        for column in columns
    }
    if width is None:
        return _written(columns, _widest(columns, cells), [], cells, None)
    shown = [column for column in columns if not _is_noise(column, cells[column.heading])]
    widest = _widest(shown, cells)
    if _total(widest.values()) <= width:
        return _written(shown, widest, [], cells, width)
    beneath = [column for column in shown if column.beneath]
    inline = [column for column in shown if not column.beneath]
    least = {column.heading: _least(column, cells[column.heading], width) for column in inline}
    uncut = {
        column.heading: (least if column.whole or column.rank >= EXTRA else widest)[column.heading] for column in inline
    }
    _leave_out(inline, uncut, width, EXTRA)
    _leave_out(inline, least, width, 1)
    least = {column.heading: least[column.heading] for column in inline}
    spare = width - _total(least.values())
    for column in sorted(inline, key=lambda column: column.whole):  # a name is never cut, so it comes last
        room = least[column.heading] + max(spare, 0)
        grown = _fitting(column, cells[column.heading], room) if column.whole else min(room, widest[column.heading])
        spare -= grown - least[column.heading]
        least[column.heading] = grown
    return _written(inline, least, beneath, cells, width)


def wrapped(text: str, width: int, most: int | None = None) -> list[str]:
    """Return a text as lines of at most this width."""
    lines = textwrap.wrap(text, width, max_lines=most, placeholder=" …", break_on_hyphens=False) or [""]
    if all(columns_of(line) <= width for line in lines):
        return lines
    return [cut(line, width) for line in textwrap.wrap(text, width // 2, max_lines=most, placeholder=" …")]


def cut(text: str, width: int) -> str:
    """Return a text that takes at most this number of columns of a terminal."""
    if columns_of(text) <= width:
        return text
    kept, used = "", 1
    for letter in text:
        used += columns_of(letter)
        if used > width:
            break
        kept += letter
    return f"{kept}…"


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: letters of East Asia take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _is_noise(column: Column, cells: Sequence[str]) -> bool:
    return bool(column.rank or column.beneath) and all(cell == EMPTY for cell in cells)


def _widest(columns: Sequence[Column], cells: Mapping[str, Sequence[str]]) -> dict[str, int]:
    return {
        column.heading: max(map(columns_of, (column.heading, *cells[column.heading])), default=0) for column in columns
    }


def _leave_out(columns: list[Column], widths: Mapping[str, int], width: int, from_rank: int) -> None:
    """Remove columns of this rank and higher, the highest first, until the rest fits."""
    while _total(widths[column.heading] for column in columns) > width:
        last = max(columns, key=lambda column: column.rank)
        if last.rank < from_rank:
            return
        columns.remove(last)


def _least(column: Column, cells: Sequence[str], width: int) -> int:
    if column.whole:
        return _fitting(column, cells, int(width * FOR_A_NAME))
    widest = max(map(columns_of, (column.heading, *cells)))
    return widest if column.least is None else min(widest, max(len(column.heading), column.least))


def _fitting(column: Column, cells: Sequence[str], room: int) -> int:
    """Return the width of the longest name that fits into this room; longer ones get a line of their own."""
    return max(
        width for width in (len(column.heading), *map(columns_of, cells)) if width <= max(room, len(column.heading))
    )


def _total(widths: Iterable[int]) -> int:
    every = list(widths)
    return sum(every) + len(GAP) * (len(every) - 1)


def _written(
    inline: Sequence[Column],
    widths: Mapping[str, int],
    beneath: Sequence[Column],
    cells: Mapping[str, Sequence[str]],
    width: int | None,
) -> Table:
    heading = _line([(column.heading, widths[column.heading], {"bold": True}) for column in inline], width)
    rows = []
    for number in range(max((len(column) for column in cells.values()), default=0)):
        lines = _row(inline, widths, {heading: column[number] for heading, column in cells.items()}, width)
        for column in beneath:
            if width and (text := cells[column.heading][number]) not in ("", EMPTY):
                for piece in wrapped(text, width - len(INDENT), MOST_BENEATH):
                    lines.append(Line(INDENT + piece, INDENT + piece))
        rows.append(lines)
    return Table(heading, rows)


def _row(
    inline: Sequence[Column], widths: Mapping[str, int], cells: Mapping[str, str], width: int | None
) -> list[Line]:
    """Return the line of a row; two if its name is too long."""
    pieces = []
    before = 0  # how many cells stand in the line of the name
    for at, column in enumerate(inline):
        text, room = cells[column.heading], widths[column.heading]
        if column.whole and columns_of(text) > room:
            before = at + 1
        elif width is not None:
            text = cut(text, room)
        colour = column.colours.get(text.partition(" ")[0].rstrip(","))
        pieces.append((text, room, {"fg": colour} if colour else {}))
    if not before or before == len(pieces):
        return [_line(pieces, width)]
    blank: list[tuple[str, int, dict[str, Any]]] = [("", room, {}) for _, room, _ in pieces[:before]]
    return [_line(pieces[:before], width), _line([*blank, *pieces[before:]], width)]


def _line(pieces: Sequence[tuple[str, int, Mapping[str, Any]]], width: int | None) -> Line:
    plain, styled = "", ""
    for at, (text, room, style) in enumerate(pieces):
        padding = "" if at == len(pieces) - 1 else " " * (room - columns_of(text)) + GAP
        plain += text + padding
        styled += (click.style(text, **style) if style else text) + padding
    if width is not None and columns_of(plain) > width:
        return Line(cut(plain, width), cut(plain, width))
    return Line(plain.rstrip(), styled.rstrip())
