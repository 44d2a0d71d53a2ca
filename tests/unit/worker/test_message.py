"""Our header in a message, and the token that travels with it inside a worker."""

from __future__ import annotations

import math
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.app.task import Context
from celery.worker import state

from celery_pgbeat.postgres.worker_queries import MessageCopy
from celery_pgbeat.worker.start.message import ReceivedJobs, assign_token, assigned_start, copy_of
from tests.harness.values import UNSHOWABLE, nested

JOB = uuid.UUID("7e5cf5a2-7c3c-5f0e-9d2a-1f5f3d0f8a11")


def fields(**changed: Any) -> dict[str, Any]:
    header = {"periodic_task": "nightly", "job": str(JOB), "scheduled_for": "…", "origin": "schedule", "run": 3}
    return {"id": str(JOB), "task": "app.probe", "retries": 2, "pgbeat": header, **changed}


class Request(SimpleNamespace):
    """What Celery's own request is to us: a dict, and something that can be referred to weakly."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_our_header_is_read() -> None:
    assert MessageCopy(JOB, 3, 2) == copy_of(fields())


def test_our_header_is_read_from_a_message_of_celery_s_first_protocol() -> None:
    found = fields()
    assert MessageCopy(JOB, 3, 2) == copy_of({**found, "pgbeat": None, "headers": {"pgbeat": found["pgbeat"]}})


def test_a_message_without_our_header_is_not_ours() -> None:
    assert copy_of({"id": str(JOB), "task": "app.probe", "retries": 0, "headers": None}) is None


def test_our_header_beside_another_id_is_not_ours() -> None:
    assert copy_of(fields(id=str(uuid.uuid4()))) is None


def test_a_replacement_under_our_id_is_not_ours() -> None:
    assert copy_of(fields(replaced_task_nesting=1)) is None


@pytest.mark.parametrize(
    "header",
    [
        "nightly",
        1,
        {"job": "x", "run": 0},
        {"job": str(JOB)},
        {"job": 1, "run": 0},
        {"job": str(JOB), "run": math.inf},
        {"job": str(JOB), "run": 2**40},
        {"job": str(JOB), "run": -1},
    ],
)
def test_a_header_that_only_has_our_name_is_not_ours_and_logged(header: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert copy_of(fields(pgbeat=header)) is None
    assert "is not celery-pgbeat's: ignored" in caplog.text


def test_an_id_that_cannot_be_shown_is_not_ours_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert copy_of(fields(pgbeat=1, id=nested(UNSHOWABLE))) is None
    assert "of task something nested too deeply to be shown is not celery-pgbeat's: ignored" in caplog.text


@pytest.mark.parametrize(("task", "read"), [("app.probe", "app.probe"), (None, None), (7, None), ("a\0", None)])
def test_a_copy_has_the_task_of_its_message(task: Any, read: str | None) -> None:
    copy = copy_of(fields(task=task))
    assert copy is not None
    assert read == copy.task


def test_a_child_reads_the_start_that_its_main_process_assigned() -> None:
    request = Request(request_dict=fields(properties={"priority": 4}))
    start = assign_token(request, "node")
    assert start is not None
    assert start == assigned_start(vars(Context(request.request_dict)), copy_of(request.request_dict) or start)
    assert 4 == request.request_dict["properties"]["priority"]


def test_each_copy_of_a_message_gets_a_token_of_its_own() -> None:
    assert assign_token(Request(request_dict=fields()), "n") != assign_token(Request(request_dict=fields()), "n")


def test_the_properties_of_the_broker_never_contain_the_token() -> None:
    properties: dict[str, Any] = {"priority": 4}
    assign_token(Request(request_dict=fields(properties=properties)), "node")
    assert {"priority": 4} == properties


def test_the_message_of_a_retry_has_our_header_and_not_the_token() -> None:
    app = Celery(set_as_current=False)
    task = app.tasks["celery.backend_cleanup"]
    request = Request(request_dict=fields(properties={}, args=[], kwargs={}, delivery_info={}))
    start = assign_token(request, "node")
    assert start is not None
    options = task.signature_from_request(Context(request.request_dict), retries=3).options
    assert str(JOB) == options["headers"]["pgbeat"]["job"]
    assert str(start.token) not in repr(options)


def test_a_request_without_a_token_has_no_start() -> None:
    assert assigned_start(fields(), MessageCopy(JOB, 3, 2)) is None
    assert assign_token(Request(request_dict={"id": str(JOB)}), "node") is None


def test_only_requests_that_a_pool_process_has_accepted_run() -> None:
    received_jobs = ReceivedJobs()
    request, other = Request(request_dict=fields()), Request(request_dict=fields())
    start, second = assign_token(request, "n"), assign_token(other, "n")
    assert start is not None
    assert second is not None
    received_jobs.add(request, start)
    received_jobs.add(other, second)
    assert [] == received_jobs.running()
    state.active_requests.add(request)
    assert [start] == received_jobs.running()
    assert [(start, request)] == received_jobs.under_way()
    assert {start, second} == set(received_jobs.of(str(JOB)))
    del request, other
    assert [] == received_jobs.of(str(JOB))
