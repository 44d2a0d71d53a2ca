"""What a command line means on a real database: names, patterns, all; hints; groups; completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.cli.options import confirmation
from celery_pgbeat.errors import GroupInUse, InvalidPeriodicTask, UnknownGroup, UnknownPeriodicTask
from tests.harness.session import Session
from tests.harness.shell import Run

ALL = ("mail-1", "mail-2", "mail_3", "report-1")


@pytest.fixture
def rows(session: Session) -> Session:
    for name in ALL:
        session.insert(name, schedule="0 3 * * *", timezone="UTC")
    return session


@pytest.fixture
def run(migrated_database: str) -> Run:
    return lambda *words, **given: CliRunner().invoke(main, [*words, "--url", migrated_database], **given)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    monkeypatch.setattr("celery_pgbeat.cli.options.chosen.is_terminal", lambda: True)


def paused(session: Session) -> list[str]:
    return [row["name"] for row in session.rows("select name from pgbeat.periodic_task where not enabled order by 1")]


def refused(result: Result, said: str) -> None:
    assert (1, f"Error: {said}\n") == (result.exit_code, result.stderr), result.output


# --- pause and resume


def test_several_names_are_paused_and_resumed(run: Run, rows: Session) -> None:
    assert "Paused 'mail-1', 'report-1' until you resume them.\n" == run("pause", "report-1", "mail-1").stdout
    assert ["mail-1", "report-1"] == paused(rows)
    assert {"resumed": ["mail-1", "report-1"]} == json.loads(run("resume", "mail-1", "report-1", "--json").stdout)
    assert [] == paused(rows)


def test_one_unknown_name_and_nothing_is_done(run: Run, rows: Session) -> None:
    for command in ("pause", "resume", "trigger", "remove"):
        refused(run(command, "mail-1", "reprot-1"), "No periodic task is named 'reprot-1'. Did you mean 'report-1'?")
        refused(run(command, "mail-*", "x", "y", "--yes"), "No periodic task is named 'x'. 1 more names are unknown.")
        refused(run(command, "mail-*", "x*", "--yes"), "No periodic task matches 'x*'")

    assert ([], len(ALL)) == (paused(rows), rows.value("select count(*) from pgbeat.periodic_task"))
    assert 0 == rows.value("select count(*) from pgbeat.active_job")


def test_a_pattern_means_the_names_that_it_matches(run: Run, rows: Session) -> None:
    result = run("pause", "mail_*", "--reason", "stocktaking", "--yes")

    assert "Paused 'mail_3' until you resume it.\n" == result.stdout, "an underscore stands for itself"
    assert "Paused 'mail-1', 'mail-2' until you resume them.\n" == run("pause", "mail-?", "--yes").stdout
    assert ["mail-1", "mail-2", "mail_3"] == paused(rows)


def test_a_pattern_for_more_than_one_row_needs_yes_where_nobody_can_be_asked(run: Run, rows: Session) -> None:
    refused(run("pause", "mail*"), "This would pause 'mail-1', 'mail-2', 'mail_3': add --yes")
    refused(run("remove", "--all"), "This would remove 'mail-1', 'mail-2', 'mail_3', 'report-1': add --yes")
    assert ([], len(ALL)) == (paused(rows), rows.value("select count(*) from pgbeat.periodic_task"))
    assert "Paused 'report-1' until you resume it.\n" == run("pause", "report*").stdout, "one row needs no yes"


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_a_pattern_asks_with_the_names_or_their_number(run: Run, rows: Session) -> None:
    for number in range(20):
        rows.insert(f"shop-{number}")

    no = run("pause", "--all", input="n\n")
    yes = run("pause", "mail*", input="y\n")

    assert (1, True) == (no.exit_code, "Pause 24 periodic tasks? [y/N]" in no.stderr)
    assert (0, True) == (yes.exit_code, "Pause 'mail-1', 'mail-2', 'mail_3'? [y/N]" in yes.stderr)
    assert ["mail-1", "mail-2", "mail_3"] == paused(rows)


def test_a_pause_of_all_leaves_the_pauses_that_are_there(run: Run, rows: Session) -> None:
    run("pause", "mail-1", "--reason", "broken")

    done = run("pause", "--all", "--reason", "deploy", "--until", "2d", "--yes")

    assert done.stdout.startswith("Paused 'mail-2', 'mail_3', 'report-1' until 20")
    assert done.stdout.endswith("Z. 1 that matched was paused already.\n")
    until = rows.value("select paused_until - pgbeat.now() from pgbeat.periodic_task where name = 'mail-2'")
    assert timedelta(days=2) == pytest.approx(until, abs=timedelta(minutes=1))
    assert {"resumed": ["mail-2", "mail_3", "report-1"]} == json.loads(
        run("resume", "--all", "--reason", "deploy", "--yes", "--json").stdout
    )
    assert ["mail-1"] == paused(rows)


def test_where_all_that_match_are_paused_already_that_is_said(run: Run, rows: Session) -> None:
    run("pause", "mail-1", "mail-2")

    refused(run("pause", "mail-*", "--yes"), "Each periodic task that matches 'mail-*' is paused already")
    assert "Resumed 'mail-1', 'mail-2'. 2 that matched were not paused.\n" == run("resume", "--all", "--yes").stdout
    assert "Resumed nothing. 4 that matched were not paused.\n" == run("resume", "--all", "--yes").stdout
    refused(
        run("resume", "mail*", "--reason", "deploy"),
        "Each periodic task that matches 'mail*' is not paused for the reason 'deploy'",
    )


def test_who_is_resumed_and_held_by_a_paused_group_is_counted(run: Run, rows: Session) -> None:
    rows.rows("update pgbeat.periodic_task set group_name = 'mails' where name like 'mail%'")
    rows.rows("select pgbeat.pause_group('mails')")
    run("pause", "--all", "--yes")

    assert "3 of them still do not run: their group is paused.\n" == run("resume", "--all", "--yes").stderr


def test_a_star_in_a_name_can_be_written_with_a_backslash(run: Run, session: Session) -> None:
    for name in ("every*", "everything"):
        session.insert(name)

    run("pause", r"every\*")

    assert ["every*"] == paused(session)


def test_in_an_empty_table_all_is_nothing(run: Run) -> None:
    for command, done in (("pause", "Paused"), ("resume", "Resumed"), ("trigger", "Triggered"), ("remove", "Removed")):
        result = run(command, "--all")
        assert (0, f"{done} nothing.\n") == (result.exit_code, result.stdout)


# --- trigger and remove


def test_what_is_triggered_has_a_job_each_and_what_is_busy_is_named(run: Run, rows: Session) -> None:
    rows.value("select pgbeat.trigger('mail-2')")

    result = run("trigger", "mail*", "--yes", "--json")

    printed = json.loads(result.stdout)
    assert ["mail-1", "mail_3"] == [one["periodic_task"] for one in printed["triggered"]]
    assert ["mail-2"] == printed["not_triggered"]
    *_, said = result.stderr.splitlines()
    assert (1, "Error: Not triggered, because a job is not final: 'mail-2'; --force starts one beside it") == (
        result.exit_code,
        said,
    )
    assert "Triggered 'mail-1', 'mail-2', 'mail_3'.\n" == run("trigger", "mail*", "--yes", "--force").stdout
    assert 6 == rows.value("select count(*) from pgbeat.active_job")


def test_rows_are_removed_by_pattern(run: Run, rows: Session) -> None:
    rows.rows("update pgbeat.periodic_task set managed_by = 'code:shop' where name <> 'mail-1'")

    result = run("remove", "mail*", "--yes")

    assert "Removed 'mail-1', 'mail-2', 'mail_3'.\n" == result.stdout
    assert "'mail-2', 'mail_3' are declared in code (code:shop): a beat that starts adds them again.\n" == result.stderr
    assert "report-1" == rows.value("select name from pgbeat.periodic_task")


def test_like_takes_stars_as_well(run: Run, rows: Session) -> None:
    assert ["mail-1", "mail-2"] == [row["name"] for row in json.loads(run("list", "--like", "mail-*", "--json").stdout)]
    assert 3 == len(json.loads(run("list", "--like", "mail%", "--json").stdout))


# --- the same in Python


def test_many_are_paused_resumed_triggered_and_removed_in_python(beat: PgBeat, rows: Session) -> None:
    assert ["mail-1", "report-1"] == beat.pause_many(["report-1", "mail-1", "mail-1"], "why", datetime(2100, 1, 1))
    assert datetime(2100, 1, 1, tzinfo=timezone.utc) == beat.get("mail-1").paused_until
    assert ["mail-1"] == beat.pause_many(["mail-1"], until=timedelta(hours=2))
    left = rows.value("select paused_until - pgbeat.now() from pgbeat.periodic_task where name = 'mail-1'")
    assert timedelta(hours=1, minutes=59) < left <= timedelta(hours=2)
    for past in (timedelta(0), timedelta(hours=-2), timedelta.min, datetime(2020, 1, 1)):
        with pytest.raises(InvalidPeriodicTask, match="which is in the past"):
            beat.pause_many(["mail-1"], until=past)
    assert ["mail-1"] == beat.resume_many(name for name in ("mail-1",))
    jobs = beat.trigger_many(ALL)
    assert sorted(ALL) == list(jobs)
    assert all(isinstance(job, UUID) for job in jobs.values())
    assert dict.fromkeys(ALL) == beat.trigger_many(ALL)
    assert ["mail-1", "mail-2"] == beat.unschedule_many(["mail-2", "mail-1", "gone"], missing_ok=True)


def test_an_unknown_one_among_many_changes_nothing(beat: PgBeat, rows: Session) -> None:
    calls: list[Callable[[Any], Any]] = [beat.pause_many, beat.resume_many, beat.trigger_many, beat.unschedule_many]
    for call in calls:
        with pytest.raises(UnknownPeriodicTask, match=r"named 'mail-11'\. Did you mean 'mail-1'\?"):
            call(["mail-1", "mail-11"])
        with pytest.raises(TypeError, match="names is 'mail-1': give a list of names"):
            call("mail-1")

    assert ([], len(ALL)) == (paused(rows), rows.value("select count(*) from pgbeat.periodic_task"))


def test_many_join_the_transaction_of_the_caller(beat: PgBeat, rows: Session) -> None:
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        beat.pause_many(ALL, connection=connection)
        connection.rollback()

    assert [] == paused(rows)


def test_thousands_of_rows_are_paused_and_resumed_in_one_go(run: Run, session: Session) -> None:
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule) "
        "select 'row-' || n, 'app.probe', '0 3 * * *' from generate_series(1, 5000) n"
    )

    assert "Paused 5,000 periodic tasks until you resume them.\n" == run("pause", "--all", "--yes").stdout
    assert 5_000 == session.value("select count(*) from pgbeat.periodic_task where not enabled")
    assert "Resumed 5,000 periodic tasks.\n" == run("resume", "row-*", "--yes").stdout
    assert [] == paused(session)


def test_a_pause_of_many_that_ends_in_the_past_is_refused(run: Run, rows: Session) -> None:
    result = run("pause", "--all", "--until", "1h ago", "--yes")

    assert (1, True) == (result.exit_code, "which is in the past" in result.stderr)
    assert [] == paused(rows)


def test_many_are_resumed_as_each_alone_would_be(beat: PgBeat, rows: Session) -> None:
    rows.rows(
        "update pgbeat.periodic_task set last_run_at = pgbeat.now() + interval '1 day', "
        "next_run_at = pgbeat.now() + interval '2 days', planned_revision = revision where name in ('mail-1', 'mail-2')"
    )
    beat.pause("mail_3")

    beat.resume("mail-1")
    assert ["mail-2", "mail_3", "report-1"] == beat.resume_many(["mail-2", "mail_3", "report-1"])

    columns = "enabled, last_run_at is null as forgotten, next_run_at is null as unplanned"
    alone, together = (
        rows.row(f"select {columns} from pgbeat.periodic_task where name = %s", name) for name in ("mail-1", "mail-2")
    )
    assert alone == together
    assert [] == paused(rows)


# --- groups


def test_a_group_without_rows_can_be_removed_and_one_with_rows_not(run: Run, rows: Session, beat: PgBeat) -> None:
    rows.rows("update pgbeat.periodic_task set group_name = 'reports' where name = 'report-1'")
    typo = run("group", "limit", "raports", "2")

    assert "No periodic task names the group 'raports' yet. Did you mean 'reports'?\n" == typo.stderr
    assert "Removed the group 'raports'.\n" == run("group", "remove", "raports").stdout
    refused(run("group", "remove", "raports"), "No group is named 'raports'. Did you mean 'reports'?")
    assert "The group 'reports' has periodic tasks (1)" in run("group", "remove", "reports").stderr
    with pytest.raises(GroupInUse):
        beat.remove_group("reports")
    with pytest.raises(UnknownGroup):
        beat.remove_group("nothing")


def test_a_misspelt_group_is_answered_with_the_one_that_was_meant(run: Run, rows: Session) -> None:
    rows.rows("update pgbeat.periodic_task set group_name = 'reports'")

    for words in (("group", "pause", "reprots"), ("group", "resume", "reprots")):
        assert "No group is named 'reprots'. Did you mean 'reports'?" in run(*words).stderr
    assert "" == run("group", "limit", "reports", "2").stderr


def test_backfills_are_started_listed_and_cancelled(run: Run, rows: Session) -> None:
    started = run("backfill", "mail-1", "2026-05-01", "2026-05-02", "--json")
    made = json.loads(started.stdout)["id"]

    assert [made] == [one["id"] for one in json.loads(run("backfill", "list", "--json").stdout)]
    assert "Cancelled the backfill of 'mail-1'" in run("backfill", "cancel", made).stdout
    assert "yesterday" not in run("backfill", "start", "mail-1", "3d", "now", "--dry-run").output


# --- names of what was only listed


@pytest.mark.parametrize("command", ["jobs", "backfill list", "upcoming", "show", "explain"])
def test_an_unknown_name_is_an_error_everywhere(run: Run, rows: Session, command: str) -> None:
    refused(run(*command.split(), "mail-11"), "No periodic task is named 'mail-11'. Did you mean 'mail-1'?")


def test_the_jobs_of_a_removed_row_are_listed(run: Run, rows: Session) -> None:
    rows.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) values (gen_random_uuid(), 'gone', now(), 'schedule', 'succeeded', 'x', now(), now())"
    )

    assert 1 == len(json.loads(run("jobs", "gone", "--json").stdout))
    assert "[]" == run("jobs", "mail-1", "--json").stdout.strip()


def test_jobs_are_listed_between_two_instants(run: Run, rows: Session) -> None:
    for hours in (1, 30):
        rows.rows(
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
            "finished_at) values (gen_random_uuid(), 'mail-1', now(), 'schedule', 'succeeded', 'x', "
            "pgbeat.now() - make_interval(hours => %s), now())",
            hours,
        )

    def count(*words: str) -> int:
        return len(json.loads(run("jobs", "--json", *words).stdout))

    assert (2, 1, 0) == (count("--since", "2d"), count("--since", "2h"), count("--since", "10m"))
    assert (1, 2, 1) == (count("--until", "1d"), count("--until", "now"), count("--since", "2d", "--until", "1d ago"))


# --- upcoming --after


def test_what_runs_after_an_instant_is_listed(run: Run, beat: PgBeat, rows: Session) -> None:
    far = "2990-01-01 03:00+00"
    rows.rows(
        "update pgbeat.periodic_task set planned_revision = revision, next_run_at = %s, planned_for = %s "
        "where name in ('mail-1')",
        far,
        far,
    )
    rows.rows("update pgbeat.periodic_task set next_run_at = '2980-01-01' where name = 'mail-2'")

    after = json.loads(run("upcoming", "--after", "2985-01-01", "--json").stdout)
    of_one = json.loads(run("upcoming", "mail-1", "--after", "2999-01-01T03:00:00Z", "--count", "1", "--json").stdout)

    assert ["mail-1"] == [one["name"] for one in after]
    assert "2999-01-02T03:00:00+00:00" == of_one["runs"][0]["utc"]
    with_end = beat.upcoming("mail-1", limit=1, after=datetime(2999, 1, 1))
    assert datetime(2999, 1, 1, 3, tzinfo=timezone.utc) == with_end[0].next_run_at


# --- hints


def test_the_hint_to_migrate_has_the_schema_that_was_named(migrated_database: str) -> None:
    for words in (("--schema", "other", "list"), ("list", "--schema", "other")):
        result = CliRunner().invoke(main, words, env={"PGBEAT_URL": migrated_database})
        assert (1, True) == (result.exit_code, "run `celery-pgbeat --schema other migrate`" in result.stderr)
    for command in ("doctor", "health"):
        result = CliRunner().invoke(main, [command, "--schema", "other"], env={"PGBEAT_URL": migrated_database})
        assert "un `celery-pgbeat --schema other migrate`" in result.output, result.output


# --- terminals and locales that lack letters

FOREIGN = "nächt→\U0001f600"


@pytest.fixture
def latin(migrated_database: str, session: Session) -> Run:
    """Runs a command whose stdout is in Latin-1, beside a row whose name has other letters."""
    session.insert(FOREIGN, schedule="0 3 * * *", timezone="UTC")
    environment = {"PGBEAT_URL": migrated_database}
    return lambda *words: CliRunner(charset="latin-1").invoke(main, list(words), env=environment)


@pytest.mark.parametrize("words", [("list",), ("show", FOREIGN), ("explain", FOREIGN), ("pause", FOREIGN)])
def test_a_letter_that_stdout_lacks_is_escaped(latin: Run, words: tuple[str, ...]) -> None:
    done = latin(*words)

    assert (0, None) == (done.exit_code, done.exception)
    assert r"nächt\u2192\ud83d\ude00" in done.stdout


def test_json_is_the_same_in_every_encoding(latin: Run) -> None:
    assert FOREIGN == json.loads(latin("list", "--json").stdout)[0]["name"]
    assert FOREIGN == json.loads(latin("export").stdout)["name"]


@pytest.mark.parametrize("to", ["beat-schedule", "django-celery-beat"])
def test_what_another_program_reads_is_not_escaped_but_refused(latin: Run, to: str) -> None:
    done = latin("export", "--to", to)

    assert 1 == done.exit_code
    assert r"has no '\u2192\ud83d\ude00': set PYTHONIOENCODING=utf-8" in done.stderr


def test_an_argument_that_the_locale_cannot_decode_is_read_as_utf8(latin: Run) -> None:
    assert 0 == latin("show", FOREIGN.encode().decode("ascii", "surrogateescape")).exit_code

    done = latin("show", "n\udcff")
    assert (2, r"Error: 'n\udcff' is not UTF-8: set LC_ALL to the locale of your terminal") == (
        done.exit_code,
        done.stderr.splitlines()[-1],
    )


# --- completion


def completed(url: str, *words: str) -> list[str]:
    complete = ShellComplete(main, {}, "celery-pgbeat", "_CELERY_PGBEAT_COMPLETE")
    return [item.value for item in complete.get_completions(["--url", url, *words[:-1]], words[-1])]


def test_names_of_periodic_tasks_groups_and_backfills_are_completed(migrated_database: str, rows: Session) -> None:
    rows.rows("update pgbeat.periodic_task set group_name = 'mails' where name like 'mail%'")
    made = str(rows.value("select pgbeat.backfill('mail-1', '2026-05-01', '2026-05-02')"))

    assert ["mail-1", "mail-2"] == completed(migrated_database, "pause", "mail-")
    assert ["report-1"] == completed(migrated_database, "pause", "mail-1", "re")
    assert ["report-1"] == completed(migrated_database, "backfill", "rep")
    assert ["report-1"] == completed(migrated_database, "backfill", "start", "rep")
    for command in ("show", "explain", "jobs", "upcoming", "trigger", "resume", "remove", "add", "edit"):
        assert ["report-1"] == completed(migrated_database, command, "rep"), command
    assert ["mails"] == completed(migrated_database, "group", "limit", "m")
    assert ["mails"] == completed(migrated_database, "list", "--group-name", "m")
    assert [made] == completed(migrated_database, "backfill", "cancel", made[:3])


HOSTILE = (
    *("rm;touch${IFS}/tmp/owned", "rm$(id)", "rm`id`", "rm|id", "rm&id", "rm>x", "rm id", "rm'", 'rm"', "rm\\"),
    *("rm*", "rm?", "rm[a]", "rm{a,b}", "~rm", "rm!1", "#rm", "=rm", "rm,other", "rm:other", "--rm", "-rm"),
)


def test_no_completion_offers_what_a_shell_would_not_take_as_one_plain_word(
    migrated_database: str, session: Session
) -> None:
    plain = ["rm-1", "rm.2/a@b+c=d%", "rmächtlich"]
    for name in (*HOSTILE, *plain):
        session.insert(name, group_name=name, schedule="0 3 * * *", timezone="UTC")

    for words in (("show",), ("pause",), ("trigger",), ("jobs",), ("backfill",), ("group", "pause"), ("add",)):
        for begin in ("", "rm", "-", "~"):
            offered = completed(migrated_database, *words, begin)
            assert set() == set(HOSTILE) & set(offered), words
    assert plain == sorted(completed(migrated_database, "show", "rm"))
    assert plain == sorted(completed(migrated_database, "list", "--group-name", "rm"))


BASH = """
eval "$(_CELERY_PGBEAT_COMPLETE=bash_source celery-pgbeat)"
eval "$(_CELERY_COMPLETE=bash_source celery)"
complete() {
    COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); $1 "$2"; echo "${COMPREPLY[@]}"
}
PGBEAT_URL=$THE_URL complete _celery_pgbeat_completion celery-pgbeat pause r
complete _celery_completion celery -A completed_shop pgbeat pause r
complete _celery_completion celery pgbeat jobs -A completed_shop r
"""


def test_bash_completes_names_for_both_programs(migrated_database: str, rows: Session, tmp_path: Path) -> None:
    (tmp_path / "completed_shop.py").write_text(
        f"from celery import Celery\napp = Celery('shop')\napp.conf.pgbeat_url = {migrated_database!r}\n"
    )
    bins = str(Path(sys.executable).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PGBEAT_URL"},
        "PATH": f"{bins}:{os.environ['PATH']}",
        "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
        "THE_URL": migrated_database,
    }

    done = subprocess.run(["bash", "-c", BASH], env=environment, capture_output=True, text=True, check=False)

    assert ["report-1"] * 3 == done.stdout.splitlines(), done.stderr
