"""Nothing shows the arguments of a sensitive row: no message, `repr`, error or command; without a database."""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import fields, replace
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, states
from celery.app.task import Context
from celery.exceptions import Reject, Retry
from click.testing import CliRunner

from celery_pgbeat.api.exchange import EMPTY, differences, line_of
from celery_pgbeat.beat.entries import RowEntry
from celery_pgbeat.beat.send.messages import JobEntry, Refusal, Refused, options_of
from celery_pgbeat.cli import main
from celery_pgbeat.cli.output.values import row_as_dict
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare import define
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.beat_queries import Recovered
from celery_pgbeat.postgres.worker_queries import Start
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.redaction import MASK, broker_error, error_text, masked_broker
from celery_pgbeat.worker.report.tracker import outcome, unwound
from celery_pgbeat.worker.start.guard import guard
from celery_pgbeat.worker.start.message import is_sensitive
from tests.harness.outbox import app_of, job, outbox, taken_over
from tests.unit.planning.rows import due

SECRET = "patient-4711"
NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SAID = {"args": json.dumps([SECRET]), "kwargs": json.dumps({SECRET: SECRET})}
START = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
RECORD: dict[str, Any] = {**EMPTY, "name": "nightly", "task": "shop.report", "schedule": None, "managed_by": "api"}


class Leak(Exception):
    """Says what it was called with."""


def row(**columns: Any) -> PeriodicTask:
    names = [field.name for field in fields(PeriodicTask)]
    values = {"name": "nightly", "args": [SECRET], "kwargs": {SECRET: 1}, "options": {}}
    return PeriodicTask(**{**dict.fromkeys(names), **values, **columns})


def test_the_message_of_a_sensitive_row_shows_the_mask_whatever_the_row_would_show() -> None:
    options = options_of(job(sensitive=True, options={"argsrepr": SECRET, "kwargsrepr": None}, **SAID), NOON)

    assert (MASK, MASK) == (options["argsrepr"], options["kwargsrepr"])
    assert SECRET not in repr(options)


def test_the_header_says_that_a_row_is_sensitive_and_nothing_of_others() -> None:
    ours = options_of(job(sensitive=True), NOON)["headers"]
    theirs = options_of(job(), NOON)["headers"]

    assert is_sensitive({"headers": ours})
    assert not is_sensitive({"headers": theirs})
    assert "sensitive" not in theirs["pgbeat"]
    assert "argsrepr" not in options_of(job(), NOON)


@pytest.mark.parametrize("header", [None, "yes", {}, {"sensitive": "no"}])
def test_a_header_that_does_not_say_so_is_not_sensitive(header: Any) -> None:
    assert not is_sensitive({"pgbeat": header})


def test_a_job_that_was_taken_over_is_as_sensitive_as_it_was_made() -> None:
    message = {"args": [SECRET], "kwargs": {}, "priority": None, "options": {}, "schedule": None, "timezone": None}
    given = Recovered(
        uuid.uuid4(), "nightly", NOON, "schedule", "shop.report", None, json.dumps(message), None, 0, None
    )

    for sensitive in (False, True):
        made = replace(given, message=json.dumps({**message, "sensitive": sensitive}))
        assert sensitive == taken_over(made).sensitive


def test_no_repr_of_what_a_beat_holds_shows_arguments() -> None:
    held = [job(sensitive=True, **SAID), due(NOON, NOON, **SAID)]
    held.append(define("nightly", "shop.report", "@daily", {"args": [SECRET], "sensitive": True}, Settings()))

    assert [] == [one for one in held if SECRET in repr(one)]


def test_no_repr_of_a_celery_entry_shows_arguments_of_a_sensitive_row() -> None:
    app = Celery("shop", set_as_current=False)
    plain, masked = (JobEntry(job(sensitive=sensitive, **SAID), app, NOON) for sensitive in (False, True))
    entry = RowEntry(name="nightly", task="shop.report", schedule=60, args=[SECRET], app=app)
    assert SECRET in repr(entry)
    entry.sensitive = True

    assert SECRET in repr(plain)
    assert "nightly" in repr(masked)
    assert SECRET not in repr(masked)
    assert SECRET not in repr(entry)


def test_the_repr_of_a_row_shows_all_but_the_arguments_of_a_sensitive_one() -> None:
    shown = repr(row(sensitive=True))

    assert shown.startswith(f"PeriodicTask(name='nightly', task=None, args={MASK}, kwargs={MASK}, queue=None")
    assert SECRET not in shown
    assert f"args=['{SECRET}'], kwargs={{'{SECRET}': 1}}" in repr(row(sensitive=False))


def test_the_shell_reveals_arguments_of_a_sensitive_row_only_when_told() -> None:
    assert (MASK, MASK, True) == tuple(
        row_as_dict(row(sensitive=True))[name] for name in ("args", "kwargs", "sensitive")
    )
    assert [SECRET] == row_as_dict(row(sensitive=True), reveal=True)["args"]
    assert [SECRET] == row_as_dict(row(sensitive=False))["args"]


@pytest.mark.parametrize(("old", "new"), [(True, True), (False, True), (True, False)])
def test_the_differences_of_two_rows_are_shown_without_the_arguments_of_a_sensitive_one(old: bool, new: bool) -> None:
    before = {**RECORD, "args": [SECRET], "sensitive": old}
    after = {**RECORD, "args": ["other"], "queue": "q", "sensitive": new}

    changes = differences(before, after)

    assert (MASK, MASK) == changes["args"]
    assert (None, "q") == changes["queue"]
    assert "kwargs" not in changes


def test_an_exported_line_is_complete() -> None:
    line = json.loads(line_of({**RECORD, "args": [SECRET], "sensitive": True}))

    assert ([SECRET], True) == (line["args"], line["sensitive"])


class Telling:
    """Cannot be JSON, and says what it holds."""

    def __json__(self) -> Any:
        raise ValueError(SECRET)


@pytest.mark.parametrize(
    "arguments",
    [{"args": [Telling()]}, {"kwargs": {SECRET: Telling()}}, {"kwargs": {uuid.uuid5(uuid.NAMESPACE_URL, SECRET): 1}}],
)
def test_an_error_of_a_declaration_does_not_quote_sensitive_arguments(arguments: dict[str, Any]) -> None:
    said = []
    for sensitive in (False, True):
        with pytest.raises(InvalidPeriodicTask) as refused:
            define("nightly", "shop.report", "@daily", {**arguments, "sensitive": sensitive}, Settings())
        said.append(str(refused.value))

    secrets = (SECRET, str(uuid.uuid5(uuid.NAMESPACE_URL, SECRET)))
    assert any(secret in said[0] for secret in secrets)
    assert not any(secret in said[1] for secret in secrets)
    assert MASK in said[1]


def test_sensitive_is_true_or_false() -> None:
    with pytest.raises(InvalidPeriodicTask, match="sensitive is 'yes', not true or false"):
        define("nightly", "shop.report", "@daily", {"sensitive": "yes"}, Settings())


@pytest.mark.parametrize("column", ["args", "kwargs"])
@pytest.mark.parametrize("given", [f"{SECRET}", f'"{SECRET}"'])
def test_the_shell_does_not_quote_sensitive_arguments_that_are_wrong(column: str, given: str) -> None:
    add = ["--url", "postgresql://nowhere/x", "add", "n", "--task", "t", f"--{column}", given]

    assert SECRET in CliRunner().invoke(main, add).output
    refused = CliRunner().invoke(main, [*add, "--sensitive"])
    assert 2 == refused.exit_code
    assert SECRET not in refused.output
    assert MASK in refused.output


def test_a_refusal_says_the_class_of_an_error_and_of_others_its_text_too() -> None:
    error = Leak(SECRET)
    refused = Refusal(uuid.uuid4(), "nightly", error, sensitive=True, what=Refused.BY_BROKER)

    assert f"Leak: {SECRET}" == error_text(error)
    assert f"its message cannot be made: Leak: {SECRET}" == Refusal(uuid.uuid4(), "open", error).reason
    assert f"refused by the broker: Leak: {MASK}" == refused.reason


@pytest.mark.parametrize(
    ("state", "retval"),
    [
        (states.FAILURE, Leak(SECRET)),
        (states.RETRY, Retry(exc=Leak(SECRET), when=7)),
        (states.RETRY, Retry(message=SECRET, when=7)),
        (states.REJECTED, Reject(SECRET, requeue=False)),
        (states.REJECTED, Reject(SECRET, requeue=True)),
        (states.REJECTED, Reject(Leak(SECRET))),
    ],
)
def test_the_tracker_reports_no_text_of_a_sensitive_jobs_error(state: str, retval: Any) -> None:
    task = SimpleNamespace(acks_late=True, app=Celery(set_as_current=False))

    def error(hiding: bool) -> str:
        report = outcome(task, START, state, retval, hiding)
        assert report is not None
        return str(report.error)

    assert SECRET in error(False)
    assert SECRET not in error(True)
    assert error(True).endswith(f": {MASK}")


def test_a_run_that_something_stronger_ended_tells_no_text_either() -> None:
    def end(hiding: bool) -> Any:
        try:
            raise SystemExit(SECRET)
        except SystemExit:
            return unwound(START, hiding)

    assert (f"SystemExit: {SECRET}", f"SystemExit: {MASK}") == (end(False).error, end(True).error)


def test_celery_makes_the_messages_of_retries_with_the_mask() -> None:
    app = Celery("shop", set_as_current=False)

    @app.task(name="shop.report", shared=False)
    def report(*args: Any) -> None: ...

    app.finalize()
    task = app.tasks["shop.report"]
    guard(task, SimpleNamespace(app=app))  # type: ignore[arg-type]

    def options(**header: Any) -> Any:
        called = {"id": "1", "args": [SECRET], "kwargs": {}, "delivery_info": {}, "pgbeat": header}
        return task.signature_from_request(Context(called), countdown=1, retries=1).options

    masked, plain = options(sensitive=True), options()

    assert (MASK, MASK, {"pgbeat": {"sensitive": True}}) == (
        masked["argsrepr"],
        masked["kwargsrepr"],
        masked["headers"],
    )
    assert (1, 1) == (masked["countdown"], masked["retries"])
    assert masked.keys() - plain.keys() == {"argsrepr", "kwargsrepr"}


def test_a_shape_that_cannot_be_learnt_is_told_without_the_error_of_a_sensitive_job(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from celery_pgbeat.beat.send.rendering import renderer

    monkeypatch.setattr(renderer, "build_template", partial(_leak))
    caplog.set_level(logging.DEBUG)
    made: Any = renderer.Renderer.__new__(renderer.Renderer)
    made._sender = None

    for sensitive in (False, True):
        caplog.clear()
        assert made._built(job(sensitive=sensitive, **SAID), None, None, None) is None
        assert (SECRET in caplog.text) is not sensitive
        assert "was not built" in caplog.text


@pytest.mark.parametrize("error", [ConnectionResetError(SECRET), Leak(SECRET)])
def test_an_error_of_a_batch_that_holds_a_sensitive_message_is_told_by_its_class(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    for sensitive in (False, True):
        caplog.clear()
        with outbox(app_of("memory://")) as ours:
            ours.broker.ready()
            ours.publisher._disconnect_after(error, [job(), job(sensitive=sensitive)])

        assert type(error).__name__ in caplog.text or not sensitive
        assert (SECRET in caplog.text) is not sensitive


def _leak(*_: Any) -> Any:
    raise Leak(SECRET)


@pytest.mark.parametrize(
    ("urls", "shown"),
    [
        ("redis://:s3@cret@localhost:6379/0", "redis://***@localhost:6379/0"),
        ("amqp://shop:s3cret@one//;amqp://shop:s3@cret@two//", "amqp://***@one//;amqp://***@two//"),
        ("sentinel://:s3;c@ret@one:1;sentinel://two:1", "sentinel://***@one:1;sentinel://two:1"),
        ("redis://:s3/cret@localhost", "redis://***@localhost"),
        ("memory://", "memory://"),
    ],
)
def test_a_brokers_password_is_shown_in_no_part(urls: str, shown: str) -> None:
    assert shown == masked_broker(urls)


@pytest.mark.parametrize(
    "urls",
    ["redis://:s3/cret@localhost", "redis://shop:12/cret@localhost", "amqp://a:b@one//;amqp://:s3#cret@two//"],
)
def test_an_error_about_a_password_that_ends_too_early_says_how_to_write_it(urls: str) -> None:
    said = broker_error(ValueError("Port could not be cast to integer value as 's3'"), urls)

    assert (True, False) == ("write @ as %40, / as %2F" in said, "s3" in said)
    assert said == broker_error(OSError(), [urls])
    assert "OSError: refused" == broker_error(OSError("refused"), "redis://:s3%2Fcret@localhost/0")
