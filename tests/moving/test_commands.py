"""Moving from schedulers whose entries are commands: a crontab, pg_cron."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.schedules import parse
from tests.harness.peers.moving_in import AUTUMN, MovingIn
from tests.harness.session import Session

CRONTAB = r"""
# m h dom mon dow command
MAILTO="ops@example.org"
*/5 * * * *  /usr/bin/poll   --fast
@daily       backup
@reboot      start
CRON_TZ=Europe/Berlin
0 3 1,15 * mon report "a=b"
0 3 * * sun  date +\%Y
0 4 * * *    mail%Dear all
0 4 * * *    backup
0 25 * * *   never
0 4 * *
CRON_TZ=
30 6 * * 7   last
"""
CRON_JOBS = """
create schema cron;
create table cron.job (
    jobid bigserial primary key, schedule text not null, command text not null, nodename text, nodeport int,
    database text not null, username text not null, active boolean not null default true, jobname text);
insert into cron.job (schedule, command, database, username, active, jobname) values
    ('0 3 * * *', 'vacuum', 'shop', 'postgres', true, 'nightly vacuum'),
    ('10 seconds', 'select poll()', 'shop', 'postgres', true, null),
    ('0 0 $ * *', 'call close_month()', 'shop', 'postgres', true, 'month'),
    ('0 3 * * *', 'analyze', 'shop', 'postgres', false, 'off'),
    ('0 25 * * *', 'x', 'shop', 'postgres', true, 'wrong');
create function cron.alter_job(job_id bigint, active boolean default null) returns void language sql as
    $$ update cron.job set active = $2 where jobid = $1 $$;
"""


@pytest.fixture
def crontab(tmp_path: Path) -> Path:
    """A file."""
    path = tmp_path / "crontab"
    path.write_text(CRONTAB)
    return path


def test_the_lines_of_a_crontab_become_rows_of_one_task(migrated_database: str, crontab: Path) -> None:
    moving = MovingIn("crontab", migrated_database, str(crontab))
    report = moving.report("--task", "shop.run", "--apply", "--yes")
    rows = Session(migrated_database).rows("select name, task, schedule, timezone, args from pgbeat.periodic_task")

    assert {
        "/usr/bin/poll --fast": ("cron: */5 * * * *", None, ["/usr/bin/poll   --fast"]),
        "backup": ("cron: @daily", None, ["backup"]),
        'report "a=b"': ("cron: 0 3 1,15 * mon", "Europe/Berlin", ['report "a=b"']),
        "date +%Y": ("cron: 0 3 * * sun", "Europe/Berlin", ["date +%Y"]),
        "mail": ("cron: 0 4 * * *", "Europe/Berlin", ["mail"]),
        "backup (2)": ("cron: 0 4 * * *", "Europe/Berlin", ["backup"]),
        "last": ("cron: 30 6 * * 7", None, ["last"]),
    } == {row["name"]: (row["schedule"], row["timezone"], row["args"]) for row in rows}
    assert {"shop.run"} == {row["task"] for row in rows}
    assert {
        "start": "@reboot is no time: a worker has no start of the machine",
        "never": "'cron: 0 25 * * *': hour 25 is not in 0-23",
        "line 13": "it is neither five fields and a command nor a variable",
    } == {name: row["reason"] for name, row in report.items() if not row["taken"]}
    assert ["what follows the first % was the command's standard input, and is left out"] == report["mail"]["changes"]
    assert {"equal"} == {row["kind"] for row in moving.report("--task", "shop.run").values() if row["taken"]}


def test_both_day_fields_of_a_crontab_mean_either_day() -> None:
    rule = parse("cron: 0 3 1,15 * mon", "Europe/Berlin")

    assert rule.matches(datetime(2026, 12, 1, 2, tzinfo=timezone.utc))  # a Tuesday
    assert rule.matches(datetime(2026, 12, 7, 2, tzinfo=timezone.utc))  # a Monday


def test_a_crontab_of_the_system_has_users(migrated_database: str, tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("17 * * * * root cd / && run-parts\n0 3 * * * alone\n")

    report = MovingIn("system-crontab", migrated_database, str(path)).report("--task", "shop.run")

    assert ["the user 'root' has no effect: the command runs as the worker does"] == (
        report["cd / && run-parts"]["changes"]
    )
    assert "it has no command behind the user" == report["alone"]["reason"]


@pytest.mark.parametrize("kind", ["crontab", "kubernetes"])
@pytest.mark.parametrize(
    ("path", "words"),
    [("/dev/zero", "is larger than 64 MB, not"), ("/proc/self/mem", "cannot be read: Input/output error")],
)
def test_no_more_is_read_than_a_source_may_have(migrated_database: str, kind: str, path: str, words: str) -> None:
    done = MovingIn(kind, migrated_database, path).run()

    assert (1, True) == (done.exit_code, f"Error: '{path}' {words}" in done.stderr), done.output


@pytest.mark.parametrize(
    ("path", "words"),
    [("/dev/zero", ", line 1 is longer than 4 million characters\n"), ("/proc/self/mem", " cannot be read: ")],
)
@pytest.mark.parametrize("command", ["import", "compare"])
def test_no_line_is_read_that_has_no_end(migrated_database: str, command: str, path: str, words: str) -> None:
    done = CliRunner().invoke(main, ["--url", migrated_database, command, path])

    assert (1, True) == (done.exit_code, f"Error: '{path}'{words}" in done.stderr), done.output


def test_without_a_task_each_command_is_refused(migrated_database: str, crontab: Path) -> None:
    report = MovingIn("crontab", migrated_database, str(crontab)).report()

    assert (
        "it is a command, not a Celery task: give --task, a task of yours that runs the command it gets"
        == (report["backup"]["reason"])
    )


def test_jobs_of_pg_cron_become_rows_and_are_switched_off(migrated_database: str) -> None:
    session = Session(migrated_database)
    session.rows(CRON_JOBS)
    moving = MovingIn("pg_cron", migrated_database)
    moving.clock.stand_at(AUTUMN)

    report = moving.report("--task", "shop.run_sql", "--apply", "--yes", "--cut-over")
    rows = session.rows("select * from pgbeat.periodic_task")

    assert {
        "nightly vacuum": ("cron: 0 3 * * *", "GMT", ["vacuum"], True),
        "pg_cron job 2": ("every 10s", None, ["select poll()"], True),
        "month": ("cron: 0 0 L * *", "GMT", ["call close_month()"], True),
        "off": ("cron: 0 3 * * *", "GMT", ["analyze"], False),
    } == {row["name"]: (row["schedule"], row["timezone"], row["args"], row["enabled"]) for row in rows}
    assert {("buffer_all", "in the database shop, as postgres")} == {(row["overlap"], row["subject"]) for row in rows}
    assert "'cron: 0 25 * * *': hour 25 is not in 0-23" == report["wrong"]["reason"]
    assert ["wrong"] == [row["jobname"] for row in session.rows("select jobname from cron.job where active")]


@pytest.mark.parametrize(("kind", "says"), [("pg_cron", False), ("crontab", True)])
def test_the_report_speaks_of_overlap_where_the_peer_does_not_look(
    migrated_database: str, crontab: Path, kind: str, says: bool
) -> None:
    Session(migrated_database).rows(CRON_JOBS)

    shown = MovingIn(kind, migrated_database, str(crontab) if kind == "crontab" else None).run("--task", "x").stdout

    assert says == ("(overlap allow), as there; our own default is skip" in shown)


def test_a_file_that_cannot_be_read_is_one_sentence(migrated_database: str, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for source, words in {
        None: "name the source: a crontab, or - for stdin",
        "/no/such/file": "'/no/such/file' cannot be read: No such file or directory",
        str(binary): "is not text, so not a crontab",
    }.items():
        done = MovingIn("crontab", migrated_database, source).run()
        assert (1, 1, True) == (done.exit_code, len(done.stderr.splitlines()), words in done.stderr), done.output


def test_the_report_as_json_has_the_sentences_for_all_rows(migrated_database: str, crontab: Path) -> None:
    done = MovingIn("crontab", migrated_database, str(crontab)).run("--json")

    printed = json.loads(done.stdout)
    assert (["applied", "read", "differences", "rows"], False) == (list(printed), printed["applied"])
    assert any(sentence.startswith("Lines below a CRON_TZ") for sentence in printed["differences"])
    assert {"name", "taken", "reason", "changes", "kind", "columns"} == printed["rows"][0].keys()
