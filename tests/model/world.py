"""What the model moves: beats, workers, a broker's queue, an author and a set clock, on one real database.

Every step is one of the product's own statements, so that whatever lies between two of them can be skipped, delayed
until much later, or repeated. Nothing here judges; see `ledger.py`.
"""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from celery_pgbeat.planning import Decision, Planned, Postponed, Rules, decide, plan
from celery_pgbeat.postgres.beat_queries import BeatQueries, Marked, Recovered
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import MessageCopy, Start, WorkerQueries
from celery_pgbeat.worker.start.guard import StartResult, start_job
from tests.harness.clock import Clock

BEGIN = datetime(2026, 12, 7, 11, 58, 30, tzinfo=timezone.utc)
LEASE = timedelta(seconds=15)
DEAD_AFTER = timedelta(seconds=30)
MOMENT = timedelta(milliseconds=1)  # that every step takes: no two of them are at one instant
RULES = Rules(
    timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15), pickup_deadline=timedelta(minutes=5)
)
BATCH = 10
GROUP, LIMIT = "g", 1  # the most jobs of the group that may be under way
QUEUE = "q"  # a group whose jobs run in order, and that a failure pauses

_EMPTY = (
    "truncate pgbeat.periodic_task, pgbeat.active_job, pgbeat.open_work, pgbeat.finished_job, pgbeat.node, "
    "pgbeat.periodic_task_state, pgbeat.task_group, pgbeat.group_failure, pgbeat.group_to_check, pgbeat.dependency, "
    "pgbeat.dependency_to_check"
)
# One partition is enough here, and sixteen take their time in every statement about what is final.
_DROP_DAYS = """
do $$
declare day regclass;
begin
    for day in select inhrelid from pg_inherits where inhparent = 'pgbeat.finished_job'::regclass
        and inhrelid <> 'pgbeat.finished_job_default'::regclass
    loop
        execute 'drop table ' || day;
    end loop;
end
$$
"""
_SET_CLOCK = "update public.pgbeat_test_clock set running = false, at = %(at)s"


@dataclass(slots=True)
class Decided:
    """Decisions about marked rows, which wait to be submitted, and until when this beat believes in its mark."""

    decisions: list[Decision]
    postponed: list[Postponed]
    lease_ends: timedelta


@dataclass(frozen=True, slots=True)
class Unsent:
    """A job that a beat holds and has not published."""

    job: uuid.UUID
    run: int
    lease_ends: timedelta


@dataclass(slots=True)
class Beat:
    """One life of a beat: its statements, and what it has in its memory between two of them."""

    store: BeatQueries
    planned: deque[list[Planned]] = field(default_factory=deque)
    marked: deque[Decided] = field(default_factory=deque)
    unsent: deque[Unsent] = field(default_factory=deque)
    sent: deque[uuid.UUID] = field(default_factory=deque)

    @property
    def id(self) -> str:
        """Its id, which no other life has."""
        return self.store.beat


class World:
    """All of it, from an empty table on."""

    def __init__(self, url: str, beats: int = 3) -> None:
        Clock(url)
        self.database = Database(url)
        self.reports = WorkerQueries(self.database)
        self.now = BEGIN
        self.uptime = timedelta(0)  # of the machines: it cannot be set back
        self._numbers = 0
        self.database.execute(_DROP_DAYS)
        self.database.execute(_EMPTY)
        self.database.execute("select pgbeat.limit_group(%(name)s, %(limit)s)", {"name": GROUP, "limit": LIMIT})
        self.database.execute(
            "select pgbeat.define_group(%(name)s, ordered => true, pause_on_failure => true)", {"name": QUEUE}
        )
        self._show()
        self.beats = [self.new_beat() for _ in range(beats)]
        self.queue: list[MessageCopy] = []
        self.bodies: list[Start] = []  # that run

    def close(self) -> None:
        """Hang up."""
        self.database.close()

    def number(self) -> int:
        """Return a number that was never given before: ids are the same in each replay."""
        self._numbers += 1
        return self._numbers

    def pass_by(self, duration: timedelta) -> None:
        """Let time pass, on all clocks."""
        self.uptime += duration
        self.now += duration
        self._show()

    def set_back(self, duration: timedelta) -> None:
        """Set the database's clock back; the machines' own uptime knows nothing of it."""
        self.now -= duration
        self._show()

    def _show(self) -> None:
        self.database.execute(_SET_CLOCK, {"at": self.now})

    # What beats do.

    def new_beat(self) -> Beat:
        """Begin another life."""
        return Beat(BeatQueries(self.database, f"beat-{self.number()}", LEASE))

    def read_unplanned(self, beat: Beat) -> None:
        """Plan rows that are new or changed; the plans are stored later."""
        rows = beat.store.unplanned(BATCH)
        if rows:
            beat.planned.append([plan(row, RULES) for row in rows])

    def plan(self, beat: Beat) -> None:
        """Store the oldest plans."""
        beat.store.plan(beat.planned.popleft(), RULES.timezone)

    def mark(self, beat: Beat, batch: int = BATCH, answered: bool = True, at_once: bool = False) -> int:
        """Mark what is due and decide about it; without an answer the rows stay marked and no beat knows it.

        With `at_once` rows of which nothing is to be decided are submitted; returns how many this beat knows of.
        """
        lease_ends = self.uptime + LEASE
        rows = beat.store.mark_or_submit(batch, RULES) if at_once else Marked(beat.store.mark(batch), [])
        submitted = [Unsent(row.job, 0, lease_ends) for row in rows.at_once] if answered else []
        beat.unsent.extend(submitted)
        answers = [decide(row, RULES) for row in rows.due]
        if answered and answers:
            decisions = [answer for answer in answers if isinstance(answer, Decision)]
            postponed = [answer for answer in answers if isinstance(answer, Postponed)]
            beat.marked.append(Decided(decisions, postponed, lease_ends))
        return len(submitted)

    def submit(self, beat: Beat, judging: bool, answered: bool = True, again: bool = False) -> set[str]:
        """Submit and postpone the oldest decisions; return the names that were submitted.

        With `again` the statement stays somewhere on the network, and reaches Postgres once more.
        """
        marked = beat.marked[0] if again else beat.marked.popleft()
        if marked.postponed:
            beat.store.postpone(marked.postponed)
        answers = beat.store.submit(marked.decisions, RULES.timezone, judging, True) if marked.decisions else []
        jobs = {decision.row.name: decision.job for decision in marked.decisions}
        if answered:
            for answer in answers:
                job = jobs[answer.name]
                if answer.made and not answer.waits and job is not None:
                    beat.unsent.append(Unsent(job, 0, marked.lease_ends))
            waiting = [answer.name for answer in answers if answer.waits]
            if waiting:
                beat.store.promote_buffered(waiting)
        return {answer.name for answer in answers}

    def publish(self, beat: Beat) -> None:
        """Hand the messages of all jobs to the broker, while the lease holds; what it ended for is given back."""
        while beat.unsent:
            unsent = beat.unsent.popleft()
            if self.uptime < unsent.lease_ends:
                self._take(unsent)
                beat.sent.append(unsent.job)
            else:
                beat.store.give_back([unsent.job])

    def publish_stalled(self, beat: Beat) -> None:
        """Hand over one message after a stop between the look at the lease and the publish."""
        unsent = beat.unsent.popleft()
        self._take(unsent)
        beat.sent.append(unsent.job)

    def publish_unheard(self, beat: Beat) -> None:
        """Send one message and lose the connection before the answer: the job, whose fate is unknown, is given back."""
        unsent = beat.unsent.popleft()
        self._take(unsent)
        beat.store.give_back([unsent.job])

    def _take(self, unsent: Unsent) -> None:
        self.queue.append(MessageCopy(unsent.job, unsent.run, 0))

    def confirm(self, beat: Beat, again: bool = False) -> None:
        """Confirm the messages that the broker took."""
        beat.store.confirm([(job, 0.0) for job in beat.sent])
        if not again:
            beat.sent.clear()

    def recover(self, beat: Beat, answered: bool = True) -> list[Recovered]:
        """Take over jobs that no beat is sending."""
        lease_ends = self.uptime + LEASE
        recovered = beat.store.recover(BATCH, RULES.on_time)
        if answered:
            beat.unsent.extend(Unsent(job.id, job.run, lease_ends) for job in recovered if job.reason is None)
        return recovered

    def refuse(self, beat: Beat) -> None:
        """Have the broker refuse the oldest job's message."""
        beat.store.refuse([(beat.unsent.popleft().job, "refused")])

    def hand_back(self, beat: Beat) -> None:
        """Stop in good order, and begin another life."""
        beat.store.unmark()
        beat.store.give_back()
        self.beats[self.beats.index(beat)] = self.new_beat()

    def die(self, beat: Beat, at_home: bool) -> None:
        """Die at once; `at_home` the next life begins on the same host, and knows that this one is dead."""
        successor = self.new_beat()
        self.beats[self.beats.index(beat)] = successor
        if at_home:
            successor.store.clear_dead_beats([beat.id])

    # What workers do.

    def receive(self, place: int, keep: bool = False) -> Start:
        """Take a message out of the queue (with `keep` the broker delivers it once more) and give it a token."""
        copy = self.queue[place] if keep else self.queue.pop(place)
        return Start(copy.job, copy.run, copy.attempt, uuid.UUID(int=self.number()), "worker")

    def start(self, start: Start) -> StartResult:
        """Ask the guard's question, and run the body if that is the answer."""
        verdict = start_job(self.reports, start, DEAD_AFTER)
        if verdict is StartResult.STARTED and start not in self.bodies:
            self.bodies.append(start)
        return verdict
