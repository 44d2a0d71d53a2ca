"""Rows whose arguments nobody should see, through the statements and the doors."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat import PgBeat
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.redaction import MASK
from tests.harness.outbox import taken_over
from tests.harness.session import Session, reason
from tests.harness.shell import Run
from tests.harness.ticks import HOUR, beat, decided, make_due, submit

SECRET = "patient-4711"


def schedule(session: Session, **given: Any) -> dict[str, Any]:
    arguments = {"name": "nightly", "task": "app.probe", "args": json.dumps([SECRET]), "sensitive": True, **given}
    return session.row(
        f"select * from pgbeat.schedule({', '.join(f'{name} => %s' for name in arguments)})", *arguments.values()
    )


def test_a_row_is_not_sensitive_unless_said(session: Session) -> None:
    assert session.insert("open")["sensitive"] is False


def test_to_make_a_row_sensitive_is_a_change_of_its_definition_and_plans_nothing_anew(session: Session) -> None:
    at = datetime(2030, 1, 1, tzinfo=timezone.utc)
    before = session.insert("nightly", schedule="@daily", next_run_at=at)

    session.rows("update pgbeat.periodic_task set sensitive = true")

    after = session.task("nightly")
    assert (at, before["revision"] + 1, after["revision"]) == (
        after["next_run_at"],
        after["revision"],
        after["planned_revision"],
    )


@pytest.mark.parametrize("column", ["args", "kwargs"])
def test_what_postgres_refuses_does_not_quote_sensitive_arguments(session: Session, column: str) -> None:
    wrong = {"args": json.dumps([SECRET]), "kwargs": json.dumps({"a": SECRET}), column: json.dumps(SECRET)}

    assert SECRET in str(session.refusal(*_call({**wrong, "sensitive": False})))
    refused = session.refusal(*_call({**wrong, "sensitive": True}))
    assert reason(refused).startswith(f"{column} is {MASK}, not a JSON")
    assert SECRET not in str(refused)


@pytest.mark.parametrize("wrong", [{"priority": 256}, {"sensitive": None}, {"max_runs": 0}, {"overlap": None}])
def test_no_refusal_of_another_column_shows_the_row(session: Session, wrong: dict[str, Any]) -> None:
    refused = session.refusal(*_call({"args": json.dumps([SECRET]), "sensitive": True, **wrong}))

    assert "22023" == refused.pgcode
    assert SECRET not in str(refused)


def _call(arguments: dict[str, Any]) -> tuple[Any, ...]:
    given = {"name": "nightly", "task": "app.probe", **arguments}
    return f"select pgbeat.schedule({', '.join(f'{name} => %s' for name in given)})", *given.values()


def test_a_submitted_job_carries_it_even_after_its_row_has_changed(migrated_database: str, session: Session) -> None:
    store = beat(migrated_database)
    make_due(store, "nightly", args=[SECRET], sensitive=True)
    (row,) = store.mark(10)
    assert row.sensitive
    store.submit([decided(row)], "UTC", True, True)
    session.rows("update pgbeat.periodic_task set sensitive = false")
    session.rows("update pgbeat.active_job set marked_at = null, marked_by = null, check_at = default")

    jobs = [taken_over(recovered) for recovered in store.recover(10, HOUR)]

    assert [True] == [job.sensitive for job in jobs]


def test_a_job_that_waits_carries_it_as_well(migrated_database: str, session: Session) -> None:
    store = beat(migrated_database)
    make_due(store, "nightly", args=[SECRET], sensitive=True, overlap="buffer_one")
    session.rows("select pgbeat.trigger('nightly')")
    (row,) = store.mark(10)
    submit(store, [row])

    assert [True, True] == [
        row["sensitive"] for row in session.rows("select message -> 'sensitive' as sensitive from pgbeat.active_job")
    ]


def test_a_lost_job_that_starts_after_all_is_still_sensitive(session: Session) -> None:
    schedule(session)
    session.rows("select pgbeat.trigger('nightly')")

    restart_data = session.value("select pgbeat.restart_data_of(job) from pgbeat.active_job as job")

    assert restart_data["message"]["sensitive"] is True


def test_python_declares_it_and_shows_arguments_in_no_repr_and_no_error(migrated_database: str) -> None:
    pgbeat = PgBeat(url=migrated_database)
    row = pgbeat.schedule("nightly", "app.probe", "@daily", args=[SECRET], sensitive=True)
    pgbeat.schedule_many([{"name": "many", "task": "app.probe", "args": [SECRET], "sensitive": True}])

    assert row.sensitive
    assert pgbeat.get("many").sensitive
    assert [SECRET] == row.args
    assert SECRET not in repr(row) + repr(pgbeat.list())
    with pytest.raises(InvalidPeriodicTask) as refused:
        pgbeat._queries.schedule([{"name": "x", "task": "y", "args": SECRET, "kwargs": {}, "sensitive": True}])
    assert SECRET not in str(refused.value)


def test_show_masks_arguments_unless_told_to_reveal_them(session: Session, run: Run) -> None:
    schedule(session, kwargs=json.dumps({"a": SECRET}))

    for flags in ([], ["--json"]):
        hidden, revealed = run("show", "nightly", *flags), run("show", "nightly", "--reveal", *flags)
        assert (0, 0) == (hidden.exit_code, revealed.exit_code)
        assert SECRET not in hidden.output
        assert 2 == hidden.output.count(MASK)
        assert 2 == revealed.output.count(SECRET)


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--json"],
        ["list"],
        ["jobs", "--json"],
        ["explain", "nightly"],
        ["upcoming", "--json"],
        ["pause", "nightly", "--json"],
        ["doctor", "--json"],
        ["add", "nightly", "--task", "app.probe", "--args", '["patient-4712"]', "--sensitive", "--json"],
        ["add", "nightly", "--task", "app.probe", "--args", '["patient-4712"]', "--managed-by", "sql"],
        ["add", "new", "--task", "app.probe", "--args", '["patient-4712"]', "--sensitive", "--json"],
    ],
    ids=" ".join,
)
def test_no_other_command_shows_them(session: Session, run: Run, command: list[str]) -> None:
    schedule(session, managed_by="api" if "api" in command else "sql")
    session.rows("select pgbeat.trigger('nightly')")

    done = run(*command, *(["--take-over"] if command[0] == "add" else []))

    assert done.output
    assert "patient-471" not in done.output


def test_an_export_is_complete_and_an_import_shows_that_arguments_differ_and_not_how(
    session: Session, run: Run, tmp_path: Path
) -> None:
    schedule(session, managed_by="api")
    exported = run("export").output
    assert SECRET in exported
    file = tmp_path / "rows.jsonl"
    file.write_text(exported.replace(SECRET, "patient-4712"))

    for flags in (["--dry-run"], ["--dry-run", "--json"], ["--yes"]):
        done = run("import", str(file), *flags)
        assert 0 == done.exit_code, done.output
        assert "args" in done.output
        assert MASK in done.output
        assert "patient-471" not in done.output
    assert (["patient-4712"], True) == tuple(session.task("nightly")[name] for name in ("args", "sensitive"))
