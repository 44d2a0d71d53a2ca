"""Ids on the command line: of each the beginning will do."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import click

from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.cli.command_line.target import Target

DIGITS = 32  # hexadecimal ones, of a whole id
SHORT = 8  # characters of an id that a table on a terminal shows
SHOWN = 5  # ids that an error names


class IdBeginning(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no argument there
    """The beginning of an id: hexadecimal digits, with or without the dashes."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return its digits."""
        digits = str(value).replace("-", "").lower()
        if not re.fullmatch(f"[0-9a-f]{{1,{DIGITS}}}", digits):
            self.fail(f"{value!r} is not an id, nor the beginning of one", param, ctx)
        return digits


def row_of_job(digits: str) -> dict[str, Any]:
    """Return the row of the job whose id begins so.

    Raises:
        Failure: there is no such job, or there are several.
    """
    rows = Target.current().operators().jobs_between(digits.ljust(DIGITS, "0"), digits.ljust(DIGITS, "f"), SHOWN + 1)
    if not rows:
        ends = "" if len(digits) == DIGITS else "…"
        raise Failure(f"There is no job {digits}{ends}; jobs are kept for pgbeat_retention")
    if len(rows) > 1:
        ids = sorted(str(row["id"]) for row in rows)
        more = ", …" if len(ids) > SHOWN else ""
        raise Failure(f"The ids of several jobs begin with {digits}: {', '.join(ids[:SHOWN])}{more}")
    return rows[0]


def id_of_job(digits: str) -> UUID:
    """Return the id of the job whose id begins so; a whole one as it is, whether there is such a job or not.

    Raises:
        Failure: there is no such job, or there are several.
    """
    found: UUID = UUID(digits) if len(digits) == DIGITS else row_of_job(digits)["id"]
    return found
