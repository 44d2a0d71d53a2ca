"""Reads what another scheduler has sent: the lines of `recorder.py`, or the log of a beat at level INFO."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.moving.readers.text_files import lines_of
from celery_pgbeat.texts.safe_text import in_short

LOGGED = re.compile(
    r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}): [A-Z]+/[^]]*\].* "
    r"Scheduler: Sending due task (?P<name>.+) \([^()]*\)$"
)
AT = "%Y-%m-%d %H:%M:%S,%f"
WAY_OUT = (
    "neither a line of record_sent() nor a log of celery beat at level INFO, with Celery's own worker_log_format; "
    'other lines have to be JSON: {"name": "nightly", "sent_at": "2026-12-24T18:00:00Z"}'
)


@dataclass(slots=True)
class Sent:
    """What was sent.

    Attributes:
        instants: when each entry was sent, by its name, in order.
        since: the first instant that is known; None if there is nothing.
    """

    instants: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    since: datetime | None = None

    def add(self, name: str | None, instant: datetime) -> None:
        """Add one message; without a name only an instant from which all are known."""
        self.since = instant if self.since is None else min(self.since, instant)
        if name is not None:
            self.instants[name].append(instant)


def sent_in(paths: Iterable[str], zone: tzinfo | None) -> Sent:
    """Return what the files say was sent.

    Args:
        paths: of the files.
        zone: of the times in a log; None for that of this machine.

    Raises:
        InvalidSource: a file cannot be read, or nothing in it is understood.
    """
    found = Sent()
    for path in paths:
        try:
            with Path(path).open(encoding="utf-8", errors="replace") as file:
                read = 0
                for name, instant in _messages(path, lines_of(file, path), zone):
                    found.add(name, instant)
                    read += 1
        except OSError as error:
            raise InvalidSource(f"{path!r} cannot be read: {error.strerror}") from None
        if not read:
            raise InvalidSource(f"{path!r} has {WAY_OUT}")
    for name, instants in found.instants.items():
        found.instants[name] = sorted(set(instants))  # a recorder that was interrupted may write a line twice
    return found


def _messages(path: str, lines: Iterable[str], zone: tzinfo | None) -> Iterator[tuple[str | None, datetime]]:
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            if line.endswith("\n"):  # otherwise it is being written
                yield _recorded(path, number, line)
        elif match := LOGGED.match(line.rstrip()):
            local = datetime.strptime(match["at"], AT)  # noqa: DTZ007  a log says no offset
            yield (
                match["name"],
                (local.astimezone() if zone is None else local.replace(tzinfo=zone)).astimezone(timezone.utc),
            )


def _recorded(path: str, number: int, line: str) -> tuple[str | None, datetime]:
    try:
        said = json.loads(line)
        name = None if "recording_since" in said else said["name"]
        instant = datetime.fromisoformat(str(said[_key(name)]).replace("Z", "+00:00"))
        if instant.tzinfo is None or not isinstance(name, str | None):
            raise ValueError("no offset, or no name")
        return name, instant.astimezone(timezone.utc)
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        raise InvalidSource(f"{path!r}, line {number}: {in_short(line.strip())} is {WAY_OUT}") from None


def _key(name: str | None) -> str:
    return "recording_since" if name is None else "sent_at"
