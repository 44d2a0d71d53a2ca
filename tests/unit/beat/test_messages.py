from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from kombu.utils.json import loads

from celery_pgbeat.beat.send.messages import JobEntry, OutgoingJob, decoded, delay_of, options_of
from tests.harness import outbox

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


def job(**changes: Any) -> OutgoingJob:
    return outbox.job(**{"id": uuid.UUID(int=7), "task": "app.probe", "scheduled_for": NOON, **changes})


A_UUID = '{"__type__": "uuid", "__value__": {"hex": "00000000000000000000000000000007"}}'


@pytest.mark.parametrize("text", ["[1]", '{"a": [null]}', "7", " [1]", "[1] ", A_UUID])
def test_a_value_is_read_as_kombu_reads_it(text: str) -> None:
    assert loads(text) == decoded(text)


@pytest.mark.parametrize("text", ["", " ", "[1", "[1] 2", "x"])
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra data"):
        decoded(text)


def test_headers_that_are_celerys_own_never_come_from_a_row() -> None:
    options = options_of(job(options={"headers": {"task": "app.another", "id": "1", "tenant": "x"}}), NOON)

    assert {"tenant", "periodic_task_name", "pgbeat"} == set(options["headers"])


def test_our_headers_are_added_to_the_rows_own() -> None:
    headers = options_of(job(options={"headers": {"tenant": "x"}}), NOON)["headers"]

    assert {
        "tenant": "x",
        "periodic_task_name": "nightly",
        "pgbeat": {
            "periodic_task": "nightly",
            "job": str(uuid.UUID(int=7)),
            "scheduled_for": "2026-12-07T12:00:00+00:00",
            "origin": "schedule",
            "run": 0,
        },
    } == headers


def test_making_a_message_leaves_the_stored_options_as_they_were() -> None:
    stored = {"headers": {"tenant": "x"}, "expires": 60}
    options_of(job(options=stored), NOON)

    assert stored == {"headers": {"tenant": "x"}, "expires": 60}


def test_durations_become_instants_by_the_databases_clock() -> None:
    options = options_of(job(options={"expires": 60, "countdown": 5}), NOON)

    assert (NOON + timedelta(seconds=60), NOON + timedelta(seconds=5)) == (options["expires"], options["eta"])
    assert "countdown" not in options
    assert delay_of(options, NOON) == 5.0


def test_max_run_time_is_a_soft_limit_and_a_hard_one_at_most_a_minute_above() -> None:
    short = options_of(job(max_run_time=timedelta(seconds=5)), NOON)
    long = options_of(job(max_run_time=timedelta(minutes=30)), NOON)

    assert (short["soft_time_limit"], short["time_limit"]) == (5.0, 10.0)
    assert (long["soft_time_limit"], long["time_limit"]) == (1800.0, 1860.0)


def test_queue_and_priority_are_the_columns() -> None:
    options = options_of(job(queue="q2", priority=7), NOON)

    assert (options["queue"], options["priority"]) == ("q2", 7)


def test_celerys_json_types_come_back_in_the_arguments() -> None:
    entry = JobEntry(job(args='[{"__type__": "datetime", "__value__": "2026-12-07T12:00:00+00:00"}]'), Celery(), NOON)

    assert entry.args == [NOON]


def test_monitors_find_the_schedule_as_one_of_celerys_own() -> None:
    app = Celery(set_as_current=False)

    assert "*/5 * * * *" in str(JobEntry(job(), app, NOON).schedule)
    assert timedelta(seconds=30) == JobEntry(job(schedule="every 30s"), app, NOON).schedule.run_every
    assert "<schedule: 0 0 L * *>" == repr(JobEntry(job(schedule="0 0 L * *"), app, NOON).schedule)


def test_a_rows_own_options_cannot_block_the_beat() -> None:
    wished = {"retry": True, "retry_policy": {"max_retries": 10**6, "interval_max": 3600}, "timeout": 3600}

    options = options_of(job(options=wished), NOON)

    assert (3, 0.2, 5.0) == (
        options["retry_policy"]["max_retries"],
        options["retry_policy"]["interval_max"],
        options["timeout"],
    )
