"""Tables that fit the terminal, and are uncut in a pipe.

In a pipe a table has all its columns, at their full width, and one line for each row. On a terminal no line is longer
than the terminal is wide:

1. Columns that are empty in all rows are left out, but for the most important ones.
2. Texts that may be long, such as an error, move to lines of their own beneath the row.
3. Columns are left out, the least important first, until the rest fits; what may be cut is cut.
4. A name is never cut: a long one has a line of its own, above the rest of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from celery_pgbeat.cli.output.terminal import EMPTY, GAP, columns_of, cut, terminal_width, wrapped
from celery_pgbeat.cli.output.values import text

FOR_A_NAME = 0.375  # of the terminal's width: a longer name has a line of its own
EXTRA = 3  # a column of this rank or higher is shown only where no other has to be cut for it
INDENT = "    "  # before the lines beneath a row
MOST_BENEATH = 5  # lines of one text beneath a row


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        heading: what stands above it.
        key: the key of --json that has its value.
        cell: what it shows of a row, EMPTY for nothing; by default the row's value of that key.
        short: what it shows of a row on a terminal, where that is shorter.
        rank: 0 is always shown; of the others the highest is left out first.
        least: it may be cut to this number of characters; None for never.
        whole: it is a name: never cut; a long one has a line of its own.
        beneath: it is a text that may be long, which moves to lines of its own.
        colours: of its cells, by their first word.
    """

    heading: str
    key: str
    cell: Callable[[Any], str] | None = None
    short: Callable[[Any], str] | None = None
    rank: int = 0
    least: int | None = None
    whole: bool = False
    beneath: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)

    def of(self, row: Any, *, in_short: bool) -> str:
        """Return what it shows of a row."""
        cell = (self.short if in_short else None) or self.cell
        if cell is not None:
            return cell(row)
        return text(row[self.key] if isinstance(row, Mapping) else getattr(row, self.key))


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


def lay_out(columns: Sequence[Column], rows: Sequence[Any], width: int | None) -> Table:
    """Lay a table out for a terminal of this width; None for a pipe."""
    cells = {column.heading: [column.of(row, in_short=width is not None) for row in rows] for column in columns}
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
            if width and (cell := cells[column.heading][number]) not in ("", EMPTY):
                for piece in wrapped(cell, width - len(INDENT), MOST_BENEATH):
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
        cell, room = cells[column.heading], widths[column.heading]
        if column.whole and columns_of(cell) > room:
            before = at + 1
        elif width is not None:
            cell = cut(cell, room)
        colour = column.colours.get(cell.partition(" ")[0].rstrip(","))
        pieces.append((cell, room, {"fg": colour} if colour else {}))
    if not before or before == len(pieces):
        return [_line(pieces, width)]
    blank: list[tuple[str, int, dict[str, Any]]] = [("", room, {}) for _, room, _ in pieces[:before]]
    return [_line(pieces[:before], width), _line([*blank, *pieces[before:]], width)]


def _line(pieces: Sequence[tuple[str, int, Mapping[str, Any]]], width: int | None) -> Line:
    plain, styled = "", ""
    for at, (cell, room, style) in enumerate(pieces):
        padding = "" if at == len(pieces) - 1 else " " * (room - columns_of(cell)) + GAP
        plain += cell + padding
        styled += (click.style(cell, **style) if style else cell) + padding
    if width is not None and columns_of(plain) > width:
        return Line(cut(plain, width), cut(plain, width))
    return Line(plain.rstrip(), styled.rstrip())
