"""The commands as an operator uses them: real commands beside real beats and workers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.cli.output.no_beat import START
from tests.harness.processes import APP, ROOT, Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

SCRIPT = Path(sys.executable).with_name("celery-pgbeat")
CELERY = (sys.executable, "-m", "celery", "-A", APP, "pgbeat")
HOURLY: dict[str, Any] = {"task": "app.probe", "schedule": 3600, "args": ["code"]}

# A beat writes a heartbeat each second, and counts as dead after three.
SHORT_LIVES = {"pgbeat_dead_after": 3, "pgbeat_heartbeat": 1, "pgbeat_lease": 2}


def shell(url: str, *words: str, **environment: str) -> Any:
    """Run a command in this process, with nothing but a database: no broker is configured."""
    taken = {name: None for name in os.environ if name.startswith(("PGBEAT_", "CELERY_", "PROBE_"))}
    run = CliRunner().invoke(main, words, env={**taken, "PGBEAT_URL": url, **environment}, catch_exceptions=False)
    return subprocess.CompletedProcess(words, run.exit_code, run.stdout, run.stderr)


def script(url: str, *words: str, command: tuple[Any, ...] = (SCRIPT,), **environment: str) -> Any:
    """Run the installed command, or another that does the same."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_", "PROBE_"))}
    return subprocess.run(
        [*map(str, command), *words],
        env={**clean, "PGBEAT_URL": url, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def answer(url: str, *words: str, **environment: str) -> Any:
    """Run a command that must succeed, and return the JSON that it prints."""
    done = shell(url, *words, "--json", **environment)
    told = "\n".join(line for line in done.stderr.splitlines() if START not in line)
    assert (done.returncode, told) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", [(SCRIPT,), CELERY], ids=["celery-pgbeat", "celery -A app pgbeat"])
def test_rows_inserted_by_sql_are_listed_by_both_commands(migrated_database: str, command: tuple[Any, ...]) -> None:
    insert(migrated_database, "nightly", "0 3 * * *")

    done = script(migrated_database, "list", command=command)

    assert (done.returncode, done.stderr) == (0, "")
    assert {"nightly", "app.probe", "0 3 * * *"} <= set(re.split("  +", done.stdout.splitlines()[1]))


def test_the_shell_pauses_and_resumes_a_row(migrated_database: str) -> None:
    insert(migrated_database, "nightly", "0 3 * * *")

    paused = answer(migrated_database, "pause", "nightly", "--reason", "stocktaking", "--until", "2100-01-01T00:00:00Z")
    resumed = answer(migrated_database, "resume", "nightly")

    assert (paused["enabled"], paused["pause_reason"]) == (False, "stocktaking")
    assert paused["paused_until"] == "2100-01-01T00:00:00+00:00"
    assert (resumed["enabled"], resumed["paused_until"]) == (True, None)


def test_an_unknown_name_is_an_error_that_suggests_the_right_one(migrated_database: str) -> None:
    insert(migrated_database, "nightly", "0 3 * * *")

    done = script(migrated_database, "trigger", "nigthly")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: No periodic task is named 'nigthly'. Did you mean 'nightly'?\n"


def test_a_triggered_job_runs_at_once_and_does_not_move_the_next_run(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    cluster.worker()
    insert(cluster.database, "d14", "every 1h")
    planned = eventually(lambda: row(cluster.database, "d14")["next_run_at"], 10, "the row is planned")

    job = answer(cluster.database, "trigger", "d14")["job"]

    eventually(lambda: cluster.probe.runs("d14"), 10, "the job runs")
    assert [job] == [run.job for run in cluster.probe.runs("d14")]
    assert row(cluster.database, "d14")["next_run_at"] == planned
    eventually(lambda: jobs(cluster.database, "d14")[0]["state"] == "succeeded", 10, "the end is recorded")
    (listed,) = answer(cluster.database, "jobs", "d14", "--state", "succeeded")
    assert (listed["id"], listed["origin"]) == (job, "manual")


def test_a_job_with_arguments_of_its_own_is_waited_for_and_a_failed_one_is_retried_with_them(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    cluster.worker()
    insert(cluster.database, "nightly", None)
    wait = ("--wait", "--timeout", "40s")

    well = shell(cluster.database, "trigger", "nightly", "--kwargs", '{"sleep": 0.1}', *wait)
    badly = shell(cluster.database, "trigger", "nightly", "--kwargs", '{"fail": true}', *wait)
    failed = jobs(cluster.database, "nightly")[-1]
    again = shell(cluster.database, "job", "retry", str(failed["id"]), *wait)

    assert (0, "") == (well.returncode, well.stderr)
    assert "succeeded" == well.stdout.splitlines()[-1]
    assert (1, "failed") == (badly.returncode, failed["state"])
    assert f"Error: Job {failed['id']} has not succeeded, it is failed: " in badly.stderr
    assert 1 == again.returncode  # with the same arguments it fails again
    assert "with the arguments of that job" in again.stdout
    assert ["succeeded", "failed", "failed"] == [job["state"] for job in jobs(cluster.database, "nightly")]


def test_what_is_followed_ends_cleanly_at_ctrl_c(migrated_database: str) -> None:
    insert(migrated_database, "nightly", None)
    follow = subprocess.Popen(
        [SCRIPT, "--url", migrated_database, "jobs", "--follow", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background ignores Ctrl-C, and so would what it starts.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  it only sets a signal
    )
    try:
        has_read = (
            "select 1 from pg_stat_activity where datname = current_database() and query like 'with looked_at%%' "
            "and state = 'idle'"
        )
        eventually(lambda: sql(migrated_database, has_read), 30, "it has read the jobs that are there already")
        sql(migrated_database, "select pgbeat.trigger('nightly')")
        assert follow.stdout is not None
        line = json.loads(follow.stdout.readline())
        follow.send_signal(signal.SIGINT)
        rest, errors = follow.communicate(timeout=30)
    finally:
        follow.kill()

    assert ("nightly", "pending") == (line["periodic_task"], line["state"])
    assert (0, "", "") == (follow.returncode, rest, errors)


def test_next_shows_the_runs_that_the_beat_has_planned(cluster: Cluster) -> None:
    insert(cluster.database, "nightly", "30 2 * * *", timezone="Europe/Berlin", start_at="2100-03-26T00:00Z")
    insert(
        cluster.database,
        "held",
        "30 2 * * *",
        timezone="UTC",
        start_at="2099-01-01T00:00Z",
        blackout=["0 0 * * * PT5H"],
    )
    insert(cluster.database, "paused", "every 1h", enabled=False)
    told = {name: answer(cluster.database, "upcoming", name)["runs"] for name in ("nightly", "held", "paused")}

    cluster.beat().wait_for_log("works on", 20)
    eventually(lambda: row(cluster.database, "nightly")["next_run_at"], 10, "the row is planned")
    eventually(lambda: row(cluster.database, "held")["next_run_at"], 10, "the row is planned")

    assert told == {name: answer(cluster.database, "upcoming", name)["runs"] for name in told}
    assert [10, 10, 0] == [len(runs) for runs in told.values()]
    assert [
        {"name": name, "next_run_at": told[name][0]["utc"], "planned_for": told[name][0]["planned_for"], "after": None}
        for name in ("held", "nightly")
    ] == answer(cluster.database, "upcoming")
    assert ("2099-01-01T05:00:00+00:00", "2099-01-01T02:30:00+00:00", "held back by a blackout window") == (
        told["held"][0]["utc"],
        told["held"][0]["planned_for"],
        told["held"][0]["note"],
    )
    spring = {run["local"]: run["note"] for run in told["nightly"]}["2100-03-28T03:00:00+02:00"]
    assert spring.endswith("02:30 does not exist, so it runs right after")


def test_a_second_trigger_is_refused_while_the_first_job_waits_and_can_be_forced(migrated_database: str) -> None:
    insert(migrated_database, "d14", "every 1h")
    first = answer(migrated_database, "trigger", "d14")["job"]

    refused = shell(migrated_database, "trigger", "d14")
    forced = answer(migrated_database, "trigger", "d14", "--force")["job"]

    assert refused.returncode == 1
    assert first in refused.stderr
    assert {first, forced} == {job["id"] for job in answer(migrated_database, "jobs")}


def test_health_follows_the_life_of_the_beats_without_a_broker(cluster: Cluster) -> None:
    lives = {name.upper(): str(value) for name, value in SHORT_LIVES.items()}

    def health() -> tuple[int, dict[str, bool | None]]:
        done = shell(cluster.database, "health", "--json", **lives)
        found = json.loads(done.stdout)
        return done.returncode, {name: check["ok"] for name, check in found["checks"].items()}

    well = (0, {"database": True, "schema": True, "beats": True, "lag": True})
    assert health() == (3, {"database": True, "schema": True, "beats": False, "lag": True})

    beat = cluster.beat(settings=SHORT_LIVES)
    eventually(lambda: health() == well, 20, "a beat is alive")

    beat.kill()
    eventually(lambda: health()[1]["beats"] is False, 20, "the beat is missed")


def test_health_fails_when_a_due_row_is_not_sent(migrated_database: str) -> None:
    insert(migrated_database, "late", "every 1h")
    sql(migrated_database, "update pgbeat.periodic_task set next_run_at = now() - interval '90 seconds'")

    late = shell(migrated_database, "health")
    patient = json.loads(shell(migrated_database, "health", "--max-lag", "600", "--json").stdout)

    assert late.returncode == 3
    assert "overdue by 9" in late.stdout
    assert patient["checks"]["lag"]["ok"]


def test_health_says_that_the_schema_is_missing(database: str) -> None:
    done = shell(database, "health")

    assert done.returncode == 3
    assert "run `celery-pgbeat migrate`" in done.stdout


def test_a_row_paused_at_the_shell_stays_paused_when_all_beats_restart(cluster: Cluster) -> None:
    cluster.settings["beat_schedule"] = {"d23": HOURLY, "other": HOURLY}
    beats = [cluster.beat() for _ in range(2)]
    for beat in beats:
        beat.wait_for_log("works on", 20)
    eventually(lambda: row(cluster.database, "d23")["next_run_at"], 20, "the row is planned")
    answer(cluster.database, "pause", "d23")
    before = row(cluster.database, "d23")

    for beat in beats:
        beat.stop()
        beat.start().wait_for_log("works on", 20)

    assert before == row(cluster.database, "d23")
    assert [True, False] == [answer(cluster.database, "show", name)["enabled"] for name in ("other", "d23")]


def test_a_row_removed_from_the_code_is_paused_and_rows_of_sql_are_not_touched(cluster: Cluster) -> None:
    cluster.settings.update(beat_schedule={"d24": HOURLY, "stays": HOURLY}, result_expires=None)
    first = cluster.beat()
    first.wait_for_log("works on", 20)
    insert(cluster.database, "sql", "every 1h")
    first.stop()

    cluster.settings["beat_schedule"] = {"stays": HOURLY}
    second = cluster.beat()
    second.wait_for_log("works on", 20)

    shown = {found["name"]: (found["enabled"], found["paused_by"]) for found in answer(cluster.database, "list")}
    assert shown == {"d24": (False, "code:probe"), "stays": (True, None), "sql": (True, None)}
    assert "Paused 'd24', which the code no longer declares" in second.log


def test_restarts_of_a_beat_neither_run_a_yearly_task_nor_postpone_an_interval(cluster: Cluster) -> None:
    """Each beat lives for a moment only, much shorter than the interval: until nothing is due."""
    idle = "select count(*) = 2 as yes from pgbeat.periodic_task where next_run_at > pgbeat.now()"
    interval = {**HOURLY, "schedule": 8}
    cluster.settings["beat_schedule"] = {"interval": interval, "yearly": {**HOURLY, "schedule": "0 0 1 1 *"}}
    until, restarts = time.monotonic() + 90, 0

    while (restarts < 3 or len(jobs(cluster.database, "interval")) < 2) and time.monotonic() < until:
        beat = cluster.beat()
        beat.wait_for_log("works on", 20)
        eventually(lambda: sql(cluster.database, idle)[0]["yes"], 20, "nothing is due")
        beat.stop()
        restarts += 1

    first, second, *_ = [job["scheduled_for"] for job in jobs(cluster.database, "interval")]
    assert (second - first).total_seconds() % 8 == 0
    assert restarts > 2
    assert jobs(cluster.database, "yearly") == []
