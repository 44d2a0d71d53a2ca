"""The proof: compares what was due with what happened. Pure.

The due occurrences are computed from the schedules, over a window of the database's clock. The starts come from the log
of the tasks. The beats' records are used only for what was skipped, and why, and for what was sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from celery_pgbeat.schedules import Schedule, parse

Occurrence = tuple[str, datetime]  # a periodic task's name and the instant, in UTC

SHOWN_AT_MOST = 10  # lost or doubled occurrences that are named


@dataclass(frozen=True, slots=True)
class Row:
    """The times of a periodic task."""

    name: str
    schedule: str
    timezone: str
    anchor: datetime
    dst: str
    managed_by: str


@dataclass(frozen=True, slots=True)
class Record:
    """One row of `pgbeat.job`: a job and the beat that sent it, or occurrences that were skipped together."""

    periodic_task: str
    scheduled_for: datetime
    last_scheduled_for: datetime
    reason: str | None
    sent: bool
    sends: int
    beat: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """The due occurrences, and what happened to them."""

    since: datetime
    until: datetime
    due: int
    sent: int
    sent_again: int
    sent_by: Mapping[str, int]
    skipped: Mapping[str, int]
    started: int
    lost: Sequence[Occurrence]
    doubled: Sequence[Occurrence]
    stray: Sequence[Occurrence]
    left_out: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether something was due, nothing was lost or doubled, and nothing else was started."""
        return self.due > 0 and not (self.lost or self.doubled or self.stray)

    def lines(self) -> list[str]:
        """Return the proof, one line for each number, and the verdict in words."""
        skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
        again = f"; {self.sent_again} of them once again, under the same id" if self.sent_again else ""
        beats = ", ".join(f"{beat} {count}" for beat, count in sorted(self.sent_by.items()))
        shown = [
            ("due", self.due, "by the schedules' own arithmetic"),
            ("sent", self.sent, f"handed to the broker ({beats}){again}"),
            ("skipped", sum(self.skipped.values()), f"recorded with the reason: {skipped}" if skipped else ""),
            ("started", self.started, "by the log of the tasks themselves"),
            ("lost", len(self.lost), f"neither started nor skipped{_named(self.lost)}"),
            ("doubled", len(self.doubled), f"started more than once{_named(self.doubled)}"),
        ]
        if self.stray:
            shown.append(("stray", len(self.stray), f"started without being due{_named(self.stray)}"))
        lines = [f"  {f'{word} {count}':<13} {meaning}".rstrip() for word, count, meaning in shown]
        if self.left_out:
            lines.append(f"  Not counted, because they were changed meanwhile: {', '.join(self.left_out)}")
        return [*lines, "", self.verdict]

    @property
    def verdict(self) -> str:
        """Whether the proof holds, in words."""
        if self.holds:
            return (
                f"Passed: each of the {self.due} ticks that were due was started once or skipped with a reason. "
                "None was lost, none was started twice."
            )
        if not self.due:
            return "Failed: nothing was due, so nothing is proven."
        wrong = {"lost": self.lost, "started twice": self.doubled, "started without being due": self.stray}
        counted = ", ".join(f"{len(found)} {what}" for what, found in wrong.items() if found)
        return f"Failed: of the {self.due} ticks that were due, or besides them: {counted}."

    def as_dict(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"holds": self.holds, **values, **{name: len(values[name]) for name in ("lost", "doubled", "stray")}}


def due_between(rows: Iterable[Row], since: datetime, until: datetime) -> set[Occurrence]:
    """Return the occurrences of the schedules in (since, until]."""
    return {(row.name, instant) for row in rows for instant in schedule_of(row).occurrences(since, until)}


def count(
    due: set[Occurrence],
    records: Iterable[Record],
    starts: Iterable[Occurrence],
    window: tuple[datetime, datetime],
    left_out: Sequence[str] = (),
) -> Proof:
    """Compare what happened with what was due."""
    started = Counter(starts)
    recorded = _by_occurrence(due, records)
    skipped = {
        occurrence: reason
        for occurrence, found in recorded.items()
        for reason in [record.reason for record in found if record.reason][:1]
        if occurrence not in started
    }
    sent = [record for found in recorded.values() for record in found if record.sent]
    return Proof(
        since=window[0],
        until=window[1],
        due=len(due),
        sent=len(sent),
        sent_again=sum(record.sends > 1 for record in sent),
        sent_by=Counter(record.beat for record in sent),
        skipped=Counter(skipped.values()),
        started=sum(number for occurrence, number in started.items() if occurrence in due),
        lost=sorted(occurrence for occurrence in due if occurrence not in started and occurrence not in skipped),
        doubled=sorted(occurrence for occurrence, number in started.items() if number > 1),
        stray=sorted(occurrence for occurrence in started if occurrence not in due),
        left_out=left_out,
    )


def _by_occurrence(due: set[Occurrence], records: Iterable[Record]) -> dict[Occurrence, list[Record]]:
    """Group the records by occurrence; a record of a range belongs to each occurrence that was due in it."""
    found: dict[Occurrence, list[Record]] = {}
    for record in records:
        first, last = record.scheduled_for, record.last_scheduled_for
        instants = [first] if first == last else [at for name, at in due if name == record.periodic_task]
        for instant in instants:
            if first <= instant <= last and (record.periodic_task, instant) in due:
                found.setdefault((record.periodic_task, instant), []).append(record)
    return found


def schedule_of(row: Row) -> Schedule:
    """Return a row's schedule, as a beat reads it."""
    return parse(row.schedule, row.timezone, name=row.name, dst=row.dst, anchor=row.anchor)


def _named(occurrences: Sequence[Occurrence]) -> str:
    if not occurrences:
        return ""
    named = ", ".join(f"{name} {instant:%H:%M:%S.%f}" for name, instant in occurrences[:SHOWN_AT_MOST])
    more = len(occurrences) - SHOWN_AT_MOST
    return f": {named}{f' and {more} more' if more > 0 else ''}"
