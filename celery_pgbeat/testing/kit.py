"""`PgBeatTest`: an app's beat on a real Postgres, with a clock that is set and a list in place of the broker."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING

from celery import Celery

from celery_pgbeat.api import Job, PgBeat
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.wiring import Wiring
from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.listen import Wakeup
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing.assertions import Assertions
from celery_pgbeat.testing.declared import app_of, strict_code
from celery_pgbeat.testing.instants import at as instant_of
from celery_pgbeat.testing.recorder import Recorder, Refused, Sent
from celery_pgbeat.testing.stubs import FixedClock, NullBroker, StrictSteps, StubResults
from celery_pgbeat.testing.temporary_schema import Clock, TemporarySchema
from celery_pgbeat.worker.start.guard import StartResult, start_job

if TYPE_CHECKING:
    from typing_extensions import Self

BEAT, WORKER = "pgbeat-test", "pgbeat-test-worker"
MOST_INSTANTS = 10_000  # at which one `run_until` ticks: some minutes of a machine's time
MOST_CYCLES = 10_000  # at one instant; each of them handles a whole batch
MOST_JOBS = 10_000  # read at once
FOREVER = timedelta(days=36_500)  # how long a worker counts as alive unless the test lets it die
AFTER_HARD_LIMIT = timedelta(seconds=30)
ENDS = ("succeeded", "failed", "revoked")


class TestedPgBeat(PgBeat):
    """The app's Python API on the test's schema; the app's own configuration does not change."""

    def __init__(self, app: Celery, settings: Settings) -> None:
        super().__init__(url=settings.url, schema=settings.schema)
        self._app = app
        self._settings = settings


class PgBeatTest(Assertions):
    """One beat of an app, to be moved by hand.

    It makes and drops a schema of its own, and never touches the schema of the app or its broker. The rows are those
    that the app's code declares, at the instant `now`, and those that the test adds through `beat`.

    Args:
        source: the Celery app, or its PgBeat.
        url: a Postgres on which a schema may be made, `postgresql://user@host/database`; None starts a private server
            for this test alone (`pip install 'celery-pgbeat[demo]'`), which takes a second or two.
        now: what the clock shows at first, see `at`; None for the real time.
        finishing: whether each job succeeds as soon as it is sent. If not, it blocks the next ones until `finish` is
            called, or, if `start` is not called either, until it is given up.
        only: names of rows that the code declares; its other rows are paused. A clock that moves over months is slow
            with a row that runs each minute.
        schema: its name, if your own SQL contains one (`pgbeat`); it must not exist. None for a unique name.

    Attributes:
        beat: the Python API to the rows: `schedule`, `pause`, `trigger`, `jobs`, …
        clock: sets the time without a tick, as if no beat ran: for outages.

    Raises:
        InvalidPeriodicTask: a declaration in code is wrong: a beat would refuse it, log it and go on.
        LookupError: the code declares no row of a name in `only`.
        ServerUnavailable: without `url`: no Postgres is installed.
        DatabaseUnavailable: Postgres is out of reach.
        ValueError: a schema of the given name exists already.

    Example:
        >>> with PgBeatTest(app, url, now="2026-12-07T12:00Z") as kit:
        ...     sent = kit.advance("1d")
        ...     assert sent == kit.assert_sent("nightly", at=["2026-12-08T03:00Z"], queue="celery")
    """

    clock: Clock

    def __init__(
        self,
        source: Celery | PgBeat,
        url: str | None = None,
        now: datetime | str | None = None,
        *,
        finishing: bool = True,
        only: Collection[str] | None = None,
        schema: str | None = None,
    ) -> None:
        self.app = app_of(source)
        self._url = url
        self._schema = schema
        self._begin = datetime.now(timezone.utc) if now is None else instant_of(now)
        self._finishing = finishing
        self._only = only
        self._cleanup = ExitStack()
        self._sent: list[Sent] = []
        self._refused: list[Refused] = []
        self._starts: dict[uuid.UUID, Start] = {}

    def __repr__(self) -> str:
        shown = self.clock.now if hasattr(self, "clock") else self._begin
        return f"PgBeatTest({self.app.main!r}, now={shown.isoformat()!r})"

    def __enter__(self) -> Self:
        """Make the schema and the rows that the code declares."""
        with ExitStack() as cleanup:
            place = TemporarySchema(self._url or _private_server(cleanup), self._schema)
            cleanup.callback(place.database.close)
            place.make()
            cleanup.callback(place.drop)
            place.fill(self._begin)
            self._place = place
            self.clock = Clock(place, self._begin)
            self._settings = replace(
                Settings.from_mapping(self.app.conf),
                url=place.database.url,
                schema=place.database.schema,
                metrics_port=None,
                opentelemetry=False,
            )
            self._sender = Scheduler(self.app, lazy=True)
            self._recorder = Recorder(self.app, self.clock, self._sent, self._refused)
            self._wakeup = Wakeup(place.database)
            cleanup.callback(self._wakeup.close)
            self.beat = TestedPgBeat(self.app, self._settings)
            cleanup.callback(self.beat.close)
            self._reports = WorkerQueries(place.database)
            self.sync()
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop the schema."""
        self._cleanup.close()

    def sync(self) -> None:
        """Read the code again and bring the rows to it, as a beat does when it starts with new code.

        Raises:
            InvalidPeriodicTask: a declaration is wrong.
        """
        wiring = Wiring(
            self._sender,
            self._settings,
            database=self._place.database,
            clock=FixedClock(self.clock, self._settings.dead_after),
            code=strict_code(self.app, self._settings, self._place.database),
            results=StubResults(self.app),
            wakeup=self._wakeup,
            broker=NullBroker(self._sender),
        )
        wiring.code.sync()
        if self._only is not None:
            self._pause_others(wiring.code.names, self._only)
        queries = BeatQueries(self._place.database, BEAT, self._settings.lease)
        # Looks in each cycle: real time decides nothing here.
        steps = StrictSteps(self._place.database)
        beat = wiring.open(queries, observer=self._recorder, steps=steps, inline=True, look_every=0.0)
        beat.tracking.workers_track = True
        self._dispatcher = beat.dispatcher

    # Time.

    @property
    def now(self) -> datetime:
        """What the clock shows, in UTC."""
        return self.clock.now

    def tick(self) -> list[Sent]:
        """Do all that a beat does at this instant; return what was sent.

        The dispatcher's own cycles: mark, plan, submit, publish (into the list), confirm; and recover, promote, judge.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
            RuntimeError: the beat does not come to rest at this instant.

        Example:
            >>> kit.clock.set("2026-12-08T03:00Z")
            >>> [sent.periodic_task for sent in kit.tick()]
            ['nightly']
        """
        before = len(self._sent)
        done = before
        while True:
            self._run_until_rest()
            fresh = self._sent[done:]
            if not fresh or not self._finishing:
                return self._sent[before:]
            done += len(fresh)
            for sent in fresh:  # this may promote the next job
                self._succeed(sent)

    def advance(self, duration: timedelta | float | str) -> list[Sent]:
        """Let time pass with a beat running: tick now, whenever there is something to do, and at the end.

        Args:
            duration: a timedelta, seconds, or text such as `1h30m`.

        Raises:
            ValueError: it is no duration, or a negative one; or there is something to do at too many instants.

        Example:
            >>> [sent.scheduled_for.hour for sent in kit.advance("2d")]
            [3, 3]
        """
        return self.run_until(self.now + read_duration("duration", duration))

    def run_until(self, when: datetime | str) -> list[Sent]:
        """Let time pass with a beat running, as `advance` does, until an instant, inclusive.

        Args:
            when: see `at`.

        Raises:
            ValueError: it is no instant, or a past one; or there is something to do at too many instants.

        Example:
            >>> kit.run_until("2026-12-08T02:59Z")
            []
            >>> len(kit.run_until("2026-12-08T03:00Z"))
            1
        """
        end, before = instant_of(when), len(self._sent)
        if end < self.now:
            raise ValueError(f"the clock shows {self.now.isoformat()}: {end.isoformat()} is over")
        for _ in range(MOST_INSTANTS):
            self.tick()
            if self.now == end:
                return self._sent[before:]
            event = self._place.next_event()
            self.clock.set(end if event is None else min(event, end))
        raise ValueError(
            f"there is something to do at more than {MOST_INSTANTS} instants until {end.isoformat()}: let less time "
            f"pass at once, or look ahead with `upcoming`"
        )

    # What workers would report.

    def start(self, job: Sent | uuid.UUID, *, worker_dies: bool = False) -> bool:
        """Let a worker start a job; return whether its guard allows it.

        It does not if the job has started or ended already, and it drops the job if the `min_gap` is not over.

        Args:
            job: what was sent, or its id.
            worker_dies: let the worker be silent from then on: `pgbeat_dead_after` later `on_lost` decides.

        Raises:
            LookupError: there is no such job.

        Example:
            >>> kit.beat.trigger("nightly") == (sent := kit.tick()[-1]).id
            True
            >>> kit.start(sent)
            True
        """
        known = self._reports.state_of(_id_of(job))
        if known is None:
            raise LookupError(f"There is no job {_id_of(job)}")
        start = Start(_id_of(job), known.run, known.attempt, uuid.uuid4(), WORKER)
        dead_after = self._settings.dead_after if worker_dies else self._longest_run(start.job)
        if start_job(self._reports, start, dead_after) is not StartResult.STARTED:
            return False
        self._starts[start.job] = start
        return True

    def finish(self, job: Sent | uuid.UUID, state: str = "succeeded", error: str | None = None) -> None:
        """Let a job end; if it has not started, it starts first.

        Args:
            job: what was sent, or its id.
            state: `succeeded`, `failed` or `revoked`.
            error: what the worker would report.

        Raises:
            ValueError: it cannot end like that: it has ended already, or waits for another job.
            LookupError: there is no such job.

        Example:
            >>> kit.finish(sent, "failed", error="the printer is out of paper")
            >>> kit.jobs("nightly")[0].state
            'failed'
        """
        if state not in ENDS:
            raise ValueError(f"state is {state!r}; a job ends as {', '.join(ENDS)}")
        start = self._starts.pop(_id_of(job), None)
        if start is None and self.start(job):
            start = self._starts.pop(_id_of(job))
        if start is None or not self._reports.finish(start, state, error):
            known = self._reports.state_of(_id_of(job))
            raise ValueError(f"job {_id_of(job)} is {known.state if known else 'gone'}: it cannot end as {state} now")

    # What there is to see.

    @property
    def sent(self) -> Sequence[Sent]:
        """All messages sent so far, in their order."""
        return tuple(self._sent)

    @property
    def refused(self) -> Sequence[Refused]:
        """All that could not be sent: arguments that are wrong or cannot be serialized, an unknown queue."""
        return tuple(self._refused)

    @property
    def skipped(self) -> Sequence[Job]:
        """What was recorded as skipped, with the reason; the oldest first."""
        return self.beat.jobs(state="skipped", limit=MOST_JOBS)[::-1]

    def jobs(self, name: str | None = None) -> Sequence[Job]:
        """All jobs, of one row or of all, the latest first."""
        return self.beat.jobs(name, limit=MOST_JOBS)

    def _pause_others(self, declared: Sequence[str], only: Collection[str]) -> None:
        unknown = sorted(set(only) - set(declared))
        if unknown:
            absent, there = (", ".join(map(repr, names)) for names in (unknown, sorted(declared)))
            raise LookupError(f"only: the code declares no {absent}, but {there}")
        self.beat.pause_many(set(declared) - set(only), reason="not in `only`, the rows of this test")

    def _run_until_rest(self) -> None:
        for _ in range(MOST_CYCLES):
            if self._dispatcher.run_cycle() > 0:
                return
        raise RuntimeError(f"after {MOST_CYCLES} cycles there is still something to do at {self.now.isoformat()}")

    def _succeed(self, sent: Sent) -> None:
        """Let a job run and succeed, if its guard allows it."""
        start = Start(sent.id, sent.run, 0, uuid.uuid4(), WORKER)
        if start_job(self._reports, start, FOREVER) is StartResult.STARTED:
            self._reports.finish(start, "succeeded")

    def _longest_run(self, job: uuid.UUID) -> timedelta:
        """Return how long a worker counts as alive that the test does not let die."""
        limits = [sent.options.get("time_limit") for sent in self._sent if sent.id == job]
        return timedelta(seconds=float(limits[-1])) + AFTER_HARD_LIMIT if limits and limits[-1] else FOREVER


def _private_server(cleanup: ExitStack) -> str:
    """Start a Postgres for one test, and return its URL."""
    from celery_pgbeat.embedded import Postgres

    return cleanup.enter_context(Postgres(durable=False)).url


def _id_of(job: Sent | uuid.UUID) -> uuid.UUID:
    return job.id if isinstance(job, Sent) else job
