"""Which statements beats, workers and authors may say in a situation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Start, WorkerQueries
from tests.harness.situations import JOB, ago
from tests.pairs.saying import Statement, Texts
from tests.pairs.set_up import RULES, Job, Memory
from tests.pairs.situations import BACKFILL, NAME, TOKEN, WORKER, A, B, C

SILENCE = timedelta(seconds=30)
NEW, COPY = UUID(int=200), UUID(int=201)  # the tokens of two starts that come now
BATCH = 10


def statements_of(texts: Texts, memory: Memory) -> list[Statement]:
    """Return all that may be said."""
    return [
        *_of_ticks(texts, memory),
        *_of_upkeep(texts, memory),
        *_of_workers(texts, memory),
        *_of_authors(texts),
        *_of_people(texts, memory),
    ]


def _of_ticks(texts: Texts, memory: Memory) -> Iterator[Statement]:
    """What beat A says of what it has marked and of the jobs that it is sending, and what others take over."""

    def said(
        verb: str,
        call: Callable[[BeatQueries], object],
        beat: str = A,
        about: str = "",
        once: bool = False,
        beside: str | None = None,
    ) -> Statement:
        text = texts.of_beat(beat, call)
        return Statement(verb, text, about, again=None if once else text, beside=beside)

    decisions = memory.decisions
    if decisions:
        yield said("submit", lambda store: store.submit(decisions, "UTC", True, True))
        if memory.is_silent:
            yield said("submit, not judging", lambda store: store.submit(decisions, "UTC", False, True))
        yield said("unmark", lambda store: store.unmark())
        yield said("report_problem", lambda store: store.report_problem(memory.problems), once=True)
    if memory.postponed:
        yield said("postpone", lambda store: store.postpone(memory.postponed))
    yield said("mark", lambda store: store.mark(BATCH), B)
    yield said("mark_or_submit", lambda store: store.mark_or_submit(BATCH, RULES), B)
    yield said("mark, a third beat", lambda store: store.mark(BATCH), C, beside="mark")
    if memory.planned:
        yield said("plan", lambda store: store.plan(memory.planned, "UTC"))
    yield said("recover", lambda store: store.recover(BATCH, RULES.on_time), B)
    yield said("recover, a third beat", lambda store: store.recover(BATCH, RULES.on_time), C, beside="recover")
    for job in memory.jobs:
        if job.state in ("pending", "buffered"):
            yield from _of_sending(said, job)
    if memory.filling is not None and memory.step is not None:
        filling, step, jobs = memory.filling, memory.step, memory.steps
        minutes = timedelta(minutes=5)
        text = texts.of_beat(A, lambda store: store.submit_backfill(filling, step, jobs, 5, minutes))
        # Where it was in conflict, the next cycle marks the backfill anew and comes to the same step.
        marked = texts.of_beat(A, lambda store: store.mark_backfill("UTC"))
        yield Statement("submit_backfill", text, again=f"{marked}; {text}")
        yield said("end_backfill", lambda store: store.end_backfill(filling, "because"), once=True)
    yield said("mark_backfill", lambda store: store.mark_backfill("UTC"), B, once=True)


def _of_sending(said: Callable[..., Statement], job: Job) -> Iterator[Statement]:
    held = {"beat": job.holder, "about": job.about}
    yield said("confirm", lambda store: store.confirm([(job.id, 0.0)]), **held)
    yield said("refuse", lambda store: store.refuse([(job.id, "refused")]), once=True, **held)
    yield said("give_back", lambda store: store.give_back([job.id]), once=True, **held)
    yield said("skip", lambda store: store.skip([job.id], "not_allowed"), once=True, **held)
    yield said("clear_dead_beats", lambda store: store.clear_dead_beats([job.holder]), B, job.about, once=True)


def _of_upkeep(texts: Texts, memory: Memory) -> Iterator[Statement]:
    calls: dict[str, Callable[[BeatQueries], object]] = {
        "judge": lambda store: store.judge(BATCH, True),
        "recheck": lambda store: store.recheck(BATCH),
        "promote_buffered": lambda store: store.promote_buffered(),
        "grant_slots": lambda store: store.grant_slots(BATCH),
        "sync_group_pauses": lambda store: store.sync_group_pauses(),
        "resume_due": lambda store: store.resume_due(),
        "pause_failing": lambda store: store.pause_failing(BATCH),
        "pause_failed_groups": lambda store: store.pause_failed_groups(),
        "recheck_groups": lambda store: store.recheck_groups(),
        "settle_downstream": lambda store: store.settle_downstream(BATCH),
        "recheck_downstream": lambda store: store.recheck_downstream(),
    }
    if memory.is_silent:
        calls["judge, not sending again"] = lambda store: store.judge(BATCH, False)
    for verb, call in calls.items():
        text = texts.of_beat(B, call)
        yield Statement(verb, text, again=text)
    for verb, acts_as in (("lower_tracking, send", "send"), ("lower_tracking, result", "result")):
        yield Statement(verb, texts.of_beat(B, lambda store, acts_as=acts_as: store.lower_tracking(acts_as)))


def _of_workers(texts: Texts, memory: Memory) -> Iterator[Statement]:
    # What a message of a job for people would say is forged: no worker knows its token.
    jobs = [job._replace(token=TOKEN) for job in memory.jobs] if memory.is_for_people else memory.jobs
    for job in jobs:
        if job.state == "buffered":
            continue
        yield from _of_starts(texts, job)
        if job.state != "lost":
            yield from _of_a_start(texts, job)
            told = texts.of_beat(B, lambda store, job=job: store.finish_by_result([(job.id, "succeeded")]))
            yield Statement("finish_by_result", told, job.about)


def _of_starts(texts: Texts, job: Job) -> Iterator[Statement]:
    verb = "start_lost" if job.state == "lost" else "start_spaced" if job.spaced else "start"
    starts = {verb: (NEW, 0), f"{verb} of a copy": (COPY, 0)}
    if job.state in ("running", "retrying"):
        starts["start of the next attempt"] = (NEW, job.attempt + (job.state == "running"))
    for name, (token, attempt) in starts.items():
        beside = verb if token == COPY else None
        start = Start(job.id, job.run, attempt, token, WORKER)

        def call(reports: WorkerQueries, start: Start = start, verb: str = verb) -> object:
            return getattr(reports, verb)(start, SILENCE)

        tries = 3 if verb == "start_lost" else 1
        yield Statement(name, texts.of_worker(call), job.about, answered=True, tries=tries, beside=beside)


def _of_a_start(texts: Texts, job: Job) -> Iterator[Statement]:
    """What the start that runs says, or one of which a failover has lost the commit."""
    start = Start(job.id, job.run, job.attempt, job.token or TOKEN, WORKER)
    calls: dict[str, Callable[[WorkerQueries], object]] = {
        "finish": lambda reports: reports.finish(start, "succeeded"),
        "retry": lambda reports: reports.retry(start, timedelta(minutes=1), "it failed"),
        "requeue": lambda reports: reports.requeue(start, "stopped"),
        "requeue, to be sent again": lambda reports: reports.requeue(start, "stopped", resend=True),
        "give_up_start": lambda reports: reports.give_up_start(start, "killed"),
        "ask": lambda reports: reports.ask(start, "it failed"),
        "heartbeat": lambda reports: reports.heartbeat(WORKER, [start], SILENCE),
        "end_unstarted": lambda reports: reports.end_unstarted(
            MessageCopy(job.id, job.run, job.attempt), "revoked", WORKER, error="revoked"
        ),
    }
    if job.tells_apart:
        calls["finish, failed"] = lambda reports: reports.finish(start, "failed", "it failed")
    for verb, call in calls.items():
        text = texts.of_worker(call)
        yield Statement(verb, text, job.about, again=text if verb == "heartbeat" else None)
    many = texts.of_worker(lambda reports: reports.finish_many([Finish(start, "failed", "it failed")]))
    yield Statement("finish_many", many, job.about, again=many)  # what was held is told again


def _of_authors(texts: Texts) -> Iterator[Statement]:
    row = "update pgbeat.periodic_task set {} where name = 'nightly'"
    writes = {
        "set schedule": row.format("schedule = '15 * * * *'"),
        "set args": row.format("args = '[1]'"),
        "set next_run_at": row.format("next_run_at = pgbeat.now()"),
        "set overlap to allow": row.format("overlap = 'allow'"),
        "set overlap to skip": row.format("overlap = 'skip'"),
        "set group": row.format("group_name = 'g'"),
        "rename": row.format("name = 'daily'"),
        "delete": "delete from pgbeat.periodic_task where name = 'nightly'",
        "insert": "insert into pgbeat.periodic_task (name, task, schedule) values ('nightly', 'app.p', '0 * * * *')",
        "set max_active of the group": "update pgbeat.task_group set max_active = 2 where name = 'g'",
        "delete group": "delete from pgbeat.task_group where name = 'g'",
    }
    for verb, sql in writes.items():
        yield Statement(verb, sql, answered=True, by_author=True)
    files: dict[str, tuple[str, dict[str, object]]] = {
        "trigger": ("trigger", {"name": NAME, "force": False, "args": None, "kwargs": None}),
        "trigger, force": ("trigger", {"name": NAME, "force": True, "args": None, "kwargs": None}),
        "pause": ("pause", {"name": NAME, "reason": None, "until": None, "seconds": None}),
        "resume": ("resume", {"name": NAME}),
        "replan": ("replan", {"names": [NAME], "zone": None}),
        "fail_job": ("fail_job", {"id": str(JOB), "reason": None}),
        "retry_job": ("retry_job", {"id": str(JOB), "force": False}),
        "pause_many": ("pause_many", {"names": [NAME], "reason": None, "until": None, "seconds": None}),
        "resume_many": ("resume_many", {"names": [NAME]}),
        "unschedule_many": ("unschedule_many", {"names": [NAME]}),
        "cancel": ("cancel", {"name": NAME, "reason": "its job wished so", "by": "job"}),
        "snooze": ("snooze", {"name": NAME, "by": "job", "until": None, "seconds": 60}),
        "reschedule": (
            "reschedule",
            {"name": NAME, "schedule": "45 * * * *", "timezone": None, "anchor": None},
        ),
        "limit_group": ("limit_group", {"name": "g", "max_active": 1}),
        "pause_group": ("pause_group", {"name": "g", "reason": None}),
        "resume_group": ("resume_group", {"name": "g", "retry": False}),
        "resume_group, retry": ("resume_group", {"name": "g", "retry": True}),
        "finish_group": ("finish_group", {"name": "g"}),
        "define_group": (
            "define_group",
            {
                "name": "g",
                "max_active": None,
                "ordered": False,
                "waits_for": None,
                "pause_on_failure": True,
                "rate_limit": None,
            },
        ),
        "remove_group": ("remove_group", {"name": "g"}),
        "backfill": (
            "backfill",
            {"name": NAME, "since": ago(hours=20), "until": ago(hours=19), "mode": "missing", "max_active": 1},
        ),
        "cancel_backfill": ("cancel_backfill", {"id": str(BACKFILL)}),
    }
    held = texts.of_file("lock_rows", names=[NAME])
    many = texts.of_file("trigger_many", names=[NAME], force=False)
    yield Statement("trigger_many", f"{held}; {many}", answered=True, by_author=True)
    jobs = f'[{{"name": "{NAME}", "args": [1]}}]'
    for verb, force in (("trigger_jobs", False), ("trigger_jobs, force", True)):
        yield Statement(verb, texts.of_file("trigger_jobs", jobs=jobs, force=force), answered=True, by_author=True)
    for verb, (name, parameters) in files.items():
        yield Statement(verb, texts.of_file(name, **parameters), answered=True, by_author=True)


def _of_people(texts: Texts, memory: Memory) -> Iterator[Statement]:
    yield Statement("cancel_job", texts.of_file("cancel_job", id=str(JOB), reason=None), answered=True)
    yield Statement("resend_job", texts.of_file("resend_job", id=str(JOB)), answered=True)
    if not memory.is_for_people:
        return
    files: dict[str, tuple[str, dict[str, object]]] = {
        "pick_up": ("pick_up", {"owner": "ann", "targets": None}),
        "pick_up by another": ("pick_up", {"owner": "bob", "targets": None}),
        "release": ("release", {"owner": None}),
        "finish_work": ("finish_work", {"outcome": "succeeded", "note": None, "owner": None}),
        "finish_work, failed": ("finish_work", {"outcome": "failed", "note": "wrong", "owner": "ann"}),
    }
    for verb, (name, parameters) in files.items():
        yield Statement(verb, texts.of_file(name, id=str(JOB), **parameters), answered=True)
