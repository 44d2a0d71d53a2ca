"""The assertions of the kit about what was sent and skipped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from celery_pgbeat.api import Job, PeriodicTask, PgBeat
from celery_pgbeat.declare import KNOWN_OPTIONS
from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.testing.failure import differ, facts
from celery_pgbeat.testing.instants import at as instant_of
from celery_pgbeat.testing.recorder import Refused, Sent
from celery_pgbeat.texts.suggestions import did_you_mean

FIELDS = ("task", "args", "kwargs", "queue", "origin", "run", "id")


class Assertions(ABC):
    """The assertions; `PgBeatTest` has what was sent, skipped and refused so far."""

    beat: PgBeat

    @property
    @abstractmethod
    def now(self) -> datetime:
        """What the clock shows, in UTC."""

    @property
    @abstractmethod
    def sent(self) -> Sequence[Sent]:
        """All messages sent so far, in their order."""

    @property
    @abstractmethod
    def refused(self) -> Sequence[Refused]:
        """All that could not be sent, and why."""

    @property
    @abstractmethod
    def skipped(self) -> Sequence[Job]:
        """What was recorded as skipped, with the reason; the oldest first."""

    def assert_sent(
        self,
        name: str,
        *,
        at: Sequence[datetime | str] | None = None,
        scheduled_for: Sequence[datetime | str] | None = None,
        times: int | None = None,
        **values: Any,
    ) -> list[Sent]:
        """Assert that a row was sent, at least once; return the messages.

        Args:
            name: of the row.
            at: at exactly these instants, whenever they were due; see `celery_pgbeat.testing.at`.
            scheduled_for: for exactly these occurrences, whenever they were sent.
            times: exactly this number of times.
            **values: count only what was sent with these: `task`, `args`, `kwargs`, `queue`, `origin`, or any option.

        Raises:
            AssertionError: that is not the case; shows what is known of the row.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            TypeError: no message has such a value; suggests a near name.

        Example:
            >>> kit.assert_sent("nightly", times=1, queue="reports")
            Traceback (most recent call last):
                ...
            AssertionError: 'nightly' was sent 0 times with queue='reports', not once
            ...
        """
        __tracebackhide__ = True
        self._refuse_unknown(values)
        row = self._row(name)
        found = [one for one in self.sent if one.periodic_task == name and _has(one, values)]
        such = f" with {', '.join(f'{key}={value!r}' for key, value in values.items())}" if values else ""
        if times is not None and times != len(found):
            self._fail([f"{name!r} was sent {_often(len(found))}{such}, not {_often(times)}"], name, row)
        if not found and times is None and not at and not scheduled_for:
            self._fail([f"{name!r} was not sent{such}"], name, row)
        self._compare(f"{name!r} was sent at other instants{such}", at, [one.sent_at for one in found], name, row)
        occurrences = [one.scheduled_for for one in found]
        self._compare(f"{name!r} was sent for other occurrences{such}", scheduled_for, occurrences, name, row)
        return found

    def assert_not_sent(self, name: str, **values: Any) -> None:
        """Assert that a row was never sent.

        Args:
            name: of the row.
            **values: count only what was sent with these, as for `assert_sent`.

        Raises:
            AssertionError: it was sent; shows when.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            TypeError: no message has such a value; suggests a near name.

        Example:
            >>> kit.assert_not_sent("nightly", queue="reports")
        """
        __tracebackhide__ = True
        self.assert_sent(name, times=0, **values)

    def assert_skipped(
        self, name: str, *, reason: str | None = None, scheduled_for: Sequence[datetime | str] | None = None
    ) -> list[Job]:
        """Assert that occurrences of a row were skipped, at least one; return their records.

        Args:
            name: of the row.
            reason: count only those with this reason: `overlap`, `too_late`, `blackout`, `min_gap`, `not_allowed`, …
            scheduled_for: exactly these; of several that were recorded together the first.

        Raises:
            AssertionError: that is not the case; shows what is known of the row.
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> kit.clock.advance("3d")
            >>> kit.tick()[0].origin
            'catchup'
            >>> [job.occurrences for job in kit.assert_skipped("nightly", reason="too_late")]
            [2]
        """
        __tracebackhide__ = True
        row = self._row(name)
        found = [job for job in self.skipped if job.periodic_task == name and reason in (None, job.reason)]
        such = "" if reason is None else f" for {reason!r}"
        if not found and not scheduled_for:
            self._fail([f"{name!r} was not skipped{such}"], name, row)
        occurrences = [job.scheduled_for for job in found]
        self._compare(f"{name!r} was skipped for other occurrences{such}", scheduled_for, occurrences, name, row)
        return found

    def _row(self, name: str) -> PeriodicTask | None:
        """Return the row; None if it is gone. A name that never existed raises: it may be a typo."""
        try:
            return self.beat.get(name)
        except UnknownPeriodicTask:
            if name not in {one.periodic_task for one in self.sent} | {job.periodic_task for job in self.skipped}:
                raise
            return None

    def _refuse_unknown(self, values: Iterable[str]) -> None:
        __tracebackhide__ = True
        known = {*FIELDS, *KNOWN_OPTIONS, "priority", *(option for one in self.sent for option in one.options)}
        for key in values:
            if key not in known:
                raise TypeError(f"no message has {key!r}{did_you_mean(key, sorted(known))}")

    def _compare(
        self,
        what: str,
        wanted: Sequence[datetime | str] | None,
        got: Sequence[datetime],
        name: str,
        row: PeriodicTask | None,
    ) -> None:
        __tracebackhide__ = True
        if wanted is None:
            return
        lines = differ([instant_of(when) for when in wanted], got, row.timezone if row else None)
        if lines:
            self._fail([what, *lines], name, row)

    def _fail(self, lines: Sequence[str], name: str, row: PeriodicTask | None) -> None:
        __tracebackhide__ = True
        sent = [one for one in self.sent if one.periodic_task == name]
        skipped = [job for job in self.skipped if job.periodic_task == name]
        refused = [one for one in self.refused if one.periodic_task == name]
        raise AssertionError("\n".join([*lines, *facts(self.now, row, sent, skipped, refused)]))


def _has(one: Sent, values: dict[str, Any]) -> bool:
    return all(_value(one, key) == (list(value) if key == "args" else value) for key, value in values.items())


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _value(one: Sent, key: str) -> Any:
    return getattr(one, key) if key in FIELDS else one.options.get(key)
