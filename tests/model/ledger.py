"""What must hold after every step, and what must be accounted for in the end."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from celery_pgbeat.planning import PlanningRow
from celery_pgbeat.planning.due_times import DueTimes, due_times_of
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import Start
from tests.model.world import GROUP, LIMIT, QUEUE, RULES

MICROSECOND = timedelta(microseconds=1)
NEW = "new"  # the state of a job before it is there

# From which state to which a job may go in each step. A job that waits may come to its turn whenever another ends.
_TURN = {("buffered", "pending"), ("buffered", "created"), ("buffered", "waiting")}
_GIVEN_UP = {(state, "lost") for state in ("sent", "running", "retrying")}
_WITHDRAWN = {(state, "revoked") for state in ("pending", "sent", "retrying", "error", "created")} | {
    ("buffered", "skipped"),
    ("waiting", "skipped"),
}
_ASKED = {("running", "revoked")}  # asked to end, and it did not succeed
_ENDED = {"succeeded", "failed"}
CHANGES: dict[str, set[tuple[str, str]]] = {
    "mark": {(NEW, "pending")},
    "submit": {(NEW, state) for state in ("pending", "created", "buffered", "waiting", "skipped")}
    | _GIVEN_UP
    | _WITHDRAWN
    | _TURN,
    "confirm": {("pending", "sent")},
    "recover": {("pending", "skipped")} | _TURN,
    "refuse": {("pending", "lost")} | _TURN,
    "judge": {(state, "pending") for state in ("sent", "running", "retrying")} | _GIVEN_UP | _TURN,
    "promote_buffered": _TURN,
    "start": {(state, "running") for state in ("pending", "sent", "running", "retrying", "lost")}
    | {(state, "skipped") for state in ("pending", "sent", "buffered", "waiting")},
    "heartbeat": {("pending", "running"), ("sent", "running")},
    "finish": {(state, end) for state in ("pending", "sent", "running") for end in (*_ENDED, "error")} | _ASKED | _TURN,
    "decide": {("error", "pending"), ("error", "failed")} | _TURN,
    "retry": {(state, "retrying") for state in ("pending", "sent", "running")} | _ASKED | _TURN,
    "requeue": {("running", "pending"), ("running", "sent")} | _ASKED | _TURN,
    "give_up_start": {("running", "lost")} | _TURN,
    "expire": {(state, "expired") for state in ("pending", "sent", "retrying")} | _TURN,
    "grant_slots": _TURN,
    "settle_downstream": {("waiting", state) for state in ("pending", "created", "buffered", "skipped")}
    | {(NEW, "skipped")}
    | _TURN,
    "trigger": {(NEW, "pending"), (NEW, "created"), (NEW, "buffered")},
    "resume_queue": {(NEW, "buffered")},
    "pick_up": {("created", "running")},
    "release": {("running", "created")},
    "finish_work": {("running", end) for end in _ENDED} | _TURN,
    "cancel_job": {
        (state, "revoked") for state in ("created", "running", "buffered", "waiting", "pending", "sent", "retrying")
    }
    | _TURN,
    "resend_job": {("sent", "pending")},
}
# Who moves a next run: the submit of that very occurrence (a mark's too), planning a changed row, the ends of other
# tasks, and people.
MOVERS = {"submit", "mark", "plan", "author", "resume_due", "resume_queue", "settle_downstream"}
PERSONS = {"author", "resume_due", "resume_queue"}  # steps in which a person decides, at once or in advance


@dataclass(frozen=True, slots=True)
class Job:
    """One job as the tables show it."""

    id: uuid.UUID
    name: str
    state: str
    final: bool
    started: bool
    run: int
    attempt: int
    token: uuid.UUID | None
    first: datetime
    last: datetime
    count: int
    origin: str
    group_name: str | None
    wait_reason: str | None
    human: bool  # a task for people
    owner: str | None
    reason: str | None

    @property
    def has_ended(self) -> bool:
        """Whether those that come after it may count it: not if it was left out."""
        left_out = self.state == "skipped" and self.reason not in ("after", "finished", "not_allowed", "not_sent")
        return self.final and not left_out


@dataclass(frozen=True, slots=True)
class Task:
    """One periodic task as its table shows it.

    Attributes:
        began_at: when it was made, or when a person last had occurrences decided anew, after the clock was set back.
    """

    name: str
    created_at: datetime
    began_at: datetime
    planned_from: datetime
    revision: int
    marked_by: str | None
    marked_at: datetime | None
    next_run_at: datetime | None
    planned_for: datetime | None
    last_run_at: datetime | None
    run_count: int
    max_runs: int | None
    enabled: bool
    overlap: str
    unplanned: bool
    problem: str | None
    group_name: str | None
    schedule: str | None
    after: list[str] | None
    after_condition: str
    to_plan: bool

    @property
    def counts_from(self) -> datetime:
        """The occurrence after which the ends of other tasks count, if it has no schedule."""
        return self.planned_from if self.last_run_at is None else max(self.last_run_at, self.planned_from)

    def is_due(self, now: datetime) -> bool:
        """Return whether its next run has come, marked or not."""
        return self.enabled and self.next_run_at is not None and self.next_run_at <= now


_JOBS = """
select id, periodic_task as name, state, false as final, started_at is not null as started, run, attempt, token,
    scheduled_for as first, scheduled_for as last, 1 as count, origin, exclusive, marked_by is not null as marked,
    kind = 'human' as human, owner, null as reason, busy_until, group_name, wait_reason, slot, check_at,
    case
        when kind = 'human' then check_at = 'infinity' and busy_until = 'infinity'  -- only people deal with it
        when wait_reason is not null then check_at = 'infinity'
        when state = 'error' then check_at = 'infinity'  -- only a person deals with it
        when state <> 'pending' then check_at > '-infinity' and check_at <= busy_until
        when marked_at is null then check_at = '-infinity'
        else check_at <= marked_at + mark_lease
    end as found_in_time
from pgbeat.active_job
union all
select id, periodic_task, state, true, started_at is not null, run, attempt, null, scheduled_for,
    coalesce(last_scheduled_for, scheduled_for), occurrences, origin, null, null, false, owner, reason, null, null,
    null, null, null, true
from pgbeat.finished_job
order by name, first, state
"""
# What may be picked up, as the table of it says, and as the jobs say.
_WORK = """
select array(select job || ' ' || target from pgbeat.open_work order by 1) as listed,
    array(
        select id || ' ' || name from pgbeat.active_job cross join unnest(coalesce(target, array[''])) as name
        where state = 'created' order by 1) as there
"""
_TASKS = """
select name, created_at, coalesce(decided_anew_at, created_at) as began_at, planned_from, revision, marked_by,
    marked_at, next_run_at, planned_for, last_run_at, run_count, max_runs, enabled and not group_paused as enabled,
    overlap,
    enabled and not group_paused and planned_revision <> revision as unplanned, problem,
    group_name, schedule, after, after_condition, planned_revision <> revision as to_plan
from pgbeat.periodic_task
order by name
"""

_PAUSES_DUE = """
select name from pgbeat.periodic_task as task
join pgbeat.periodic_task_state as state using (name)
where state.pause_due and state.failures_from = task.failures_from
    and state.failures_in_row >= task.pause_after_failures
"""

_QUEUE = "select paused from pgbeat.task_group where name = %(name)s"
_DEFINITION = """
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at, max_runs,
    run_count, jitter, blackout, blackout_action, revision, planned_from, next_run_at, planned_for,
    coalesce(decided_anew_at, created_at) as began_at,
    enabled and not group_paused as enabled
from pgbeat.periodic_task
where name = %(name)s
"""

Incarnation = tuple[str, datetime]  # a periodic task's name and when it began
Stretch = tuple[str, datetime, datetime]  # the same, and from where on its definition in force counts


class Ledger:
    """Remembers every record, and judges every step by what it changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.jobs: dict[uuid.UUID, Job] = {}
        self.tasks: dict[str, Task] = {}
        self._beside: set[uuid.UUID] = set()  # jobs that wait for a slot, decided when their row's overlap was allow
        self.pauses_due: set[str] = set()  # names of rows that have failed so often that no job may be sent for them
        self.started: Counter[tuple[uuid.UUID, int, int]] = Counter()
        self._decided: dict[Incarnation, list[Job]] = defaultdict(list)
        self._stretches: dict[Stretch, list[Job]] = defaultdict(list)
        self._set_by_hand: set[Stretch] = set()
        self._queue_has_failed = False  # since a person resumed it last
        self.queue_is_paused = False
        self._rows_set_by_hand: set[tuple[str, datetime]] = set()  # a name and when its row was made

    def look(self, step: str, now: datetime, but: Collection[str] = ()) -> None:
        """Look at everything, and judge what the step has changed; the rows named by `but` it may not have touched."""
        jobs, tasks = self._read_jobs(), self._read_tasks()
        self._judge_jobs(step, jobs)
        self._judge_queue(step, now, jobs)
        self._judge_after(step, jobs, tasks)
        self._judge_tasks(step, tasks, but)
        if step == "mark":
            self._judge_at_once(now, jobs, tasks)
        self._note(jobs)
        self.jobs, self.tasks = jobs, tasks
        self.pauses_due = {row.name for row in self._database.execute(_PAUSES_DUE)}
        (queue,) = self._database.execute(_QUEUE, {"name": QUEUE})
        self.queue_is_paused = queue.paused

    def has(self, *states: str) -> bool:
        """Tell whether a job that is not final is in one of these states."""
        return any(not job.final and job.state in states for job in self.jobs.values())

    def set_by_hand(self, name: str) -> None:
        """Note that a person has set this row's next run: its occurrences are not those of the schedule alone."""
        task = self.tasks[name]
        self._set_by_hand.add((name, task.began_at, task.planned_from))
        self._rows_set_by_hand.add((name, task.created_at))

    def _was_set_by_hand(self, task: Task) -> bool:
        return (task.name, task.created_at) in self._rows_set_by_hand

    def starts(self, start: Start) -> None:
        """Note a body that starts."""
        key = (start.job, start.run, start.attempt)
        assert self.started[key] == 0, f"the same attempt starts twice: {start}"
        self.started[key] += 1
        job = self.jobs[start.job]
        assert job.state != "lost" or not job.started, f"a lost job that had started starts again: {start}"

    def may_start_again(self, start: Start) -> None:
        """Note that a start's message goes back to the broker, on purpose."""
        self.started[(start.job, start.run, start.attempt)] -= 1

    def _read_jobs(self) -> dict[uuid.UUID, Job]:
        rows = self._database.execute(_JOBS)
        assert len({row.id for row in rows}) == len(rows), "a job is in two places"
        (work,) = self._database.execute(_WORK)
        assert work.there == work.listed, "what may be picked up is not what is listed"
        exclusive = Counter(row.name for row in rows if row.exclusive)
        assert not [name for name, count in exclusive.items() if count > 1], f"two jobs at a time: {rows}"
        inside = [row for row in rows if not row.final and row.group_name == GROUP and row.wait_reason is None]
        assert len(inside) <= LIMIT, f"more than the group has places: {inside}"
        queue = [row for row in rows if not row.final and row.group_name == QUEUE and row.wait_reason is None]
        assert len(queue) <= 1, f"two jobs of an ordered group at a time: {queue}"
        for row in rows:
            assert row.final or (row.group_name is not None and row.wait_reason is None) == (row.slot is not None), row
            assert row.final or row.state == "pending" or not row.marked, f"a mark on what is not to be sent: {row}"
            assert row.final or row.busy_until is not None, f"a job that may block for good: {row}"
            assert row.found_in_time, f"a job that is looked at too late: {row}"
        return {
            row.id: Job(
                **{
                    name: value
                    for name, value in row._mapping.items()
                    if name not in ("exclusive", "marked", "busy_until", "slot", "check_at", "found_in_time")
                }
            )
            for row in rows
        }

    def _read_tasks(self) -> dict[str, Task]:
        return {row.name: Task(**row._mapping) for row in self._database.execute(_TASKS)}

    def _judge_jobs(self, step: str, jobs: Mapping[uuid.UUID, Job]) -> None:
        allowed = CHANGES.get(step, set())
        vanished = self.jobs.keys() - jobs.keys()
        assert not vanished, f"{step}: jobs are gone: {[self.jobs[job] for job in vanished]}"
        for job in jobs.values():
            before = self.jobs.get(job.id)
            change = (NEW if before is None else before.state, job.state)
            if before is not None and change[0] == change[1] and before.final == job.final:
                assert before.owner == job.owner, f"{step}: two owners: {before} is now {job}"
                continue
            sent = change == (NEW, "pending") and step in ("submit", "mark")
            if sent and self.tasks[job.name].schedule is not None:
                assert not self.tasks[job.name].after, f"sent though it comes after others: {job}"
            assert not (sent and job.name in self.pauses_due), f"sent though its pause is due: {job}"
            assert change in allowed, f"{step}: {change[0]} → {change[1]}: {before} is now {job}"
            if change in _TURN:
                self._judge_turn(step, job, jobs)
            if before is None and job.wait_reason == "slot":
                row = self.tasks.get(job.name)
                if row is not None and row.overlap == "allow":
                    self._beside.add(job.id)  # that rule stays with it, whatever becomes of its row
            if before is not None and before.final:
                assert change == ("lost", "running"), f"{step}: a final state is left: {before} is now {job}"
                assert not before.started, f"{step}: a lost job that had started runs again: {job}"

    def _judge_turn(self, step: str, job: Job, jobs: Mapping[uuid.UUID, Job]) -> None:
        task = self.tasks.get(job.name)
        under_way = [
            other
            for other in jobs.values()
            if other.name == job.name and not other.final and other.state != "buffered" and other.id != job.id
        ]
        may = not under_way or job.id in self._beside or (task is not None and task.overlap == "allow")
        assert may, f"{step}: promoted beside {under_way}: {job}"

    def _judge_queue(self, step: str, now: datetime, jobs: Mapping[uuid.UUID, Job]) -> None:
        """Check that a turn in the ordered group was the first one's, and that none was given after a failure."""
        for job in jobs.values():
            before = self.jobs.get(job.id)
            if before is None or before.group_name != QUEUE:
                continue
            if (before.state, job.state) == ("buffered", "pending"):
                first = [
                    other
                    for other in self.jobs.values()
                    if other.group_name == QUEUE and other.wait_reason == "slot" and other.first < job.first
                ]
                assert not first, f"{step}: {job} passes {first}"
                due = [
                    task
                    for task in self.tasks.values()
                    if task.group_name == QUEUE
                    and task.is_due(now)
                    and (task.planned_for or task.next_run_at or now) < job.first
                ]
                assert not due, f"{step}: {job} passes what is due: {due}"
                assert not self._queue_has_failed, f"{step}: a turn after a failure: {job}"
                assert not self.queue_is_paused, f"{step}: a turn in a paused group: {job}"
            if job.final and not before.final and job.state in ("failed", "lost") and before.state != "error":
                self._queue_has_failed = True

    def _ends(self, name: str, since: datetime) -> list[Job]:
        """Return how the occurrences of a row have ended, from an instant on, in their order."""
        ended = [job for job in self.jobs.values() if job.has_ended and job.name == name and job.last >= since]
        return sorted(ended, key=lambda job: job.last)

    def _end_for(self, name: str, occurrence: datetime) -> datetime | None:
        """Return which end of an upstream task counts for an occurrence: the first from then on, or the last before.

        One before counts only if it is the last record, and nothing up to the occurrence is left to do.
        """
        later = self._ends(name, occurrence)
        if later:
            return later[0].last
        if not self._is_done(name, occurrence):
            return None
        records = [job for job in self.jobs.values() if job.final and job.name == name and job.last <= occurrence]
        last = max((job.last for job in records), default=None)
        return last if any(job.has_ended for job in records if job.last == last) else None

    def _is_done(self, name: str, until: datetime) -> bool:
        """Return whether nothing is left to do of a row, and of those before it, up to an instant."""
        task = self.tasks[name]
        if any(job.name == name and not job.final and job.first <= until for job in self.jobs.values()):
            return False
        if task.schedule is not None:
            planned_for = task.planned_for or task.next_run_at
            return not task.to_plan and (planned_for is None or planned_for > until)
        if task.next_run_at is not None:
            return False
        if task.after and task.enabled and not self.missing(task, None):
            return False
        return all(self._is_done(upstream, until) for upstream in task.after or ())

    def _goes_on(self, task: Task, name: str, occurrence: datetime) -> set[bool]:
        """Return whether this end of an upstream task lets the row go on; both, if two ends are of one instant."""
        ends = self._ends(name, occurrence)
        repaired = any(job.state == "succeeded" and job.origin == "manual" for job in ends)
        return {
            task.after_condition == "finish" or job.state == "succeeded" or repaired
            for job in ends
            if job.last == occurrence
        }

    def missing(self, task: Task, job: Job | None) -> list[str]:
        """Return the upstream tasks that have not ended for a waiting job or, without one, since the row's last run."""
        if job is None:
            return [name for name in task.after or () if not self._ends(name, task.counts_from + MICROSECOND)]
        return [name for name in task.after or () if self._end_for(name, job.first) is None]

    def _judge_after(self, step: str, jobs: Mapping[uuid.UUID, Job], tasks: Mapping[str, Task]) -> None:
        """Check that what goes on, or is skipped, after other tasks does so because of their ends."""
        for job in jobs.values():
            before = self.jobs.get(job.id)
            task = self.tasks.get(job.name)
            if before is None or before.state != "waiting" or job.state == "waiting" or step != "settle_downstream":
                continue
            assert task is not None or job.state != "skipped", f"skipped after nothing: {job}"
            if task is None:
                continue
            assert not self.missing(task, job), f"{job} does not wait for {self.missing(task, job)}"
            ends = {name: self._end_for(name, job.first) for name in task.after or ()}
            may = [self._goes_on(task, name, end) for name, end in ends.items() if end is not None]
            assert (
                any(False in each for each in may) if job.state == "skipped" else all(True in each for each in may)
            ), f"{step}: {before} is now {job}, after {may}"
        for name, task in tasks.items():
            before_task = self.tasks.get(name)
            if step != "settle_downstream" or before_task is None:
                continue
            if (before_task.next_run_at, before_task.last_run_at) != (task.next_run_at, task.last_run_at):
                assert not self.missing(before_task, None), (
                    f"{task} does not wait for {self.missing(before_task, None)}"
                )
                occurrence = self._occurrence_after(before_task)
                decided = task.planned_for or task.last_run_at
                assert decided == occurrence, f"{task} is due for {decided}, not for {occurrence}"

    def _occurrence_after(self, task: Task) -> datetime | None:
        """Return for which occurrence a row without a schedule is due; None while it is not."""
        since = task.counts_from
        if self.missing(task, None):
            return None
        instants = {job.last for name in task.after or () for job in self._ends(name, since + MICROSECOND)}
        for instant in sorted(instants, reverse=True):
            ends = {name: self._end_for(name, instant) for name in task.after or ()}
            found = [end for end in ends.values() if end is not None and end > since]
            if len(found) < len(ends):
                continue
            occurrence = max(found)
            if all(end == occurrence or self._is_done(name, occurrence) for name, end in ends.items()):
                return occurrence
        return None

    def forgotten(self) -> list[Job | Task]:
        """Return what waits for other tasks though all of them have ended, for the moment at which all is at rest."""
        waiting: list[Job | Task] = [
            job
            for job in self.jobs.values()
            if job.state == "waiting" and job.name in self.tasks and not self.missing(self.tasks[job.name], job)
        ]
        return waiting + [
            task
            for task in self.tasks.values()
            if task.after and task.schedule is None and task.enabled and task.next_run_at is None
            if self._occurrence_after(task) is not None
        ]

    def queue_is_resumed(self) -> None:
        """Note that a person has resumed the ordered group."""
        self._queue_has_failed = False

    def _judge_tasks(self, step: str, tasks: Mapping[str, Task], but: Collection[str]) -> None:
        for task in tasks.values():
            before = self.tasks.get(task.name)
            assert task.problem is None, task
            assert (task.marked_by is None) == (task.marked_at is None), f"{step}: half a mark: {task}"
            # Who sets the next run of a row that has ended has it run once more.
            ended = task.max_runs is not None and task.run_count > task.max_runs
            assert not ended or self._was_set_by_hand(task), f"{step}: one run too many: {task}"
            if before is None or before.created_at != task.created_at:
                continue
            if before.began_at != task.began_at:
                assert step in PERSONS, f"{step}: has it decided anew: {before} is now {task}"
                continue
            assert before.last_run_at is None or (
                task.last_run_at is not None and before.last_run_at <= task.last_run_at
            ), f"{step}: decided again: {before} is now {task}"
            moved = (before.next_run_at, before.planned_for) != (task.next_run_at, task.planned_for)
            assert not moved or step in MOVERS, f"{step} moves a next run: {before} is now {task}"
            assert task.name not in but or before == task, f"{step}: it was not its to change: {before} is now {task}"

    def _judge_at_once(self, now: datetime, jobs: Mapping[uuid.UUID, Job], tasks: Mapping[str, Task]) -> None:
        """Check that what a mark has submitted is what was due, outside the windows, and what the next run is."""
        for job in jobs.values():
            if job.id in self.jobs:
                continue
            before, task = self.tasks[job.name], tasks[job.name]
            assert (before.planned_for, before.planned_for) == (job.first, task.last_run_at), f"{job} was not due"
            line = self._line_of(job.name)
            assert not line.is_blacked_out(now), f"submitted in a window: {job}"
            assert before.next_run_at == line.due_at(job.first), f"submitted at another time: {job}"
            following = None if task.next_run_at is None else line.following(job.first)
            assert following == task.planned_for, f"not the next run: {task}"
            assert following is None or task.next_run_at == line.due_at(following), f"due at another time: {task}"

    def _line_of(self, name: str) -> DueTimes:
        (row,) = self._database.execute(_DEFINITION, {"name": name})
        columns = {field.name: getattr(row, field.name, None) for field in fields(PlanningRow)}
        return due_times_of(PlanningRow(**columns | {"windows": {}}), RULES)

    def _note(self, jobs: Mapping[uuid.UUID, Job]) -> None:
        """Note which occurrences were decided: a decision's records lie behind those of all decisions before it.

        (The one that goes out may lie among those that are passed over with it.)
        """
        new: dict[str, list[Job]] = defaultdict(list)
        for job in jobs.values():
            if job.id not in self.jobs and job.origin in ("schedule", "catchup"):
                new[job.name].append(job)
        for name, records in new.items():
            task = self.tasks.get(name)
            assert task is not None, f"decided about a row that is gone: {records}"
            before = self._decided[(name, task.began_at)]
            last = max((record.last for record in before), default=None)
            assert last is None or last < min(record.first for record in records), f"decided twice: {before}, {records}"
            before += records
            self._stretches[(name, task.began_at, task.planned_from)] += records

    def account(self, now: datetime) -> int:
        """Check that each occurrence of each row was decided, unless its times were set by hand; return how many were.

        For the moment at which nothing is left to decide.
        """
        total = 0
        for name in self.tasks:
            total += self._account_for(name, now)
        return total

    def _account_for(self, name: str, now: datetime) -> int:
        (row,) = self._database.execute(_DEFINITION, {"name": name})
        stretch = (name, row.began_at, row.planned_from)
        records = self._stretches[stretch]
        # After the clock was set back, what has been decided already may lie behind the new definition.
        decided = self._decided[stretch[:2]]
        overtaken = any(record.last > stretch[2] for record in decided if record not in records)
        is_planned = row.enabled and row.planned_for is not None and row.schedule is not None
        if not is_planned or stretch in self._set_by_hand or overtaken:
            return 0
        line = self._line_of(name)
        expected = line.count(line.counts_after, row.planned_for - MICROSECOND)
        counted = sum(record.count for record in records)
        assert expected == counted, f"{expected} occurrences were due, {counted} were decided: {row}, {records}"
        assert row.next_run_at >= line.due_at(row.planned_for), f"due before its instant: {row}"
        assert row.next_run_at > now, f"left undecided: {row}"
        return counted
