"""Jobs: start one, submit one again, read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, overload
from uuid import UUID

from celery_pgbeat.api import many
from celery_pgbeat.api.ids import read_job_id
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.rows import RetriedJob, read_row
from celery_pgbeat.choices import JobState
from celery_pgbeat.columns_of_job import Job
from celery_pgbeat.declare.columns import read_choice
from celery_pgbeat.declare.definition import read_arguments
from celery_pgbeat.errors import UnknownJob


class JobMethods(Connected):
    """What `PgBeat` does with jobs."""

    def trigger(
        self,
        name: str,
        force: bool = False,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        connection: Any = None,
    ) -> UUID:
        """Start a job of a row now, even of a paused one; return the id of the job, which is the Celery task id.

        A beat sends it as soon as the transaction has committed. The next run does not change.

        Args:
            name: of the row.
            force: start it even while another job of the row is not final.
            args: positional arguments of this job alone, instead of those of the row; None for those of the row.
            kwargs: likewise its keyword arguments. They replace those of the row, and are not merged with them.
            connection: join this transaction; None commits at once.

        Raises:
            JobInTheWay: a job of the row is not final, and neither `force` nor `overlap = 'allow'` permits two.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: an argument is not JSON, or both are too large together.

        Example:
            >>> job = beat.trigger("nightly", force=True)
            >>> job = beat.trigger("nightly", force=True, kwargs={"day": "2026-12-24"})
        """
        texts: tuple[str | None, str | None] = (None, None)
        if args is not None or kwargs is not None:
            sensitive = self._row("get", name, connection)["sensitive"]
            positional, keywords = read_arguments(args or (), kwargs or {}, sensitive)
            texts = (None if args is None else positional, None if kwargs is None else keywords)
        (row,) = self._queries.run("trigger", connection, name=name, force=force, args=texts[0], kwargs=texts[1])
        return UUID(str(row["job"]))

    @overload
    def trigger_many(
        self, names: Iterable[str], force: bool = False, *, missing_ok: bool = False, connection: Any = None
    ) -> Mapping[str, UUID | None]: ...

    @overload
    def trigger_many(
        self, *, jobs: Iterable[Mapping[str, Any]], force: bool = False, connection: Any = None
    ) -> Sequence[UUID]: ...

    def trigger_many(
        self,
        names: Iterable[str] | None = None,
        force: bool = False,
        *,
        jobs: Iterable[Mapping[str, Any]] | None = None,
        missing_ok: bool = False,
        connection: Any = None,
    ) -> Mapping[str, UUID | None] | Sequence[UUID]:
        """Start many jobs now, in one statement: of `names` one each, or `jobs` with arguments of their own.

        With `names`, return the id of each job by the name of its row. A row with a job that is not final is left out:
        its id is None. Otherwise all jobs are started or none.

        With `jobs`, return the ids in their order. All are started or none: what `trigger` refuses for one is refused
        for all. A row may have several of the jobs if its `overlap` is `allow`, or with `force`.

        Args:
            names: of the rows.
            force: start them even while another job of the row is not final.
            jobs: a dict for each, of what `trigger` takes: `name`, and `args` and `kwargs` if they are not the row's.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            JobInTheWay: of `jobs`: a job of a row is not final, or `jobs` has two of it, and neither `force` nor
                `overlap = 'allow'` permits two.
            InvalidPeriodicTask: of `jobs`: one is wrong, or an argument of it; names it, `jobs[0]` being the first.

        Example:
            >>> beat.trigger_many(["nightly"])  # a job of it is not final
            {'nightly': None}
            >>> days = [{"name": "nightly", "kwargs": {"day": f"2026-12-{day}"}} for day in (24, 25)]
            >>> len(beat.trigger_many(jobs=days, force=True))
            2
        """
        if (names is None) == (jobs is None):
            raise TypeError("trigger_many takes either names or jobs")
        if jobs is None:
            return many.trigger(self._queries, names or (), force, missing_ok, connection)
        if missing_ok:
            raise TypeError("missing_ok is for names: a job of a row that does not exist has no meaning")
        return many.trigger_jobs(
            self._queries, jobs, force, lambda name: self._row("get", name, connection)["sensitive"], connection
        )

    def retry_job(self, id: UUID | str, force: bool = False, *, connection: Any = None) -> RetriedJob:
        """Run a job that has failed again.

        A job in state `error`, which waits for a decision (`on_error = 'ask'`), runs again itself, under its own id. A
        job that has ended without success is submitted again, as a new manual job of its row. That one has the
        arguments of the job where the history has them: of a manual job, and of a lost one that never started.
        Otherwise it has those that the row has now; `arguments_of` says which. Everything else is as for `trigger`.

        Args:
            id: of the job.
            force: start it even while another job of the row is not final.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            JobNotRetriable: it is neither final nor in state `error`, has succeeded, or called another task than the
                row calls now.
            JobInTheWay: a job of the row is not final, and neither `force` nor `overlap = 'allow'` permits two.
            UnknownPeriodicTask: the row was removed.

        Example:
            >>> [beat.retry_job(job.id).job for job in beat.jobs("nightly", "failed", limit=1)]  # none has failed
            []
        """
        (row,) = self._queries.run("retry_job", connection, id=str(read_job_id(id)), force=force)
        return RetriedJob(UUID(str(row["job"])), row["periodic_task"], row["arguments_of"])

    def fail_job(self, id: UUID | str, reason: str | None = None, *, connection: Any = None) -> str:
        """Give up a job in state `error`, which waits for a decision: it ends as `failed`. Return the name of its row.

        For `pause_after_failures` it has counted since it failed.

        Args:
            id: of the job.
            reason: why, up to 1,000 characters; recorded in the job's `error`, with who decided.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            NoDecisionNeeded: it is in another state.
            InvalidPeriodicTask: the reason is longer.

        Example:
            >>> [beat.fail_job(job.id, "no such file") for job in beat.jobs("nightly", "error")]  # none waits
            []
        """
        (row,) = self._queries.run("fail_job", connection, id=str(read_job_id(id)), reason=reason)
        return str(row["periodic_task"])

    def cancel_job(self, id: UUID | str, reason: str | None = None, *, connection: Any = None) -> str:
        """Cancel a job that no worker runs, or one for people, picked up or not: it ends as `revoked`.

        Return the name of its row. If its message is still at the broker, the guard drops it. A job that a worker
        runs is refused: Celery's `app.control.revoke` ends it.

        Args:
            id: of the job.
            reason: why, up to 1,000 characters; recorded in the job's `error`, with who cancelled it.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            JobNotCancellable: it is final, is running, or waits for a decision; or no guard would drop its message
                (`tracking`), which a beat sends at this moment.
            WorkTaken: another transaction takes or changes it at this moment.
            WorkForOthers: the user may only cancel tasks for people.
            InvalidPeriodicTask: the reason is longer.

        Example:
            >>> [beat.cancel_job(job.id, "not this month") for job in beat.jobs("sign off", "created")]  # none is open
            []
        """
        (row,) = self._queries.run("cancel_job", connection, id=str(read_job_id(id)), reason=reason)
        return str(row["periodic_task"])

    def resend_job(self, id: UUID | str, *, connection: Any = None) -> str:
        """Have the message of a `sent` job sent again at once, because the broker has lost it.

        Return the name of its row. The job keeps its id. If the message is there after all, the guard starts one of the
        two. It does not count as one of the three times that a beat sends a job again by itself.

        Args:
            id: of the job.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            JobNotResendable: it is in another state, waits for a later attempt, or has another `tracking` than `full`.
            WorkTaken: another transaction changes it at this moment.

        Example:
            >>> [beat.resend_job(job.id) for job in beat.jobs("nightly", "sent")]  # none waits with the broker
            []
        """
        (row,) = self._queries.run("resend_job", connection, id=str(read_job_id(id)))
        return str(row["periodic_task"])

    def jobs(
        self,
        name: str | None = None,
        state: JobState | None = None,
        limit: int = 100,
        *,
        group_name: str | None = None,
        connection: Any = None,
    ) -> Sequence[Job]:
        """Read jobs, the latest first.

        Args:
            name: only jobs of this row.
            state: only jobs in this state.
            limit: how many to return at most.
            group_name: only jobs that were made while their row was in this group.
            connection: read in this transaction.

        Raises:
            InvalidPeriodicTask: there is no such state; suggests a near one.

        Example:
            >>> [job.origin for job in beat.jobs("nightly")]
            ['manual']
        """
        if state is not None:
            read_choice("state", state, get_args(JobState))
        others = dict.fromkeys(("pattern", "reason", "task", "queue", "since", "until", "before", "before_at"))
        states = None if state is None else [state]
        rows = self._queries.run(
            "page_of_jobs", connection, name=name, states=states, limit=limit, group_name=group_name, **others
        )
        return [read_row(Job, row) for row in rows]

    def job(self, id: UUID | str, *, connection: Any = None) -> Job:
        """Read one job.

        Raises:
            UnknownJob: there is no such job. Final ones are kept for `pgbeat_retention`.

        Example:
            >>> beat.job(beat.jobs("nightly", limit=1)[0].id).periodic_task
            'nightly'
        """
        wanted = read_job_id(id)
        rows = self._queries.run("job", connection, id=str(wanted))
        if not rows:
            raise UnknownJob(f"There is no job {wanted}: jobs are kept for pgbeat_retention")
        return read_row(Job, rows[0])
