"""Every text of a row, as an attacker would write it: no command passes it on to the terminal as it is."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from hashlib import md5
from pathlib import Path

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.texts.safe_text import json_lines, one_line
from tests.harness.cli_shapes import SHAPES
from tests.harness.session import Session
from tests.harness.shell import Run

HOSTILE = "e\x1b[31m\x1b]0;owned\x07\x9b31m\u202egnp\u2028\r\nx\x7f\u200b2\u2066"
WIDE = "Ａ\U0001f4a3" * 100  # 200 characters, each two columns wide
NOT_OF_ROWS = {"sql", "migrate", "validate"}  # they show no row


@pytest.fixture
def run(migrated_database: str) -> Run:
    return lambda *words, **given: CliRunner().invoke(main, list(words), env={"PGBEAT_URL": migrated_database}, **given)


def fill(session: Session) -> None:
    """Put the texts wherever a text may stand, past all triggers."""
    session.insert("plain", schedule="every 1h")
    session.rows("set session_replication_role = replica")
    for name in (HOSTILE, WIDE):
        session.insert(
            name,
            task=name,
            queue=name,
            schedule="every 1h",
            group_name=name,
            submitter=name,
            subject=name,
            enabled=False,
            pause_reason=name,
            paused_by=name,
            managed_by=name,
            problem=name,
            args=json.dumps([name]),
            kwargs=json.dumps({name: name}),
            options=json.dumps({"headers": {name: name}}),
            blackout=[f"window: {name}"],
        )
        session.rows("insert into pgbeat.blackout (name, windows) values (%s, %s)", name, [name])
        session.rows("insert into pgbeat.task_group (name, paused, pause_reason) values (%s, true, %s)", name, name)
        session.rows(
            "insert into pgbeat.node (id, role, hostname, pid, version) values (%s, 'beat', %s, 7, %s)",
            name,
            name,
            name,
        )
        session.rows(
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, queue, "
            "created_at, finished_at, error, worker, beat) values (md5(%s)::uuid, %s, now(), 'schedule', 'failed', "
            "%s, %s, now(), now(), %s, %s, %s)",
            *[name] * 7,
        )
        session.rows(
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, tracking, pickup_deadline, busy_until, error, worker, beat) values (gen_random_uuid(), %s, "
            "now(), 'schedule', 'retrying', true, %s, '{}', 'give_up', 'full', '1 hour', now(), %s, %s, %s)",
            *[name] * 5,
        )
    session.rows("update pgbeat.periodic_task set after = array[%s] where name = %s", HOSTILE, WIDE)
    session.rows("insert into pgbeat.dependency values (%s, %s)", HOSTILE, WIDE)
    session.rows("set session_replication_role = default")


def words_of(command: str, name: str, lines: Path) -> list[str]:
    """Return what to type so that a command meets a row of this name."""
    of_a_row = [
        "show",
        "pause",
        "resume",
        "trigger",
        "explain",
        "remove",
        "replan",
        "group limit",
        "group pause",
        "group resume",
    ]
    more = {
        "group limit": ["2"],
        "work": ["list", "--owner", "ann"],
        "edit": [f"subject={name}", f"submitter={name}"],
        "revert": ["--to", "1"],
        "job retry": ["0" * 8 + "-0000-0000-0000-" + "0" * 12],
        "backfill": ["2026-05-01", "2026-05-02"],
        "backfill cancel": ["0" * 8 + "-0000-0000-0000-" + "0" * 12],
        "import": [str(lines), "--dry-run"],
        "compare": [str(lines.with_name("sent.jsonl")), "--since", "2d ago"],
        "job": [md5(name.encode(), usedforsecurity=False).hexdigest()],
        "add": ["--task", name, "--schedule", "every 1h"],
        "pause": ["--reason", name],
    }
    named = [name] if command in of_a_row or command in ("backfill", "add", "edit", "revert", "changes") else []
    return [*command.split(), *named, *more.get(command, [])]


@pytest.mark.parametrize("name", [HOSTILE, WIDE], ids=["control characters", "wide letters"])
@pytest.mark.parametrize("command", sorted({*SHAPES, "export"} - NOT_OF_ROWS))
def test_no_command_passes_a_hostile_text_on_as_it_is(
    run: Run, session: Session, tmp_path: Path, command: str, name: str
) -> None:
    fill(session)
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"name": name, "task": name, "queue": name}) + "\n")
    sent_at = (datetime.now(timezone.utc) - timedelta(hours=3)).isoformat()
    lines.with_name("sent.jsonl").write_text(json.dumps({"name": name, "sent_at": sent_at}) + "\n")
    words = words_of(command, name, lines)

    for json_too in [["--json"]] if command == "top" else [[], ["--json"]]:  # without it, top does not end
        printed = run(*words, *json_too)
        assert printed.exit_code != 2, printed.output
        raw = {letter for letter in printed.output if not letter.isprintable() and letter != "\n"}
        assert set() == raw, (words, printed.output)
        assert "\nx" not in printed.output, "a line break of the text is none of ours"


def test_what_is_escaped_in_json_reads_back_as_it_was(run: Run, session: Session) -> None:
    fill(session)

    exported = [json.loads(line) for line in run("export").stdout.splitlines()]

    assert {HOSTILE, WIDE, "plain"} == {record["name"] for record in exported if "name" in record}
    assert HOSTILE == json.loads(run("show", HOSTILE, "--json").stdout)["name"]


@pytest.mark.parametrize("text", [HOSTILE, WIDE, "Ünïcode 雪", "\ud800", ""])
def test_a_text_in_json_is_the_same_text_and_one_on_a_line_is_one_line(text: str) -> None:
    assert [text] == json.loads(json_lines([text], indent=2))
    assert one_line(text).isprintable()
    assert (one_line(text) == text) is text.isprintable()
