"""What a page is: a template, what it shows, and the parameters of its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlencode

LONGEST = 250  # characters of a parameter; names have up to 200
MOST_DIGITS = 18  # of a number: one fewer than the largest bigint has
LONGEST_SCHEDULE = 5_000  # characters of a schedule that is checked while it is typed


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        template: the name of its template, without the ending.
        title: what it is called.
        values: what the template shows.
        status: the status of HTTP.
        notes: what of the address was not obeyed.
    """

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    notes: Sequence[str] = ()


class Query:
    """The parameters of an address: whatever they are, they are short texts without NUL, which Postgres refuses.

    Attributes:
        notes: what of them was not obeyed, in sentences for the page.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.notes: list[str] = []

    def has(self, name: str) -> bool:
        """Return whether the address has this parameter."""
        return name in self._given

    def text(self, name: str) -> str | None:
        """Return a parameter; None if it is empty or missing."""
        return self._given.get(name, "").replace("\0", "").strip()[:LONGEST] or None

    def name(self, name: str = "name") -> str:
        """Return a parameter as it is, blanks included, because it is the name of something."""
        return self._given.get(name, "").replace("\0", "")[:LONGEST]

    def long_text(self, name: str) -> str:
        """Return a parameter that may be as long as a schedule."""
        return self._given.get(name, "").replace("\0", "")[:LONGEST_SCHEDULE]

    def number(self, name: str) -> int | None:
        """Return a parameter that is a whole number, as of a change; None if it is not, or too large for Postgres."""
        text = self._given.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None

    def choice(self, name: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str | None:
        """Return a parameter that is one of these; None if it is not, which the page says."""
        value = self.text(name)
        if value is None or value in choices:
            return value
        self.notes.append(f"{name}={value} is not known, so this page does not obey it. Known: {', '.join(choices)}.")
        return None

    def instant(self, name: str) -> datetime | None:
        """Return a parameter that is an instant; None if it is not."""
        try:
            value = datetime.fromisoformat(self._given.get(name, "").replace("Z", "+00:00"))
            return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
        except (ValueError, OverflowError):
            return None


class Address:
    """The addresses of the pages, below the path at which the dashboard is mounted."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/")

    def __call__(self, page: str = "", /, **parameters: Any) -> str:
        """Return the address of a page. Parameters that are None are left out.

        Example:
            >>> Address("/ops")("task", name="a/b & c", after=None)
            '/ops/task?name=a%2Fb+%26+c'
        """
        given = {name.rstrip("_"): value for name, value in parameters.items() if value is not None}
        return f"{self.base}/{page}{'?' if given else ''}{urlencode(given)}"
