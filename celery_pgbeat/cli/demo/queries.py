"""The SQL of the demo. It writes only its own table and the rows that it shows on the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from celery_pgbeat.cli.demo import start_log
from celery_pgbeat.cli.demo.proof import Occurrence, Record, Row
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import rendered
from celery_pgbeat.process.node import NodeId

NODES = "select id from {schema}.node"

ROWS = """
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, managed_by
from {schema}.periodic_task
where enabled and problem is null and schedule is not null and planned_revision = revision
order by managed_by, name
"""

UNPLANNED = "select count(*) as rows from {schema}.periodic_task where planned_revision <> revision"

TOUCHED = """
select given.name from unnest(%(names)s::text[]) as given (name)
left join {schema}.periodic_task as task on task.name = given.name
where task.name is null or task.updated_at > %(since)s
order by given.name
"""

RECORDS = """
select periodic_task, scheduled_for, coalesce(last_scheduled_for, scheduled_for) as last_scheduled_for, reason, sends,
    beat, sent_at is not null or started_at is not null as sent
from {schema}.job
where periodic_task = any (%(names)s)
    and coalesce(last_scheduled_for, scheduled_for) > %(since)s and scheduled_for <= %(until)s
    and origin <> 'manual'
"""

STARTS = """
select periodic_task, scheduled_for from {schema}.demo_start
where periodic_task = any (%(names)s) and scheduled_for > %(since)s and scheduled_for <= %(until)s
    and origin <> 'manual'
"""

UNDER_WAY = """
select count(*) as jobs from {schema}.active_job
where periodic_task = any (%(names)s) and scheduled_for <= %(until)s
"""

HOLDERS = """
select marked_by from {schema}.periodic_task where marked_by is not null
union
select marked_by from {schema}.active_job where marked_by is not null
"""

IN_FLIGHT = """
select name, coalesce(planned_for, next_run_at) as instant, false as submitted
from {schema}.periodic_task where marked_by = %(beat)s
union all
select periodic_task, scheduled_for, true from {schema}.active_job where marked_by = %(beat)s
"""

OUTCOMES = """
select job.periodic_task, job.scheduled_for, coalesce(job.started_at, job.finished_at) as at, job.beat
from unnest(%(names)s::text[], %(instants)s::timestamptz[]) as given (name, instant)
join {schema}.job as job on job.periodic_task = given.name and job.scheduled_for = given.instant
where job.started_at is not null or job.state = 'skipped'
"""

TALLY = """
select
    (
        select count(*) from {schema}.demo_start
        where periodic_task = any (%(names)s) and scheduled_for > %(since)s and scheduled_for <= %(until)s
    ) as started,
    (
        select coalesce(sum(occurrences), 0) from {schema}.job
        where state = 'skipped' and periodic_task = any (%(names)s)
            and scheduled_for > %(since)s and scheduled_for <= %(until)s
    ) as skipped
"""

SENT_BY = """
select beat, count(*) as jobs from {schema}.job
where (sent_at is not null or started_at is not null) and periodic_task = any (%(names)s)
    and scheduled_for > %(since)s and scheduled_for <= %(until)s and origin <> 'manual'
group by beat
"""

LATEST = """
select distinct on (task.name) task.name, task.schedule, task.managed_by, job.scheduled_for, job.beat,
    coalesce(job.reason, job.state) as state, started.started_at - job.scheduled_for as late
from {schema}.periodic_task as task
left join {schema}.job as job on job.periodic_task = task.name and job.created_at > {schema}.now() - interval '1 minute'
left join {schema}.demo_start as started on started.job = job.id
order by task.name, job.scheduled_for desc nulls last
"""


@dataclass(frozen=True, slots=True)
class InFlight:
    """What a beat has under way: the rows it had marked, and the jobs it had submitted and not yet confirmed."""

    marked: tuple[Occurrence, ...]
    unsent: tuple[Occurrence, ...]

    @property
    def all(self) -> tuple[Occurrence, ...]:
        """Both."""
        return self.marked + self.unsent


class DemoQueries:
    """The statements of the demo."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self) -> None:
        """Create the table in which the tasks log their starts."""
        self._run(start_log.TABLE)

    def insert(self, statement: str) -> None:
        """Run the statements that the screen shows."""
        self._database.execute(statement)

    def now(self) -> datetime:
        """Read the database's clock."""
        return _utc(self._run("select clock_timestamp() as now")[0].now)

    def nodes(self) -> set[int]:
        """Return the process ids of the beats and workers that have announced themselves."""
        return {pid for row in self._run(NODES) if (pid := pid_of(row.id)) is not None}

    def rows(self) -> list[Row]:
        """Read the periodic tasks that are planned."""
        return [Row(r.name, r.schedule, r.timezone, _utc(r.anchor), r.dst, r.managed_by) for r in self._run(ROWS)]

    def unplanned(self) -> int:
        """Count the periodic tasks that are still to be planned."""
        return int(self._run(UNPLANNED)[0].rows)

    def touched(self, names: Sequence[str], since: datetime) -> list[str]:
        """Return the names of the rows that were changed or removed since then."""
        return [row.name for row in self._run(TOUCHED, names=list(names), since=since)]

    def records(
        self, names: Sequence[str], since: datetime, until: datetime, name_of: Callable[[int | None], str]
    ) -> list[Record]:
        """Read the jobs and the skipped occurrences; `name_of` names a beat by its process id."""
        return [
            Record(
                periodic_task=row.periodic_task,
                scheduled_for=_utc(row.scheduled_for),
                last_scheduled_for=_utc(row.last_scheduled_for),
                reason=row.reason,
                sent=row.sent,
                sends=row.sends,
                beat=name_of(pid_of(row.beat)),
            )
            for row in self._run(RECORDS, names=list(names), since=since, until=until)
        ]

    def starts(self, names: Sequence[str], since: datetime, until: datetime) -> list[Occurrence]:
        """Read the starts that the tasks logged."""
        rows = self._run(STARTS, names=list(names), since=since, until=until)
        return [(row.periodic_task, _utc(row.scheduled_for)) for row in rows]

    def under_way(self, names: Sequence[str], until: datetime) -> int:
        """Count the jobs that are not final."""
        return int(self._run(UNDER_WAY, names=list(names), until=until)[0].jobs)

    def holders(self) -> list[str]:
        """Return the ids of the beats that hold rows or jobs now."""
        return [row.marked_by for row in self._run(HOLDERS)]

    def in_flight_of(self, beat: str) -> InFlight:
        """Return the rows and jobs that a beat holds."""
        rows = self._run(IN_FLIGHT, beat=beat)
        return InFlight(
            tuple((row.name, _utc(row.instant)) for row in rows if not row.submitted),
            tuple((row.name, _utc(row.instant)) for row in rows if row.submitted),
        )

    def outcomes_of(self, occurrences: Iterable[Occurrence]) -> dict[Occurrence, tuple[datetime, int | None]]:
        """Return when these occurrences started or were skipped, and the process id of the beat that decided each."""
        names, instants = zip(*occurrences, strict=True)
        return {
            (row.periodic_task, _utc(row.scheduled_for)): (_utc(row.at), pid_of(row.beat))
            for row in self._run(OUTCOMES, names=list(names), instants=list(instants))
        }

    def tally(self, names: Sequence[str], since: datetime, until: datetime) -> tuple[int, int]:
        """Count the starts and the skipped occurrences."""
        (row,) = self._run(TALLY, names=list(names), since=since, until=until)
        return int(row.started), int(row.skipped)

    def sent_by(self, names: Sequence[str], since: datetime, until: datetime) -> Counter[int | None]:
        """Count the jobs that each beat has sent, by its process id."""
        counts: Counter[int | None] = Counter()
        for row in self._run(SENT_BY, names=list(names), since=since, until=until):
            counts[pid_of(row.beat)] += row.jobs
        return counts

    def latest(self) -> Sequence[Any]:
        """Read each periodic task with its latest job."""
        return self._run(LATEST)

    def _run(self, statement: str, **parameters: Any) -> Sequence[Any]:
        return self._database.execute(rendered(statement, self._database.schema), parameters or None)


def pid_of(beat: str | None) -> int | None:
    """Return the process id in a node's id."""
    node = NodeId.parse(beat or "")
    return None if node is None else node.pid


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(timezone.utc)
