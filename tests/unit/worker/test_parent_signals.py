"""What the main process reports of starts whose own process cannot: it only queues the report, and never waits."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery.app.task import Context
from celery.exceptions import Retry
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Start, Unstarted, WorkerQueries
from celery_pgbeat.worker import admission, parent_signals
from celery_pgbeat.worker.admission import Admission
from celery_pgbeat.worker.context import ATTRIBUTE, WorkerContext
from celery_pgbeat.worker.tracker import ERROR_LENGTH
from tests.unit.worker.postgres_errors import MISSING_FUNCTION, NOT_NULL, refusal

JOB = uuid.uuid4()
TRUSTED = Start(JOB, 0, 0, uuid.uuid4(), "node")


class Spoken:
    """Queries that only record their calls; `answers` holds what they return, True if nothing is given."""

    def __init__(self, **answers: Any) -> None:
        self.words: list[tuple[str, Any]] = []
        self._answers = answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def speak(*arguments: Any, **keywords: Any) -> Any:
            self.words.append((name, {**keywords, "arguments": arguments}))
            answer = self._answers.get(name, True)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return speak


class House:
    """A worker's main process with one start under way."""

    def __init__(self, is_main: bool = True) -> None:
        self.box: list[Any] = []
        self.ending: set[Start] = set()
        report_thread = SimpleNamespace(put=lambda report, _: self.box.append(report))
        received_jobs = SimpleNamespace(of=lambda task_id: [TRUSTED] if task_id == str(JOB) else [])
        self.app = SimpleNamespace(timezone="UTC")
        context = SimpleNamespace(
            is_main=is_main,
            node="node",
            app=self.app,
            received_jobs=received_jobs,
            connection=SimpleNamespace(report_thread=report_thread),
            is_ending=self.ending.__contains__,
        )
        setattr(self.app, ATTRIBUTE, context)
        self.context = cast(WorkerContext, context)
        self.task = SimpleNamespace(app=self.app, acks_late=False, request_stack=SimpleNamespace(top=None))

    def spoken(self, reports: Spoken | None = None) -> list[str]:
        """Deliver what is in the box; return the statements in their order."""
        reports = reports or Spoken()
        for report in self.box:
            # A report is the end of an unstarted job, a method of WorkerQueries with its arguments, or a function.
            if isinstance(report, Unstarted):
                reports.words.append(("end_unstarted", dataclasses.asdict(report)))
                continue
            name = getattr(report, "func", report).__name__
            if hasattr(WorkerQueries, name):
                getattr(reports, name)(**report.keywords)
            else:
                report(cast(WorkerQueries, reports))
        return [word for word, _ in reports.words]


@pytest.fixture
def house() -> House:
    return House()


def request(**changed: Any) -> Context:
    header = {"job": str(JOB), "run": 0}
    received_jobs = {"pgbeat": {"token": str(TRUSTED.token), "worker": "node"}}
    return Context({"id": str(JOB), "retries": 0, "pgbeat": header, "properties": received_jobs, **changed})


def revoked(house: House, terminated: bool = False, expired: bool = False) -> None:
    parent_signals.on_revoked(house.task, request(), terminated, 15, expired)


def test_a_child_that_died_is_lost_and_one_past_its_limit_failed(house: House) -> None:
    parent_signals.on_failure(house.task, str(JOB), WorkerLostError("signal 9"))
    parent_signals.on_failure(house.task, str(JOB), TimeLimitExceeded(7))
    parent_signals.on_failure(house.task, str(JOB), ValueError("the child has told it"))
    parent_signals.on_failure(house.task, "another", WorkerLostError("signal 9"))
    assert ["lose", "finish"] == house.spoken()


def test_a_failure_that_the_tracker_tells_is_not_told_again(house: House) -> None:
    house.task.request_stack.top = request(**{admission.ATTRIBUTE: Admission(TRUSTED)})
    parent_signals.on_failure(house.task, str(JOB), WorkerLostError("of a task that this one waited for"))
    assert [] == house.spoken()


def test_a_child_process_does_not_speak_for_the_main_one() -> None:
    house = House(is_main=False)
    parent_signals.on_failure(house.task, str(JOB), WorkerLostError("signal 9"))
    revoked(house, terminated=True)
    parent_signals.on_retry(house.task, request())
    assert [] == house.spoken()


@pytest.mark.parametrize("expired", [True, False])
def test_a_message_that_was_not_started_ends_the_job_that_waits(house: House, expired: bool) -> None:
    revoked(house, expired=expired)
    reports = Spoken()
    house.spoken(reports)
    assert ["expired" if expired else "revoked"] == [words["state"] for _, words in reports.words]


def test_a_terminated_start_is_finished_as_revoked(house: House) -> None:
    revoked(house, terminated=True)
    assert ["finish"] == house.spoken()


def test_a_terminated_start_whose_child_had_spoken_is_overruled(house: House) -> None:
    revoked(house, terminated=True)
    assert ["finish", "overrule"] == house.spoken(Spoken(finish=False))


def test_a_start_that_its_own_worker_ends_is_reported_once_its_process_is_gone(house: House) -> None:
    house.ending.add(TRUSTED)
    revoked(house, terminated=True)
    assert [] == house.box


def test_a_retry_that_the_main_process_sends_is_told(house: House) -> None:
    parent_signals.on_retry(house.task, request(), reason=Retry(exc=WorkerLostError("signal 9"), when=5))
    assert ["retry"] == house.spoken()


@pytest.mark.parametrize(("acks_late", "word"), [(True, "requeue"), (False, "lose")])
def test_a_start_that_celery_cancels_waits_again_only_if_its_message_comes_back(
    house: House, acks_late: bool, word: str
) -> None:
    house.task.acks_late = acks_late
    parent_signals.on_retry(house.task, request())
    assert [word] == house.spoken()


def test_a_retry_that_the_tracker_tells_is_not_told_again(house: House) -> None:
    parent_signals.on_retry(house.task, request(**{admission.ATTRIBUTE: Admission(TRUSTED)}), reason=Retry(when=1))
    assert [] == house.spoken()


def test_messages_of_somebody_else_are_nobody_s_business(house: House) -> None:
    parent_signals.on_revoked(house.task, Context({"id": "x"}), True, 15, False)
    parent_signals.on_retry(house.task, Context({"id": "x"}))
    parent_signals.on_unknown(SimpleNamespace(app=house.app), SimpleNamespace(headers=None), "app.gone")
    assert [] == house.box


def test_the_name_of_a_task_that_nobody_has_is_kept_as_short_as_any_error(house: House) -> None:
    message = SimpleNamespace(headers=vars(request()))

    parent_signals.on_unknown(SimpleNamespace(app=house.app), message, "no.such." + "x" * 3_000_000)

    assert [ERROR_LENGTH] == [len(report.error) for report in house.box]
    assert house.box[0].error.startswith("NotRegistered: no task is named 'no.such.x")


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


def returned(house: House, requeue: bool) -> Broker:
    broker = Broker()
    parent_signals.returning(house.context, TRUSTED, broker.reject, broker)(None, (), requeue)
    return broker


def test_a_message_goes_back_only_once_its_row_waits_for_it(house: House) -> None:
    broker = returned(house, requeue=True)
    assert [] == broker.rejected
    assert ["requeue"] == house.spoken()
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_goes_back_in_the_thread_that_consumes_messages(house: House) -> None:
    broker = returned(house, requeue=True)
    house.spoken()
    assert [] == broker.rejected, "the report_thread's thread does not touch the broker's channel"
    assert 1 == len(broker.soon)


def test_a_message_that_cannot_go_back_does_not_end_the_thread_that_consumes(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    broker = returned(house, requeue=True)
    broker.is_gone = True
    house.spoken()
    broker.consume()
    assert f"The message of job {JOB} could not be sent back" in caplog.text


def test_a_message_does_not_go_back_while_postgres_is_away(house: House) -> None:
    broker = returned(house, requeue=True)
    with pytest.raises(DatabaseUnavailable):
        house.spoken(Spoken(requeue=DatabaseUnavailable("away")))
    assert [] == broker.soon


def test_a_message_does_not_go_back_while_postgres_refuses_the_report_because_of_its_schema(house: House) -> None:
    broker = returned(house, requeue=True)
    with pytest.raises(DBAPIError):  # so the report thread keeps it and tries it again
        house.spoken(Spoken(requeue=refusal(MISSING_FUNCTION)))
    assert [] == broker.soon
    house.spoken()
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_goes_back_although_postgres_can_never_take_the_report(house: House) -> None:
    broker = returned(house, requeue=True)
    house.spoken(Spoken(requeue=refusal(NOT_NULL)))
    broker.consume()
    assert [True] == broker.rejected


def test_a_message_rejected_for_good_is_rejected_at_once(house: House) -> None:
    assert [False] == returned(house, requeue=False).rejected
    assert [] == house.box
