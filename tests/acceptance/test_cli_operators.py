"""The operators' commands as a person or a pipeline calls them: the installed script beside real beats and workers."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_cli import CELERY, SCRIPT, SHORT_LIVES, answer, script, shell
from tests.harness.cli_shapes import SHAPES, fault
from tests.harness.processes import Cluster
from tests.harness.rows import insert, row, sql
from tests.harness.wait import eventually

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Who was started in the background ignores SIGINT, and so would all that he starts.
INTERRUPTIBLE = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


def on_a_terminal(
    url: str, *words: str, typed: bytes = b"", ends_with: signal.Signals | None = None, when_seen: bytes = b""
) -> tuple[int, str]:
    """Run the script on a terminal of its own; return its exit code and what was seen.

    It is typed to, or gets a signal when something has been seen twice.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, SCRIPT, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PGBEAT_URL": url, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed)
    seen = b""
    with suppress(OSError):  # the terminal is gone when the process is
        while piece := os.read(ours, 65536):
            seen += piece
            if ends_with is not None and seen.count(when_seen) > 1:
                process.send_signal(ends_with)
                ends_with = None
    os.close(ours)
    return process.wait(30), seen.decode()


def test_definitions_travel_through_a_pipe_from_one_database_to_another(migrated_database: str, database: str) -> None:
    for number in range(3):
        insert(migrated_database, f"row-{number}", "every 1h", timezone="UTC")
    answer(database, "migrate")
    exported = shell(migrated_database, "export")
    assert (exported.returncode, exported.stderr) == (0, "")

    def imported() -> Any:
        return subprocess.run(
            [SCRIPT, "import", "-"],
            input=exported.stdout,
            env={**os.environ, "PGBEAT_URL": database},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert "3 added, 0 changed, 0 removed, 0 equal." in imported()
    assert imported() == "0 added, 0 changed, 0 removed, 3 equal.\n"
    assert exported.stdout == shell(database, "export").stdout


def test_a_declared_row_runs_and_a_removed_one_runs_no_more(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    cluster.worker()

    done = answer(
        cluster.database, "add", "often", "--task", "app.probe", "--schedule", "every 1s", "--args", '["often"]'
    )
    assert (done["done"], fault(SHAPES["add"], done)) == ("created", None)
    eventually(lambda: cluster.probe.runs("often"), 20, "the row runs")
    assert answer(cluster.database, "remove", "often") == {"removed": ["often"]}
    time.sleep(2)
    runs = len(cluster.probe.runs("often"))
    time.sleep(3)

    assert runs == len(cluster.probe.runs("often"))


def test_nodes_top_and_doctor_follow_the_life_of_beats_and_workers(cluster: Cluster) -> None:
    lives = {name.upper(): str(value) for name, value in SHORT_LIVES.items()}
    beat = cluster.beat(settings=SHORT_LIVES)
    cluster.worker()
    insert(cluster.database, "often", "every 1s")

    def alive(role: str) -> int:
        return len(answer(cluster.database, "nodes", "--role", role, "--alive", **lives))

    eventually(lambda: (alive("beat"), alive("worker")) == (1, 1), 30, "both are there")
    eventually(lambda: answer(cluster.database, "top", **lives)["started_per_second"] > 0, 20, "jobs are started")
    assert {"nodes", "search path"} >= {  # before Postgres 15 everybody may create objects in public
        found["check"] for found in json.loads(shell(cluster.database, "doctor", "--json").stdout)["findings"]
    }
    (worker,) = answer(cluster.database, "nodes", "--role", "worker", **lives)
    assert worker["tracking"]

    beat.kill()

    eventually(lambda: alive("beat") == 0, 20, "the beat is missed")
    ill = shell(cluster.database, "doctor", **lives)
    assert ill.returncode == 1
    assert "error: No beat has been seen since " in ill.stdout


def test_the_doctor_checks_the_tasks_and_the_broker_of_an_app(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    cluster.worker()
    insert(cluster.database, "fine", "every 1h")
    insert(cluster.database, "wrong", "every 1h", task="app.nowhere")

    def examined() -> dict[str, Any]:
        environment = {"PROBE_BROKER": cluster.broker}
        found: dict[str, Any] = json.loads(
            script(cluster.database, "doctor", "--json", command=CELERY, **environment).stdout
        )
        return found

    found = examined()

    assert set(found["checked"]) >= {"app tasks", "app broker", "app workers"}
    assert ["'app.nowhere'" in finding["what"] for finding in found["findings"] if finding["check"] == "app tasks"] == [
        True
    ]


def test_remove_asks_for_confirmation_on_a_terminal_and_not_in_a_pipe(migrated_database: str) -> None:
    insert(migrated_database, "nightly", "every 1h")

    refused = on_a_terminal(migrated_database, "remove", "nightly", typed=b"n\n")
    assert (refused[0], "Remove 'nightly'? [y/N]" in refused[1]) == (1, True)
    assert row(migrated_database, "nightly")["name"] == "nightly"

    agreed = on_a_terminal(migrated_database, "remove", "nightly", typed=b"y\n")
    assert (agreed[0], "Removed 'nightly'." in agreed[1]) == (0, True)
    assert sql(migrated_database, "select * from pgbeat.periodic_task") == []


def test_top_redraws_in_place_on_a_terminal_and_ends_with_ctrl_c(migrated_database: str) -> None:
    frame = b"0 beats, 0 workers"

    exit_code, seen = on_a_terminal(
        migrated_database, "top", "--interval", "0.5", ends_with=signal.SIGINT, when_seen=frame
    )

    assert exit_code == 0
    assert "\x1b[J" in seen


def test_top_ends_with_q_and_says_so(migrated_database: str) -> None:
    exit_code, seen = on_a_terminal(migrated_database, "top", "--interval", "60", typed=b"xq")

    assert exit_code == 0
    assert "q quits" in seen


def test_a_table_fits_the_terminal_it_is_shown_on(migrated_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(migrated_database, "x" * 60, "every 1h")
    monkeypatch.setenv("COLUMNS", "80")

    _, seen = on_a_terminal(migrated_database, "list")

    lines = ANSI.sub("", seen).splitlines()
    assert "x" * 60 in lines
    assert max(map(len, lines)) <= 80


def test_no_color_turns_colours_off_and_leaves_the_screen_in_place(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    health = on_a_terminal(migrated_database, "health")[1]
    _, top = on_a_terminal(migrated_database, "top", "--interval", "0.2", ends_with=signal.SIGINT, when_seen=b"0 beats")

    assert ("FAILED" in health, "\x1b" in health) == (True, False)
    assert "\x1b[J" in top
    assert "\x1b[31m" not in top
    assert "\x1b" not in on_a_terminal(migrated_database, "show", "unknown")[1]


def test_output_has_colour_on_a_terminal_only(migrated_database: str) -> None:
    insert(migrated_database, "nightly", "every 1h", enabled=False)

    assert "\x1b[33mpaused" in on_a_terminal(migrated_database, "list")[1]
    assert "\x1b" not in shell(migrated_database, "list").stdout


@pytest.mark.parametrize("words", [["sql"], ["sql", "--json"]])
def test_the_command_sql_needs_no_database(words: list[str], tmp_path: Path) -> None:
    done = shell("", *words)

    assert (done.returncode, done.stderr) == (0, "")
    assert "create table" in done.stdout
