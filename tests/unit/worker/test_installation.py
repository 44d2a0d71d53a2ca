"""Importing is harmless; installing puts a guard before each task, once."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, Task, signals
from celery.app.trace import build_tracer
from celery.exceptions import Ignore

from celery_pgbeat.errors import DatabaseUnavailable, InvalidSetting
from celery_pgbeat.postgres.worker_queries import Finish, Start, WorkerQueries
from celery_pgbeat.worker import context as context_module
from celery_pgbeat.worker import install
from celery_pgbeat.worker.context import context_of
from celery_pgbeat.worker.report.reports import Retry
from celery_pgbeat.worker.start.guard import GUARD

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


class Own(Task):
    """A task class with hooks of its own."""

    name = "unit.own"
    seen: list[str]

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        type(self).seen.append("before")

    def run(self) -> str:
        type(self).seen.append("run")
        return "done"


def probe_of(app: Celery, name: str) -> Any:
    """Register a task that no other app gets to see."""

    def probe() -> None:
        pass

    return app.tasks[app.task(name=name, shared=False)(probe).name]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    monkeypatch.delenv("PGBEAT_URL", raising=False)
    for signal in vars(signals).values():
        if isinstance(signal, type(signals.task_postrun)):
            monkeypatch.setattr(signal, "receivers", list(signal.receivers))
    made = Celery("unit", broker="memory://", backend="cache+memory://", set_as_current=False)
    made.conf.update(pgbeat_url=NOWHERE, task_track_started=True)
    Own.seen = []
    yield made
    made.close()


def test_importing_connects_two_signals_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, celery_pgbeat.worker; from celery import signals as s;"
        "assert not {'sqlalchemy', 'psycopg2', 'celery_pgbeat.postgres.database'} & set(sys.modules), sys.modules;"
        "print([n for n, v in vars(s).items() if getattr(v, 'receivers', None)])"
    )
    environment = {**os.environ, "PGBEAT_LEASE": "nonsense"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "['worker_init', 'worker_process_init']" == answer.stdout.strip()


def test_each_task_has_a_guard_and_celery_records_no_start(app: Celery) -> None:
    task = probe_of(app, "unit.probe")
    install(app)
    assert all(GUARD in vars(task) and task.track_started is False for task in app.tasks.values())
    assert "unit.probe" == task.name


def test_installing_again_guards_the_new_tasks_and_no_task_twice(app: Celery) -> None:
    app.register_task(Own())
    install(app)
    guard = vars(app.tasks["unit.own"])[GUARD]
    standing = Own.before_start
    probe_of(app, "unit.late")
    install(app)
    assert guard is vars(app.tasks["unit.own"])[GUARD]
    assert standing is Own.before_start
    assert GUARD in vars(app.tasks["unit.late"])


def test_direct_calls_do_not_pass_the_guard(app: Celery) -> None:
    app.register_task(Own())
    install(app)
    assert "done" == app.tasks["unit.own"]()
    assert "done" == app.tasks["unit.own"].apply().get()
    assert ["run", "before", "run"] == Own.seen


def test_a_tracer_that_was_built_before_is_built_again(app: Celery) -> None:
    task = probe_of(app, "unit.probe")
    app.finalize()
    task.__trace__ = before = object()
    install(app)
    assert before is not task.__trace__


def test_a_message_that_the_guard_refuses_is_not_run_and_stores_nothing(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.register_task(Own())
    install(app)
    task = app.tasks["unit.own"]

    def refuse(*_: Any) -> None:
        raise Ignore("second")

    monkeypatch.setattr(vars(task)[GUARD], "admit", refuse)
    tracer = build_tracer("unit.own", task, app=app)
    assert "IGNORED" == tracer("an-id", (), {}, {"id": "an-id"}).info.state
    assert [] == Own.seen
    assert "PENDING" == app.AsyncResult("an-id").state


def test_a_worker_without_a_url_warns_once_and_guards_nothing(app: Celery, caplog: pytest.LogCaptureFixture) -> None:
    app.conf.pgbeat_url = None
    probe_of(app, "unit.probe")
    install(app)
    install(app)
    assert context_of(app) is None
    assert GUARD not in vars(app.tasks["unit.probe"])
    assert 1 == caplog.text.count("pgbeat_url is not set")


def test_a_wrong_setting_is_an_error_that_names_it(app: Celery) -> None:
    app.conf.pgbeat_lease = "long"
    with pytest.raises(InvalidSetting, match="pgbeat_lease is 'long'"):
        install(app)


class Controller:
    """The sender of Celery's worker_init."""

    def __init__(self, app: Celery) -> None:
        self.app = app


def test_a_starting_worker_with_a_wrong_setting_does_not_start(app: Celery) -> None:
    app.conf.pgbeat_lease = "long"
    with pytest.raises(SystemExit, match="pgbeat_lease is 'long'"):
        signals.worker_init.send(sender=Controller(app))


def test_each_process_has_its_own_connection(app: Celery) -> None:
    install(app)
    context = context_of(app)
    assert context is not None
    mine = context.connection
    assert mine is context.connection
    child = os.fork()
    if child == 0:
        os._exit(0 if context.connection is not mine and not context.is_main else 1)
    assert 0 == os.waitpid(child, 0)[1]
    assert mine is context.connection
    assert context.is_main
    context.close()


def test_a_child_sends_a_finish_to_its_main_process_and_writes_it_itself_if_the_pipe_is_full(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(app)
    context = context_of(app)
    assert context is not None
    finish = Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")
    written: list[object] = []
    monkeypatch.setattr(context_module, "write", lambda report, _: written.append(report))
    child = os.fork()
    if child == 0:
        context.report(finish)
        is_sent = not written
        while context._report_pipe is not None and context._report_pipe.send(finish):
            pass
        context.report(finish)
        os._exit(0 if is_sent and written == [finish] else 1)
    assert 0 == os.waitpid(child, 0)[1]
    assert context._report_pipe is not None
    assert {finish} == set(context._report_pipe.receive())
    context.close()


def test_a_child_sends_its_main_process_a_retry_that_postgres_cannot_take_now(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process were replaced meanwhile, the report would be lost with it, and the job would count as lost."""
    install(app)
    context = context_of(app)
    assert context is not None
    context.become_main()
    report_pipe = context._report_pipe
    assert report_pipe is not None
    monkeypatch.setattr(context, "_main_pid", os.getpid() + 1)
    retry = Retry(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), timedelta(seconds=90), "ValueError: no")

    def away(*_: Any) -> bool:
        raise DatabaseUnavailable("Postgres is not usable.")

    monkeypatch.setattr(WorkerQueries, "retry", away)
    context.report(retry)
    assert [retry] == report_pipe.receive()
    assert context.connection.report_thread._thread is None
    context.close()
    report_pipe.close()


def test_a_process_that_inherits_no_pipe_writes_a_finish_itself(app: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    install(app, main=False)
    context = context_of(app)
    assert context is not None
    written: list[object] = []
    monkeypatch.setattr(context_module, "write", lambda report, _: written.append(report))
    finish = Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "failed", "ValueError: no")
    context.report(finish)
    assert [finish] == written


def test_a_worker_that_is_started_again_in_the_same_process_has_a_new_pipe(app: Celery) -> None:
    install(app)
    context = context_of(app)
    assert context is not None
    install(app)
    first = context._report_pipe
    assert first is not None
    context.close()
    context.close()
    install(app)
    assert context._report_pipe not in (None, first)
    context.close()
