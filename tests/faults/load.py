"""The load of a round: rows that are due each second, and the arithmetic of when."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from tests.harness.account import Account
from tests.harness.checker import Occurrence, grid
from tests.harness.processes import START_TIMEOUT, Beat, Cluster
from tests.harness.rows import sql
from tests.harness.tap import Arrival, Tap, database_clock
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)
WORKS = "works on"  # what a beat logs when it begins to
PATIENCE = 60.0  # seconds until what has not come is lost; how late what came was is judged by itself
INBOX = "inbox"  # the queue of rows whose messages pass a tap on their way to the workers


class Load:
    """Rows `name-0001` and so on, each due at the same interval, from a moment of its own in the first second on.

    Args:
        rows: how many.
        sleep: seconds that each run takes.
        seconds: after which the rows come to their end; for ever without.
        columns: further columns, or others, as SQL expressions.
    """

    def __init__(
        self,
        cluster: Cluster,
        rows: int,
        *,
        name: str = "row",
        every: timedelta = SECOND,
        sleep: float = 0,
        seconds: float | None = None,
        **columns: str,
    ) -> None:
        self.cluster = cluster
        self.url = cluster.database
        self.every = every
        self.first = now(self.url).replace(microsecond=0) + 2 * SECOND
        self.gap = SECOND // rows
        self.ends = None if seconds is None else self.first + timedelta(seconds=seconds)
        self.names = [f"{name}-{number:04}" for number in range(1, rows + 1)]
        given = {
            "name": "name",
            "task": "'app.probe'",
            "schedule": "%(schedule)s",
            "args": "jsonb_build_array(name, %(sleep)s::float8)",
            "start_at": "%(first)s + (number - 1) * %(gap)s",
            "end_at": "%(ends)s::timestamptz",
            "overlap": "'allow'",
            **columns,
        }
        sql(
            self.url,
            f"insert into pgbeat.periodic_task ({', '.join(given)}) select {', '.join(given.values())} "
            "from unnest(%(names)s::text[]) with ordinality as wanted (name, number)",
            names=self.names,
            schedule=f"every {every.total_seconds():g}s",
            sleep=sleep,
            first=self.first,
            ends=self.ends,
            gap=self.gap,
        )

    def due(self, until: datetime) -> list[Occurrence]:
        """List what is due up to an instant."""
        until = until if self.ends is None else min(until, self.ends)
        firsts = ((name, self.first + number * self.gap) for number, name in enumerate(self.names))
        return [occurrence for name, first in firsts for occurrence in grid(name, first, self.every, until)]

    def runs_for(self, seconds: float) -> None:
        """Wait until the rows have been due for this many seconds."""
        wait_until(self.url, self.first + timedelta(seconds=seconds))

    def account(self, tap: Tap | None, until: datetime, *, started: bool = False) -> Account:
        """Account for what was due up to an instant; with workers, for the runs too."""
        names = set(self.names)
        arrivals = list(tap.arrivals) if tap else []
        return Account(
            due=self.due(until),
            sent=[arrival for arrival in arrivals if arrival.periodic_task in names],
            started=[run for run in self.cluster.probe.runs() if run.periodic_task in names] if started else None,
            recorded=[each for each in recorded(self.url, self.every, self.names) if each[1] <= until],
        )

    def settle(self, tap: Tap | None, *, started: bool = False, timeout: float = PATIENCE) -> Account:
        """Wait until all that is due by now is sent or recorded and these rows have no unsent job; return the account.

        What is not there is lost, as the account says, once nothing has come for the timeout (seconds): workers that
        the machine leaves too little time are behind, and have lost nothing. Jobs of other rows are not waited for: a
        bad row that is due each second always has one that is unsent.
        """
        until = now(self.url)
        missing = len(self.due(until)) + 1
        while missing and (left := self._wait_for_less(missing, tap, until, started, timeout)) < missing:
            missing = left
        sql(self.url, "update pgbeat.periodic_task set enabled = false where name = any (%(names)s)", names=self.names)
        with contextlib.suppress(AssertionError):
            unsent = "select 1 from pgbeat.active_job where state = 'pending' and periodic_task = any (%(names)s)"
            eventually(lambda: not sql(self.url, unsent, names=self.names), timeout, "nothing unsent", every=0.2)
        account = self.account(tap, until, started=started)
        for line in self._traces(account):
            print(line)  # pytest shows it with the failure
        return account

    def _wait_for_less(self, missing: int, tap: Tap | None, until: datetime, started: bool, timeout: float) -> int:
        """Wait until fewer occurrences are missing, or the timeout is over; return how many are."""
        counted = [missing]

        def came() -> bool:
            counted.append(len(self.account(tap, until, started=started).lost))
            return counted[-1] < missing

        with contextlib.suppress(AssertionError):
            eventually(came, timeout, "less is missing", every=0.2)
        return counted[-1]

    def _traces(self, account: Account) -> Iterator[str]:
        """Say of each lost occurrence what was seen of it, and what the product knows of it."""
        lost = account.lost
        seen = Counter((each.periodic_task, each.scheduled_for) for each in account.sent)
        started = Counter((each.periodic_task, each.scheduled_for) for each in account.started or ())
        jobs = sql(
            self.url,
            "select * from pgbeat.job where (periodic_task, scheduled_for) in "
            "(select * from unnest(%(names)s::text[], %(instants)s::timestamptz[]))",
            names=[name for name, _ in lost],
            instants=[instant for _, instant in lost],
        )
        for name, instant in lost:
            known = [job for job in jobs if (job["periodic_task"], job["scheduled_for"]) == (name, instant)]
            facts = [{column: str(value) for column, value in job.items() if value is not None} for job in known]
            yield f"lost {name} {instant}: sent {seen[name, instant]}, started {started[name, instant]}, jobs {facts}"


def now(url: str) -> datetime:
    """Read the database's clock."""
    (answer,) = sql(url, "select clock_timestamp() as now")
    found: datetime = answer["now"]
    return found


def wait_until(url: str, instant: datetime) -> None:
    """Wait for an instant of the database's clock."""
    time.sleep(max(0.0, (instant - now(url)).total_seconds()))


def paced(seconds: float, every: float) -> Iterator[int]:
    """Yield a count every `every` seconds for `seconds`: on a grid, so that a slow step does not shift the next."""
    began = time.monotonic()
    for number in range(int(seconds / every)):
        time.sleep(max(0.0, began + number * every - time.monotonic()))
        yield number


def recorded(url: str, every: timedelta, names: list[str]) -> list[Occurrence]:
    """List the occurrences that the product recorded as skipped, each of a counted range by itself."""
    skipped = sql(
        url,
        "select periodic_task, scheduled_for, coalesce(last_scheduled_for, scheduled_for) as until from pgbeat.job "
        "where state = 'skipped' and periodic_task = any (%(names)s)",
        names=names,
    )
    return [
        occurrence
        for job in skipped
        for occurrence in grid(job["periodic_task"], job["scheduled_for"], every, job["until"])
    ]


def beats(cluster: Cluster, count: int, **arguments: Any) -> list[Beat]:
    """Start this many beats at once, and wait until all of them work."""
    started = [cluster.beat(wait=False, **arguments) for _ in range(count)]
    for beat in started:
        working(beat)
    return started


def working(beat: Beat) -> None:
    """Wait until a beat works."""
    beat.wait_for_log(WORKS, START_TIMEOUT)


def tapped(cluster: Cluster, queue: str = "celery", **arguments: Any) -> Tap:
    """Make a tap at the cluster's broker that reads the database's clock."""
    return Tap(cluster.broker, queue, now=database_clock(cluster.database), **arguments)


def sent_by(tap: Tap, beat: Beat, since: datetime, until: datetime | None = None) -> list[Arrival]:
    """List the messages of one beat that came between two instants."""
    return [
        arrival
        for arrival in list(tap.arrivals)
        if arrival.pid == beat.pid and since <= arrival.seen_at and (until is None or arrival.seen_at < until)
    ]
