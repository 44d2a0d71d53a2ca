"""The main process reports the starts whose own process cannot: it only queues the report, and never waits."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery.app.task import Context
from celery.exceptions import Retry

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.worker.context import ATTRIBUTE, WorkerContext
from celery_pgbeat.worker.report import parent_signals
from celery_pgbeat.worker.report.refusals import Refusals
from celery_pgbeat.worker.report.report_queue import ReportQueue
from celery_pgbeat.worker.report.reports import write
from celery_pgbeat.worker.report.tracker import ERROR_LENGTH
from celery_pgbeat.worker.start import admission
from celery_pgbeat.worker.start.admission import Admission
from tests.unit.worker.postgres_errors import MISSING_FUNCTION, NOT_NULL, refusal

JOB = uuid.uuid4()
TRUSTED = Start(JOB, 0, 0, uuid.uuid4(), "node")


class Queries:
    """Queries that only record their calls; `results` has what they return, True if nothing is given."""

    def __init__(self, **results: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._results = results

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append((name, {**keywords, "arguments": arguments}))
            return self._results.get(name, True)

        return call


class MainProcess:
    """A worker's main process with one start under way."""

    def __init__(self, is_main: bool = True) -> None:
        self.queue: list[Any] = []
        self.ending: set[Start] = set()
        received_jobs = SimpleNamespace(of=lambda task_id: [TRUSTED] if task_id == str(JOB) else [])
        self.app = SimpleNamespace(timezone="UTC")
        context = SimpleNamespace(
            is_main=is_main,
            node="node",
            app=self.app,
            received_jobs=received_jobs,
            put=self.queue.append,
            is_ending=self.ending.__contains__,
        )
        setattr(self.app, ATTRIBUTE, context)
        self.context = cast(WorkerContext, context)
        self.task = SimpleNamespace(app=self.app, acks_late=False, request_stack=SimpleNamespace(top=None))

    def written(self, queries: Queries | None = None) -> list[str]:
        """Write the reports in the queue; return the statements in their order."""
        queries = queries or Queries()
        for report in self.queue:
            write(report, cast(WorkerQueries, queries))
        return [name for name, _ in queries.calls]


@pytest.fixture
def main() -> MainProcess:
    return MainProcess()


def request(**changed: Any) -> Context:
    header = {"job": str(JOB), "run": 0}
    received_jobs = {"pgbeat": {"token": str(TRUSTED.token), "worker": "node"}}
    return Context({"id": str(JOB), "retries": 0, "pgbeat": header, "properties": received_jobs, **changed})


def revoked(main: MainProcess, terminated: bool = False, expired: bool = False) -> None:
    parent_signals.on_revoked(main.task, request(), terminated, 15, expired)


def test_a_child_that_died_is_lost_and_one_past_its_limit_failed(main: MainProcess) -> None:
    parent_signals.on_failure(main.task, str(JOB), WorkerLostError("signal 9"))
    parent_signals.on_failure(main.task, str(JOB), TimeLimitExceeded(7))
    parent_signals.on_failure(main.task, str(JOB), ValueError("the child has reported it"))
    parent_signals.on_failure(main.task, "another", WorkerLostError("signal 9"))
    assert ["give_up_start", "finish"] == main.written()


def test_a_failure_that_the_tracker_reports_is_not_reported_again(main: MainProcess) -> None:
    main.task.request_stack.top = request(**{admission.ATTRIBUTE: Admission(TRUSTED)})
    parent_signals.on_failure(main.task, str(JOB), WorkerLostError("of a task that this one waited for"))
    assert [] == main.written()


def test_a_child_process_reports_nothing_of_what_the_main_process_reports() -> None:
    main = MainProcess(is_main=False)
    parent_signals.on_failure(main.task, str(JOB), WorkerLostError("signal 9"))
    revoked(main, terminated=True)
    parent_signals.on_retry(main.task, request())
    assert [] == main.written()


@pytest.mark.parametrize("expired", [True, False])
def test_a_message_that_was_not_started_ends_the_job_that_waits(main: MainProcess, expired: bool) -> None:
    revoked(main, expired=expired)
    queries = Queries()
    main.written(queries)
    assert ["expired" if expired else "revoked"] == [call["arguments"][1] for _, call in queries.calls]


def test_a_terminated_start_is_finished_as_revoked(main: MainProcess) -> None:
    revoked(main, terminated=True)
    assert ["finish"] == main.written()


def test_a_terminated_start_that_its_child_has_reported_as_failed_is_overruled(main: MainProcess) -> None:
    revoked(main, terminated=True)
    assert ["finish", "revoke_failed"] == main.written(Queries(finish=False))


def test_a_start_that_its_own_worker_ends_is_reported_once_its_process_is_gone(main: MainProcess) -> None:
    main.ending.add(TRUSTED)
    revoked(main, terminated=True)
    assert [] == main.queue


def test_a_retry_that_the_main_process_sends_is_reported(main: MainProcess) -> None:
    parent_signals.on_retry(main.task, request(), reason=Retry(exc=WorkerLostError("signal 9"), when=5))
    assert ["retry"] == main.written()


@pytest.mark.parametrize(("acks_late", "statement"), [(True, "requeue"), (False, "give_up_start")])
def test_a_start_that_celery_cancels_waits_again_only_if_its_message_comes_back(
    main: MainProcess, acks_late: bool, statement: str
) -> None:
    main.task.acks_late = acks_late
    parent_signals.on_retry(main.task, request())
    assert [statement] == main.written()


def test_a_retry_that_the_tracker_reports_is_not_reported_again(main: MainProcess) -> None:
    parent_signals.on_retry(main.task, request(**{admission.ATTRIBUTE: Admission(TRUSTED)}), reason=Retry(when=1))
    assert [] == main.written()


def test_messages_of_other_tasks_are_not_reported(main: MainProcess) -> None:
    parent_signals.on_revoked(main.task, Context({"id": "x"}), True, 15, False)
    parent_signals.on_retry(main.task, Context({"id": "x"}))
    parent_signals.on_unknown(SimpleNamespace(app=main.app), SimpleNamespace(headers=None), "app.gone")
    assert [] == main.queue


def test_the_name_of_an_unknown_task_is_cut_like_any_error(main: MainProcess) -> None:
    message = SimpleNamespace(headers=vars(request()))

    parent_signals.on_unknown(SimpleNamespace(app=main.app), message, "no.such." + "x" * 3_000_000)

    assert [ERROR_LENGTH] == [len(report.error) for report in main.queue]
    assert main.queue[0].error.startswith("NotRegistered: no task is named 'no.such.x")


class Broker:
    """Takes messages back; `soon` is what the thread that consumes messages has to do."""

    def __init__(self) -> None:
        self.rejected: list[bool] = []
        self.soon: list[Callable[[], object]] = []
        self.is_gone = False

    def call_soon(self, function: Callable[[], object]) -> None:
        self.soon.append(function)

    def consume(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def reject(self, log: Any, errors: Any, requeue: bool) -> None:
        if self.is_gone:
            raise RuntimeError("the channel is closed")
        self.rejected.append(requeue)


def returned(main: MainProcess, requeue: bool) -> Broker:
    broker = Broker()
    parent_signals.requeue_first(main.context, TRUSTED, broker.reject, broker)(None, (), requeue)
    return broker


def report_thread(main: MainProcess, error: Exception | None = None) -> ReportQueue:
    """Have the report thread write the queue, while Postgres raises this error."""
    queue = ReportQueue(Refusals(lambda: 0))
    for report in main.queue:
        queue.add(report)

    def requeue(*_: Any) -> bool:
        if error is not None:
            raise error
        return True

    queue.write(cast(WorkerQueries, SimpleNamespace(requeue=requeue)))
    return queue


def test_a_message_goes_back_only_after_its_row_is_written_and_in_the_thread_that_consumes(main: MainProcess) -> None:
    broker = returned(main, requeue=True)
    assert [] == broker.soon
    report_thread(main)
    assert [] == broker.rejected, "the report thread does not touch the broker's channel"
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_that_cannot_go_back_does_not_end_the_thread_that_consumes(
    main: MainProcess, caplog: pytest.LogCaptureFixture
) -> None:
    broker = returned(main, requeue=True)
    broker.is_gone = True
    report_thread(main)
    broker.consume()
    assert f"The message of job {JOB} could not be sent back" in caplog.text


def test_a_message_does_not_go_back_while_postgres_is_out_of_reach(main: MainProcess) -> None:
    broker = returned(main, requeue=True)
    with pytest.raises(DatabaseUnavailable):
        report_thread(main, DatabaseUnavailable("away"))
    assert [] == broker.soon


def test_a_message_does_not_go_back_while_postgres_refuses_the_report_because_of_its_schema(main: MainProcess) -> None:
    broker = returned(main, requeue=True)
    assert 1 == len(report_thread(main, refusal(MISSING_FUNCTION))), "kept for another try"
    assert [] == broker.soon
    report_thread(main)
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_goes_back_although_postgres_can_never_take_the_report(main: MainProcess) -> None:
    broker = returned(main, requeue=True)
    report_thread(main, refusal(NOT_NULL))
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_rejected_for_good_is_rejected_at_once(main: MainProcess) -> None:
    assert [False] == returned(main, requeue=False).rejected
    assert [] == main.queue
