"""Reports of a worker that wait for Postgres: they never delay its heartbeat, and an old schema loses none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Event
from time import monotonic

import pytest

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import definitions
from celery_pgbeat.postgres.statements import rendered
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Start, Unstarted, WorkerQueries
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.worker.report import report_queue
from celery_pgbeat.worker.report.heartbeat import Heartbeat
from celery_pgbeat.worker.report.report_thread import ReportThread
from celery_pgbeat.worker.report.reports import Lost, Requeue
from tests.harness.jobs import make_job, state
from tests.protocol.test_reports import SECOND, SILENCE, start_of

SECONDS = 60.0


@pytest.fixture
def database(migrated_database: str) -> Iterator[Database]:
    made = Database(migrated_database)
    yield made
    made.close()


class Beats:
    """A heartbeat that writes down when it was made."""

    every = 0.2

    def __init__(self, start: Start) -> None:
        self.start = start
        self.at: list[float] = []

    def run(self, reports: WorkerQueries) -> None:
        """Say that the start still runs."""
        assert reports.heartbeat("worker-a", [self.start], SILENCE)
        self.at.append(monotonic())

    def shutdown(self, reports: WorkerQueries) -> None:
        """Nothing is to be done."""


def jobs_that_wait(database: Database, many: int) -> list[uuid.UUID]:
    rows = database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) select gen_random_uuid(), 'row-' || n, now(), 'schedule', "
        "'sent', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', 'infinity' "
        f"from generate_series(1, {many}) n returning id"
    )
    return [row.id for row in rows]


def wait_for(is_so: Callable[[], bool]) -> None:
    give_up_at = monotonic() + SECONDS
    while not is_so():
        assert monotonic() < give_up_at
        Event().wait(0.02)


@pytest.mark.parametrize(("kind", "many"), [("dropped messages", 10_000), ("dead processes", 2_000)])
def test_a_heartbeat_goes_out_in_time_while_thousands_of_reports_wait(database: Database, kind: str, many: int) -> None:
    running = start_of(make_job(database, periodic_task="running"))
    assert WorkerQueries(database).start(running, SILENCE)
    jobs = jobs_that_wait(database, many)
    beats = Beats(running)
    report_thread = ReportThread(WorkerQueries(database), beats)

    for job in jobs:
        if kind == "dropped messages":
            report_thread.put(Unstarted(MessageCopy(job, 0, 0), "expired", "worker-a"))
        else:
            report_thread.put(Lost(start_of(job), "x"))
    all_written = Event()
    report_thread.put(Requeue(start_of(uuid.uuid4()), "x", done=all_written.set))
    began = monotonic()
    assert all_written.wait(SECONDS)
    took = monotonic() - began
    report_thread.stop(SECONDS)

    assert max((after - before for before, after in pairwise(beats.at)), default=0) < 1.5
    assert len(beats.at) > took / (5 * beats.every)
    left = database.execute("select count(*) from pgbeat.active_job where state = 'sent'")[0][0]
    assert left == (0 if kind == "dropped messages" else many), "a job that did not start is not lost with a process"


def test_a_worker_that_is_newer_than_the_schema_loses_no_end_of_a_job(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs on while the functions that write many ends are not there yet; later the schema is migrated."""
    monkeypatch.setattr(report_queue, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(report_queue, "LONGEST_PAUSE", 0.1)
    reports = WorkerQueries(database)
    started = [start_of(make_job(database, periodic_task=f"started-{n}")) for n in range(20)]
    assert all(reports.start(start, SILENCE) for start in started)
    waiting_jobs = [make_job(database, periodic_task=f"waiting-{n}") for n in range(20)]
    for function in ("finish_many(uuid[],int[],int[],uuid[],text[],text[],text[])", "end_unstarted_many"):
        database.execute(f"drop function pgbeat.{function}")
    unwritten = lambda: report_thread.unwritten()  # noqa: E731, PLW0108  made below
    report_thread = ReportThread(reports, Heartbeat(NodeId.mine(), SECOND, SILENCE, list, unwritten, lambda _: False))
    caplog.set_level("INFO")

    for start, job in zip(started, waiting_jobs, strict=True):
        report_thread.put(Finish(start, "succeeded"))
        report_thread.put(Lost(start, "its process died after it had reported its end"))
        report_thread.put(Unstarted(MessageCopy(job, 0, 0), "revoked", "worker-a"))
    wait_for(lambda: "Postgres refuses reports of this worker" in caplog.text)
    wait_for(lambda: bool(database.execute("select from pgbeat.node")))
    assert {"running"} == {state(database, start.job) for start in started}
    with database.engine.connect() as connection:
        for _, text in definitions():
            connection.exec_driver_sql(rendered(text, "pgbeat"), execution_options={"no_parameters": True})

    wait_for(lambda: not database.execute("select from pgbeat.active_job"))
    report_thread.stop(SECONDS)
    assert {"succeeded"} == {state(database, start.job) for start in started}
    assert {"revoked"} == {state(database, job) for job in waiting_jobs}
    assert "run `celery-pgbeat migrate`" in caplog.text
    assert 2 >= caplog.text.count("Postgres refuses reports of this worker")
    assert "are lost" not in caplog.text


def test_a_worker_without_a_right_keeps_its_reports_until_it_is_granted(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(report_queue, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(report_queue, "LONGEST_PAUSE", 0.1)
    start = start_of(make_job(database))
    assert WorkerQueries(database).start(start, SILENCE)
    finish_many = "function pgbeat.finish_many(uuid[],int[],int[],uuid[],text[],text[],text[])"
    role = f"worker_{uuid.uuid4().hex}"
    database.execute(f"create role {role}")
    try:
        database.execute(f"grant usage on schema pgbeat to {role}")
        database.execute(f"grant select, insert, update, delete on all tables in schema pgbeat to {role}")
        database.execute(f"revoke execute on {finish_many} from public")
        url = database.engine.url.update_query_dict({"options": f"-c role={role}"})
        as_role = Database(url.render_as_string(hide_password=False))
        report_thread = ReportThread(WorkerQueries(as_role))
        report_thread.put(Finish(start, "succeeded"))
        wait_for(lambda: "Postgres refuses reports of this worker" in caplog.text)
        assert "celery-pgbeat sql --roles" in caplog.text
        assert "running" == state(database, start.job)

        database.execute(f"grant execute on {finish_many} to {role}")

        wait_for(lambda: state(database, start.job) == "succeeded")
        report_thread.stop(SECONDS)
        as_role.close()
    finally:
        database.execute(f"drop owned by {role}")
        database.execute(f"drop role {role}")
