"""Says in which way two outcomes differ, in words that are the same in each situation."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from tests.pairs.stage import State

KEYS = {
    "open_work": "job",
    "active_job": "id",
    "finished_job": "id",
    "periodic_task": "name",
    "periodic_task_state": "name",
    "task_group": "name",
    "group_failure": "job",
    "group_with_room": "name",
    "backfill": "id",
}
NAMED = ("state", "reason", "origin")

Row = dict[str, Any]


def differing(expected: tuple[State, tuple[str, str]], seen: tuple[State, tuple[str, str]]) -> tuple[str, ...]:
    """Return what is there and should not be (+), what is not and should be (-), and what is written otherwise."""
    wanted, found = _rows(expected[0]), _rows(seen[0])
    lines: list[str] = []
    for key in sorted(wanted.keys() | found.keys()):
        old, new = wanted.get(key, []), found.get(key, [])
        missing, extra = [row for row in old if row not in new], [row for row in new if row not in old]
        if len(missing) == len(extra) == 1:
            lines += _changed(key[0], missing[0], extra[0])
        else:
            lines += [f"- {_described(key[0], row)}" for row in missing]
            lines += [f"+ {_described(key[0], row)}" for row in extra]
    for which, old_answer, new_answer in zip(("first", "second"), expected[1], seen[1], strict=True):
        if old_answer != new_answer:
            lines.append(f"answer of the {which}: {old_answer} -> {new_answer}")
    return tuple(lines)


@lru_cache(maxsize=10_000)
def row_of(line: str) -> tuple[str, str]:
    """Return of which row a line of an outcome is: its table and its key."""
    table, row = _read(line)
    return table, str(row.get(KEYS[table]))


def _read(line: str) -> tuple[str, Row]:
    table, _, text = line.partition(" ")
    return table, json.loads(text)


def _rows(state: State) -> dict[tuple[str, str], list[Row]]:
    rows: dict[tuple[str, str], list[Row]] = {}
    for line in state:
        rows.setdefault(row_of(line), []).append(_read(line)[1])
    return rows


def _changed(table: str, old: Row, new: Row) -> list[str]:
    columns = sorted(column for column in old.keys() | new.keys() if old.get(column) != new.get(column))
    return [f"{table}.{column}: {old.get(column)} -> {new.get(column)}" for column in columns]


def _described(table: str, row: Row) -> str:
    return " ".join([table, *(str(row[column]) for column in NAMED if row.get(column) is not None)])
