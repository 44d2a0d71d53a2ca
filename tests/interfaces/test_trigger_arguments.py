"""Jobs that are triggered with arguments of their own, in SQL and Python."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.errors import InvalidPeriodicTask, JobInTheWay
from tests.harness.session import Session, reason


def arguments(session: Session, job: Any) -> tuple[Any, Any]:
    message = session.value("select message from pgbeat.active_job where id = %s", str(job))
    return message["args"], message["kwargs"]


def test_sql_gives_a_job_arguments_and_keeps_those_of_the_row_for_what_is_omitted(session: Session) -> None:
    session.insert("a", args="[1]", kwargs='{"a": 1}', overlap="allow")
    calls = {
        "'a'": ([1], {"a": 1}),
        "'a', true": ([1], {"a": 1}),
        "'a', args => '[2]'": ([2], {"a": 1}),
        """'a', kwargs => '{"b": 2}'""": ([1], {"b": 2}),
        "'a', false, '[]', '{}'": ([], {}),
    }

    for call, wanted in calls.items():
        assert wanted == arguments(session, session.value(f"select pgbeat.trigger({call})"))
    assert ([1], {"a": 1}) == (session.task("a")["args"], session.task("a")["kwargs"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("args => '{}'", "args is {}, not a JSON array"),
        ("kwargs => '[]'", "kwargs is [], not a JSON object"),
        ("args => 'null'", "args is null, not a JSON array"),
        ("args => jsonb_build_array(repeat('x', 40000))", "args and kwargs have 70013 bytes together, more than 65536"),
        ("args => (repeat('[', 102) || repeat(']', 102))::jsonb", "args is nested more than 100 levels deep"),
        ("args => '[1e310]'", "args has a number of more than 309 digits"),
    ],
)
def test_sql_refuses_the_arguments_that_a_row_may_not_have(session: Session, given: str, said: str) -> None:
    session.insert("a", kwargs=json.dumps({"a": "x" * 30_000}))

    error = session.refusal(f"select pgbeat.trigger('a', {given})")

    assert "22023" == error.pgcode
    assert said in reason(error)
    assert [] == session.rows("select id from pgbeat.job")


def test_no_error_quotes_the_arguments_of_a_sensitive_row(session: Session, beat: PgBeat) -> None:
    session.insert("a", sensitive=True)

    assert "args is <sensitive>, not a JSON array" == reason(session.refusal("select pgbeat.trigger('a', args => '7')"))
    with pytest.raises(InvalidPeriodicTask, match="kwargs\\[<sensitive>\\] is an object") as error:
        beat.trigger("a", kwargs={"patient": object()})
    assert "patient" not in str(error.value)


def test_arguments_that_a_beat_computes_when_it_sends_cannot_be_given(session: Session) -> None:
    session.insert("a")
    session.rows("update pgbeat.periodic_task set lazy = true")

    error = session.refusal("select pgbeat.trigger('a', args => '[1]')")

    assert "22023" == error.pgcode
    assert "the arguments of 'a' are computed when it is sent (BeatLazyFunc)" == reason(error)
    assert session.value("select pgbeat.trigger('a')")


def test_python_writes_arguments_as_celery_does_and_joins_the_transaction_of_the_caller(
    beat: PgBeat, session: Session
) -> None:
    beat.schedule("a", "t", args=[1], kwargs={"a": 1}, overlap="allow")
    moment = datetime(2026, 12, 24, tzinfo=timezone.utc)

    job = beat.trigger("a", args=[moment, Decimal("1.5")])
    other = beat.trigger("a", kwargs={})
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").connect() as theirs:
        third = beat.trigger("a", args=(3,), kwargs={"c": 3}, connection=theirs)
        theirs.rollback()

    beat.update("a", args=[moment, Decimal("1.5")])
    assert (session.task("a")["args"], {"a": 1}) == arguments(session, job)
    assert ([1], {}) == arguments(session, other)
    assert third not in {found.id for found in beat.jobs("a")}


def test_python_refuses_what_is_no_json_too_large_or_in_the_way(beat: PgBeat) -> None:
    beat.schedule("a", "t", kwargs={"a": "x" * 30_000})

    with pytest.raises(InvalidPeriodicTask, match=r"args\[0\] is a set that is not JSON"):
        beat.trigger("a", args=[{1}])
    with pytest.raises(InvalidPeriodicTask, match="args is a str, not a list or tuple"):
        beat.trigger("a", args="abc")
    with pytest.raises(InvalidPeriodicTask, match="bytes together, more than 65536"):
        beat.trigger("a", args=["x" * 70_000])
    with pytest.raises(InvalidPeriodicTask, match="bytes together, more than 65536"):
        beat.trigger("a", args=["x" * 40_000])  # together with those of the row
    beat.trigger("a", args=[1])
    with pytest.raises(JobInTheWay):
        beat.trigger("a", args=[2])


def test_the_history_keeps_the_arguments_of_a_manual_job_that_has_not_succeeded(session: Session) -> None:
    session.insert("a")
    job = session.value("select pgbeat.trigger('a', args => '[7]')")
    for state, kept in (("succeeded", None), ("failed", {"args": [7], "kwargs": {}})):
        session.rows("begin")
        session.rows(
            "with gone as (delete from pgbeat.active_job as job where id = %s returning job) "
            "insert into pgbeat.finished_job select final.* from gone "
            "cross join lateral pgbeat.archived(job, %s) as final",
            job,
            state,
        )
        assert kept == session.value("select arguments from pgbeat.finished_job where id = %s", job)
        session.rows("rollback")
