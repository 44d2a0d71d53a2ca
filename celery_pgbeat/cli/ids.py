"""Ids on the command line: of each the beginning will do."""

from __future__ import annotations

import re
from typing import Any

import click

DIGITS = 32  # hexadecimal ones, of a whole id
SHORT = 8  # characters of an id that a table on a terminal shows


class IdBeginning(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no argument there
    """The beginning of an id: hexadecimal digits, with or without the dashes."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return its digits."""
        digits = str(value).replace("-", "").lower()
        if not re.fullmatch(f"[0-9a-f]{{1,{DIGITS}}}", digits):
            self.fail(f"{value!r} is not an id, nor the beginning of one", param, ctx)
        return digits
