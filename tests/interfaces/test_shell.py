"""The shell door on a real database, called in this process: what each command does, prints and ends with."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from click.testing import CliRunner, Result

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import COMMANDS, main
from celery_pgbeat.cli.options import confirmation
from celery_pgbeat.cli.output.no_beat import START
from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.cli_shapes import SHAPES, fault
from tests.harness.role import Role
from tests.harness.session import Session
from tests.harness.shell import Run

# The demo's proof is shown in its own test; an export is JSON lines; the dashboard is served.
NOT_JSON_OF_ONE_SHAPE = {"demo", "export", "web"}


def done(result: Result, exit_code: int = 0) -> str:
    """Return what was printed to stdout by a command that must end so."""
    told = "\n".join(line for line in result.stderr.splitlines() if START not in line)  # no beat runs here
    assert (exit_code, "") == (result.exit_code, told if not exit_code else ""), result.output
    return result.stdout


def answer(result: Result, exit_code: int = 0) -> Any:
    return json.loads(done(result, exit_code))


def announce(session: Session, node: str, role: str = "beat", silent: str = "1 second", tracking: bool = False) -> None:
    session.rows(
        "insert into pgbeat.node (id, role, hostname, pid, version, tracking, last_seen_at) "
        "values (%s, %s, 'host', 7, '0.1', %s, pgbeat.now() - %s::interval)",
        node,
        role,
        tracking,
        silent,
    )


def finish(session: Session, count: int, state: str = "succeeded", name: str = "nightly", queue: str = "slow") -> None:
    """Record final jobs, a second apart."""
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, queue, created_at, "
        "finished_at) select gen_random_uuid(), %s, pgbeat.now(), 'schedule', %s, 'app.probe', %s, "
        "pgbeat.now() - n * interval '1 second', pgbeat.now() from generate_series(1, %s) n",
        name,
        state,
        queue,
        count,
    )


def test_every_command_has_a_shape() -> None:
    assert set(COMMANDS) - NOT_JSON_OF_ONE_SHAPE == {words.split()[0] for words in SHAPES}


def test_what_each_command_prints_as_json_has_just_its_shape(run: Run, session: Session, tmp_path: Path) -> None:
    announce(session, "a-beat")
    announce(session, "a-worker", "worker", tracking=True)
    lines = tmp_path / "definitions.jsonl"
    lines.write_text('{"name": "imported", "task": "app.probe", "jitter": "30s"}\n')
    sent = tmp_path / "sent.jsonl"
    half_an_hour_ago = (datetime.now(timezone.utc) - timedelta(minutes=30)).isoformat()
    sent.write_text(json.dumps({"name": "nightly", "sent_at": half_an_hour_ago}) + "\n")
    full = (
        *("add", "nightly", "--task", "app.probe", "--schedule", "0 3 * * *", "--args", "[1]", "--kwargs", '{"a": 1}'),
        *("--max-run-time", "30m", "--start-at", "2100-01-01T00:00Z", "--blackout", "cron: 0 0 * * sat P2D"),
    )
    words: dict[str, tuple[str, ...]] = {
        "migrate": ("migrate",),
        "sql": ("sql",),
        "validate": ("validate", "0 3 * * *"),
        "add": full,
        "edit": ("edit", "nightly", "jitter=30s"),
        "changes": ("changes", "nightly"),
        "revert": ("revert", "nightly", "--to", "1"),
        "list": ("list",),
        "show": ("show", "nightly"),
        "pause": ("pause", "nightly", "--until", "2100-01-01"),
        "resume": ("resume", "nightly"),
        "replan": ("replan", "nightly"),
        "trigger": ("trigger", "nightly"),
        "job retry": ("job", "retry"),
        "explain": ("explain", "nightly"),
        "backfill": ("backfill", "nightly", "2026-05-01T00:00Z", "2026-05-31T00:00Z"),
        "backfill list": ("backfill", "list"),
        "backfill cancel": ("backfill", "cancel"),
        "group limit": ("group", "limit", "reports", "2"),
        "group pause": ("group", "pause", "reports", "--reason", "stocktaking"),
        "group list": ("group", "list"),
        "group resume": ("group", "resume", "reports"),
        "jobs": ("jobs",),
        "job": ("job",),
        "work": ("work", "list", "--owner", "ann"),
        "import": ("import", str(lines)),
        "upcoming": ("upcoming",),
        "graph": ("graph", "nightly"),
        "overdue": ("overdue",),
        "compare": ("compare", str(sent), "--since", "1h ago"),
        "nodes": ("nodes",),
        "top": ("top",),
        "doctor": ("doctor",),
        "health": ("health",),
        "remove": ("remove", "imported"),
    }

    faults = {}
    for command, line in words.items():
        if command == "upcoming":
            finish(session, 3)
            session.rows(
                "update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '1 hour' where name = 'nightly'"
            )
            session.rows("update pgbeat.active_job set state = 'running', started_at = pgbeat.now()")
        if command == "job retry":
            finish(session, 1, "failed")
        if command == "work":
            session.rows("select pgbeat.schedule('sign off', null, kind => 'human', target => array['ann'])")
            session.rows("select pgbeat.pick_up(pgbeat.trigger('sign off'), 'ann')")
        begun = {
            "backfill cancel": ["select id from pgbeat.backfill"],
            "job": ["select id from pgbeat.active_job limit 1"],
            "job retry": ["select id from pgbeat.finished_job limit 1"],
        }.get(command, [])
        more = ["--force"] if command == "job retry" else []
        result = run(*line, *map(session.value, begun), *more, "--json")
        printed = json.loads(result.stdout)
        assert printed, command
        faults[command] = fault(SHAPES[command], printed)

    assert dict.fromkeys(SHAPES) == faults


# --- add and remove


def test_a_pause_in_the_past_is_refused_and_a_resume_says_what_holds_the_row(run: Run, session: Session) -> None:
    session.insert("nightly", group_name="reports")

    refused = run("pause", "nightly", "--until", "2020-01-01")
    run("group", "pause", "reports")

    assert (1, True) == (refused.exit_code, session.task("nightly")["enabled"])
    assert (
        "Error: until is 2020-01-01 00:00:00Z, which is in the past. Give a later time, or none: then the pause lasts "
        "until it is resumed.\n"
    ) == refused.stderr
    assert (
        "'nightly' was not paused, but its group 'reports' is paused. Resume it with: celery-pgbeat group resume "
        "reports\n"
    ) == done(run("resume", "nightly"))


def test_health_says_what_became_of_the_beats(run: Run, session: Session) -> None:
    def beats() -> str:
        result = run("health", "--only", "beats")
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("beats"))
        return f"{result.exit_code} {' '.join(line.split())}"

    assert beats().startswith("3 beats FAILED No beat is running: none has ever been started")
    assert beats().endswith(START)
    session.rows("insert into pgbeat.stopped_beat values ('old', 'host', '2026-11-23 10:00Z')")
    assert beats().startswith("3 beats FAILED No beat is running: the last one was stopped at 2026-11-23 10:00:00Z")
    announce(session, "a-beat", silent="50 seconds")
    assert beats().startswith("3 beats FAILED No beat has been seen since ")
    announce(session, "another", silent="2 seconds")
    assert "0 beats ok 1 alive, the last heartbeat 2 s ago" == beats()


def test_health_says_whether_a_run_is_overdue(run: Run, session: Session) -> None:
    def lag() -> str:
        (line,) = (line for line in run("health").stdout.splitlines() if line.startswith("lag"))
        return " ".join(line.split())

    assert "lag ok nothing is overdue" == lag()
    session.insert("late")
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '90 seconds'")
    assert lag().startswith("lag FAILED overdue by 90 s, see `celery-pgbeat ")


def test_a_row_is_created_changed_and_left_alone(run: Run, session: Session) -> None:
    add = ("add", "nightly", "--task", "app.probe", "--schedule", "0 3 * * *", "--timezone", "Europe/Berlin")

    assert "Created 'nightly'." == done(run(*add)).splitlines()[0]
    written = session.value("select xmin::text from pgbeat.periodic_task")
    assert "Unchanged 'nightly'.\n" == done(run(*add))
    assert written == session.value("select xmin::text from pgbeat.periodic_task")
    changed = done(run(*add, "--overlap", "allow", "--max-run-time", "90m"))
    assert changed.startswith("~ nightly\n    overlap: skip -> allow\n    max_run_time: nothing -> 1h30m\n")
    assert ("allow", timedelta(minutes=90)) == tuple(
        session.row("select overlap, max_run_time from pgbeat.periodic_task").values()
    )


def test_every_column_can_be_given(run: Run, beat: PgBeat) -> None:
    given = {
        "args": '[1, "a"]',
        "kwargs": '{"box": 1}',
        "queue": "fast",
        "priority": "7",
        "options": '{"expires": 60}',
        "timezone": "Asia/Tokyo",
        "anchor": "2026-01-01T00:00:00Z",
        "dst": "skip",
        "start-at": "2026-01-01",
        "end-at": "2027-01-01T00:00:00+02:00",
        "max-runs": "5",
        "jitter": "2m",
        "overlap": "buffer_one",
        "catchup": "all",
        "catchup-window": "1h",
        "catchup-limit": "7",
        "min-gap": "55s",
        "pause-after-failures": "3",
        "max-run-time": "50%",
        "blackout-action": "skip",
        "submitter": "anna",
        "subject": "the inbox",
        "on-lost": "rerun",
        "tracking": "send",
    }
    options = [word for column, value in given.items() for word in (f"--{column}", value)]
    windows = ("--blackout", "cron: 0 0 * * sat P2D", "--blackout", "RRULE:FREQ=DAILY;BYHOUR=0 PT30S")

    whole = (*options, *windows, "--sensitive", "--managed-by", "ops")
    done(run("add", "all", "--task", "mail.poll", "--schedule", "every 5m", *whole))

    row = beat.get("all")
    assert ([1, "a"], {"box": 1}, 7, {"expires": 60}) == (row.args, row.kwargs, row.priority, row.options)
    assert ("2025-12-31T15:00:00+00:00", "2026-12-31T22:00:00+00:00") == (
        row.start_at and row.start_at.isoformat(),
        row.end_at and row.end_at.isoformat(),
    )
    assert (5, timedelta(minutes=2), timedelta(seconds=150)) == (row.max_runs, row.jitter, row.max_run_time)
    assert ["cron: 0 0 * * sat P2D", "RRULE:FREQ=DAILY;BYHOUR=0 PT30S"] == row.blackout
    assert row.sensitive
    assert ("ops", "rerun", "send", "buffer_one") == (row.managed_by, row.on_lost, row.tracking, row.overlap)
    assert 3 == row.pause_after_failures


def test_a_row_of_another_manager_is_taken_over_only_with_the_option(run: Run, session: Session) -> None:
    session.insert("nightly", schedule="0 3 * * *")
    add = ("add", "nightly", "--task", "app.probe", "--schedule", "0 4 * * *")

    refused = run(*add)

    assert (1, "Error: 'nightly' is managed by 'sql': change it there, or add --take-over\n") == (
        refused.exit_code,
        refused.stderr,
    )
    assert "managed_by: sql -> api" in done(run(*add, "--take-over"))


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("--schedule", "0 25 * * *"), 1, "'0 25 * * *': hour 25 is not in 0-23"),
        (("--args", "{}"), 2, "'{}' is not a JSON array"),
        (("--kwargs", "{"), 2, "'{' is not JSON"),
        (("--overlap", "never"), 1, "overlap is 'never', not one of skip"),
        (("--jitter", "soon"), 1, "jitter is 'soon'"),
        (("--max-runs", "many"), 2, "'many' is not a valid integer"),
    ],
)
def test_what_is_wrong_with_a_new_row_is_said(run: Run, words: tuple[str, ...], exit_code: int, said: str) -> None:
    result = run("add", "x", "--task", "app.probe", *words)

    assert exit_code == result.exit_code
    assert said in result.stderr


def test_rows_are_removed_all_or_none(run: Run, session: Session) -> None:
    for name in ("nightly", "hourly"):
        session.insert(name)

    unknown = run("remove", "hourly", "nigthly")

    assert (1, "Error: No periodic task is named 'nigthly'. Did you mean 'nightly'?\n") == (
        unknown.exit_code,
        unknown.stderr,
    )
    assert "Removed 'hourly', 'nightly'.\n" == done(run("remove", "hourly", "nightly", "hourly"))
    assert [] == session.rows("select * from pgbeat.periodic_task")


def test_removing_a_row_at_a_terminal_needs_a_confirmation(
    run: Run, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    session.insert("nightly")

    kept = run("remove", "nightly", input="n\n")

    assert (1, "nightly") == (kept.exit_code, session.value("select name from pgbeat.periodic_task"))
    assert "Remove 'nightly'? [y/N]" in kept.stderr
    assert "Removed 'nightly'.\n" == done(run("remove", "nightly", "--yes"))


def test_removing_what_code_declares_warns_that_it_comes_back(run: Run, session: Session) -> None:
    session.insert("nightly", managed_by="code:shop")

    assert "a beat that starts adds it again" in run("remove", "nightly").stderr


# --- nodes


def test_nodes_are_listed_with_their_silence_and_their_jobs(run: Run, session: Session) -> None:
    announce(session, "a-beat")
    announce(session, "old-beat", silent="1 hour")
    announce(session, "a-worker", "worker", tracking=True)
    session.insert("nightly")
    session.value("select pgbeat.trigger('nightly')")
    session.rows("update pgbeat.active_job set state = 'running', worker = 'a-worker'")

    found = {node["id"]: node for node in answer(run("nodes", "--json"))}

    assert {"a-beat": (True, 0), "old-beat": (False, 0), "a-worker": (True, 1)} == {
        name: (node["alive"], node["jobs"]) for name, node in found.items()
    }
    assert 3600 == pytest.approx(found["old-beat"]["silent_for"], abs=60)
    assert ["a-worker"] == [node["id"] for node in answer(run("nodes", "--role", "worker", "--json"))]
    assert ["old-beat"] == [node["id"] for node in answer(run("nodes", "--dead", "--json"))]
    assert ["beat", "host", "7", "dead"] == done(run("nodes", "--dead")).splitlines()[1].split()[:4]


# --- list and jobs


def test_a_list_is_filtered_and_paged_by_names(run: Run, session: Session) -> None:
    for name in ("a-1", "a-2", "a-3", "b-1"):
        session.insert(name, queue="fast" if name != "a-2" else "slow")

    def names(*words: str) -> list[str]:
        return [row["name"] for row in answer(run("list", "--json", *words))]

    assert ["a-1", "a-2", "a-3"] == names("--like", "a-%")
    assert ["a-1", "a-3"] == names("--like", "a-%", "--queue", "fast")
    assert ["a-3", "b-1"] == names("--after", "a-2", "--limit", "2")
    assert [] == names("--task", "other")


def test_jobs_are_filtered_and_paged_without_a_gap_or_a_double(run: Run, session: Session) -> None:
    finish(session, 5)
    finish(session, 5, "failed", name="other", queue="fast")
    session.insert("nightly")
    session.value("select pgbeat.trigger('nightly')")
    assert 3 == len(answer(run("jobs", "--json", "--limit", "3")))
    everything = [job["id"] for job in answer(run("jobs", "--json"))]

    paged: list[str] = []
    while page := answer(run("jobs", "--json", "--limit", "3", *(("--after", paged[-1]) if paged else ()))):
        paged += [job["id"] for job in page]

    assert 11 == len(everything) == len(set(everything))
    assert everything == paged
    assert [("other", "failed")] * 5 == [
        (job["periodic_task"], job["state"]) for job in answer(run("jobs", "--json", "--queue", "fast"))
    ]
    assert 1 == len(answer(run("jobs", "nightly", "--json", "--state", "pending")))
    assert 6 == len(answer(run("jobs", "--json", "--like", "night%")))
    assert 0 == len(answer(run("jobs", "--json", "--since", "2100-01-01")))


def test_a_page_of_jobs_after_an_unknown_one_is_refused(run: Run) -> None:
    unknown = "00000000-0000-0000-0000-000000000007"

    result = run("jobs", "--after", unknown)

    assert (1, f"Error: There is no job {unknown}; jobs are kept for pgbeat_retention\n") == (
        result.exit_code,
        result.stderr,
    )


def test_a_full_page_of_jobs_says_how_to_get_the_next(run: Run, session: Session) -> None:
    finish(session, 2)

    result = run("jobs", "--limit", "1")

    assert f"There may be more: --after {result.stdout.splitlines()[1].split()[0]}\n" == result.stderr


# --- export and import


def test_what_is_exported_is_imported_as_it_was(run: Run, session: Session, tmp_path: Path) -> None:
    done(run("add", "a", "--task", "app.probe", "--schedule", "every 5m", "--jitter", "90s", "--args", '["ü", 1.5]'))
    done(run("add", "b", "--task", "app.probe", "--blackout", "cron: 0 0 * * sat P2D", "--options", '{"expires": 5}'))
    session.insert("of sql", schedule="every 1h", end_at="2100-01-01T00:00:00Z")
    lines = tmp_path / "all.jsonl"
    lines.write_text(done(run("export")))
    before = session.rows("select * from pgbeat.periodic_task order by name")

    assert (
        '{"name": "a", "task": "app.probe", "args": ["ü", 1.5], "schedule": "every 5m", '
        '"jitter": "1m30s", "managed_by": "api"}'
    ) == lines.read_text().splitlines()[0]
    assert '"end_at": "2100-01-01T00:00:00+00:00"' in done(run("export", "--managed-by", "sql"))
    assert "b" == json.loads(done(run("export", "--like", "b%")))["name"]
    assert "0 added, 0 changed, 0 removed" in done(run("import", str(lines)))
    assert before == session.rows("select * from pgbeat.periodic_task order by name")
    session.rows("delete from pgbeat.periodic_task")
    assert "3 added" in done(run("import", str(lines)))
    assert lines.read_text() == done(run("export"))


def test_an_export_of_any_managers_with_groups_and_windows_is_imported_into_an_empty_schema(
    run: Run, session: Session
) -> None:
    for manager in ("api", "sql", "ops"):
        session.insert(f"of {manager}", schedule="every 1h", managed_by=manager, group_name="reports")
    session.insert("of code", schedule="every 1h", managed_by="code:shop")
    session.rows("insert into pgbeat.blackout values ('night', array['cron: 0 0 * * * PT5H'], 'Europe/Berlin')")
    session.rows("update pgbeat.periodic_task set blackout = array['window: night'] where name = 'of api'")
    done(run("group", "limit", "reports", "2"))
    done(run("group", "pause", "reports"))
    session.rows("insert into pgbeat.task_group (name, paused) values ('only paused', true)")
    lines = done(run("export"))
    tables = ("periodic_task", "blackout", "task_group")

    assert "0 added, 0 changed, 0 removed, 5 equal" in run("import", "-", input=lines).stdout
    for table in tables:
        session.rows(f"delete from pgbeat.{table}")
    restored = run("import", "-", input=lines)

    assert [
        '{"group": "reports", "max_active": 2}',
        '{"window": "night", "windows": ["cron: 0 0 * * * PT5H"], "timezone": "Europe/Berlin"}',
    ] == lines.splitlines()[:2]
    assert "Left out: 1 line of rows that code declares; the beats of its app write them.\n" == restored.stderr
    assert "+ group reports\n    max_active: 2\n" in restored.stdout
    assert "+ window night\n" in restored.stdout
    assert [line for line in lines.splitlines() if "code:shop" not in line] == done(run("export")).splitlines()
    assert '{"name": "of api"' == done(run("export", "--like", "of a*"))[:17]


def test_a_group_or_window_of_a_file_replaces_the_one_in_the_table(run: Run, session: Session) -> None:
    session.insert("a report", group_name="reports")
    done(run("group", "limit", "reports", "2"))
    done(run("group", "pause", "reports", "--reason", "stocktaking"))
    session.rows("insert into pgbeat.blackout values ('night', array['cron: 0 0 * * * PT5H'])")
    changed = '{"group": "reports", "max_active": 5}\n{"window": "night", "windows": [], "timezone": "Asia/Tokyo"}\n'

    shown = run("import", "-", input=changed).stdout
    left = run("import", "-", "--managed-by", "api", input='{"group": "reports", "max_active": 9}\n')

    assert (
        "~ group reports\n    max_active: 2 -> 5\n"
        '~ window night\n    windows: ["cron: 0 0 * * * PT5H"] -> []\n    timezone: nothing -> Asia/Tokyo\n'
        "0 added, 2 changed, 0 removed, 0 equal.\n"
    ) == shown
    assert "Left out: 1 line that 'api' does not own.\n" == left.stderr
    assert [(5, True, "stocktaking")] == [
        tuple(row.values()) for row in session.rows("select max_active, paused, pause_reason from pgbeat.task_group")
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"group": "g", "max_active": 0}', "group 'g': max_active is 0, not at least 1"),
        ('{"group": "g", "max_activ": 1}', "no column 'max_activ'. Did you mean 'max_active'?"),
        ('{"group": 7}', "group 7: group is 7, not text"),
        ('{"window": "w"}', "window 'w': windows is None, not a list of texts"),
        ('{"window": "w", "windows": [1]}', "window 'w': windows[0] is 1, not text"),
        ('{"window": "w", "windows": ["cron: 0 25 * * * PT1H"]}', "hour 25 is not in 0-23"),
        ('{"window": "w", "windows": ["window: other"]}', "there is no blackout window named 'other'"),
        ('{"window": "w", "windows": [], "timezone": "Mars"}', "Mars"),
        ('{"group": "g"}\n{"group": "g"}', "line 2: 'g' has been on line 1 already"),
        ('{"name": "x", "task": "y", "group": "g"}', "there is no column 'group'. Did you mean 'group_name'?"),
    ],
)
def test_a_wrong_group_or_window_of_a_file_is_refused_with_its_line(
    run: Run, session: Session, line: str, fault: str
) -> None:
    result = run("import", "-", input=line)

    assert (1, True) == (result.exit_code, "nothing is imported:\n  line " in result.stderr)
    assert fault in result.stderr
    assert 0 == session.value("select count(*) from pgbeat.task_group")


def test_a_row_that_cannot_be_read_is_shown_so_and_hides_no_other(run: Run, session: Session) -> None:
    for name in ("a", "deep", "digits", "z"):
        session.insert(name, schedule="every 1h")
    session.rows("set session_replication_role = replica")
    session.rows("update pgbeat.periodic_task set args = %s where name = 'deep'", "[" * 3000 + "]" * 3000)
    session.rows("update pgbeat.periodic_task set kwargs = %s where name = 'digits'", f'{{"a": {"9" * 60_000}}}')
    session.rows("set session_replication_role = default")

    assert ["a", "deep", "digits", "z"] == [task["name"] for task in answer(run("list", "--json"))]
    assert "deep" in done(run("list"))
    assert "<unreadable: nested more than 100 levels deep>" == answer(run("show", "deep", "--json"))["args"]
    assert "<unreadable: has a number of more than 309 digits>" in done(run("show", "digits"))
    exported = run("export")
    assert (1, ["a", "z"]) == (
        exported.exit_code,
        [json.loads(line)["name"] for line in exported.stdout.splitlines()],
    )
    assert "'deep' is not exported: args is <unreadable: nested more than 100 levels deep>" in exported.stderr
    assert "'digits' is not exported" in exported.stderr


def test_an_import_shows_the_difference_field_by_field_and_writes_it(run: Run, session: Session) -> None:
    done(run("add", "stays", "--task", "app.probe"))
    done(run("add", "changes", "--task", "app.probe", "--schedule", "every 5m", "--timezone", "Asia/Tokyo"))
    done(run("add", "goes", "--task", "app.probe"))
    lines = (
        '{"name": "stays", "task": "app.probe"}\n\n'
        '{"name": "changes", "task": "app.probe", "schedule": "every 10m", "managed_by": "api"}\n'
        '{"name": "comes", "task": "app.probe", "max_run_time": "30m"}\n'
    )
    shown = (
        "~ changes\n    schedule: every 5m -> every 10m\n"
        "+ comes\n    task: app.probe\n    max_run_time: 30m\n    managed_by: api\n"
        "- goes\n"
        "1 added, 1 changed, 1 removed, 1 equal"
    )

    dry = done(run("import", "-", "--prune", "--dry-run", input=lines))
    assert f"{shown}; nothing was written.\n" == dry
    assert 3 == session.value("select count(*) from pgbeat.periodic_task")
    assert f"{shown}.\n" == done(run("import", "-", "--prune", input=lines))
    assert [("changes", "every 10m", "Asia/Tokyo"), ("comes", None, None), ("stays", None, None)] == [
        tuple(row.values())
        for row in session.rows("select name, schedule, timezone from pgbeat.periodic_task order by 1")
    ]


def test_a_file_with_anything_wrong_changes_nothing_and_all_of_it_is_named(run: Run, session: Session) -> None:
    session.insert("of sql", schedule="every 1h")
    lines = (
        '{"name": "good", "task": "a"}\n{"name": "good", "task": "a"}\n{"name": "no task"}\nnonsense\n[1]\n'
        '{"name": "t", "task": "a", "start_at": "x"}\n{"name": "t", "task": "a", "colour": "red"}\n'
        '{"name": "s", "task": "a", "schedule": "0 25 * * *"}\n{"name": "of sql", "task": "a"}\n'
    )

    result = run("import", "-", input=lines)

    assert 1 == result.exit_code
    assert [
        "Error: nothing is imported:",
        "  line 2: 'good' has been on line 1 already",
        "  line 3: 'no task': task is missing: give a Celery task, the name of one, or a signature",
        "  line 4: Expecting value: line 1 column 1 (char 0); each line is a definition in JSON, as of `export`",
        "  line 5: a list, not an object with the columns",
        "  line 6: 't': start_at is 'x', not a date-time such as 2026-12-24T18:00:00Z",
        "  line 7: 't': there is no column 'colour'",
        "  line 8: 's': '0 25 * * *': hour 25 is not in 0-23",
        "  line 9: 'of sql' is managed by 'sql': leave it out, or take it over (take_over)",
    ] == result.stderr.splitlines()
    assert 1 == session.value("select count(*) from pgbeat.periodic_task")


def test_an_import_leaves_the_rows_of_other_managers_as_they_are(run: Run, session: Session) -> None:
    session.insert("other", schedule="every 1h")
    session.insert("old", schedule="every 1h", managed_by="ops")
    two = '{"name": "a", "task": "x", "managed_by": "api"}\n{"name": "b", "task": "x", "managed_by": "ops"}\n'

    one = run("import", "-", "--managed-by", "ops", "--prune", input=two)
    refused = run("import", "-", input='{"name": "other", "task": "x", "managed_by": "ops"}\n')
    taken = run("import", "-", "--take-over", input='{"name": "other", "task": "x", "managed_by": "ops"}\n')
    code = run("import", "-", "--managed-by", "code:shop", input=two)
    nothing = run("import", "-", "--managed-by", "ops", "--prune", input=two.splitlines()[0])

    assert (0, "Left out: 1 line that 'ops' does not own.\n") == (one.exit_code, one.stderr)
    assert "- old\n" in one.stdout
    assert (1, True) == (refused.exit_code, "'other' is managed by 'sql'" in refused.stderr)
    assert (0, True) == (taken.exit_code, "managed_by: sql -> ops" in taken.stdout)
    assert (1, True) == (code.exit_code, "from the code of that app" in code.stderr)
    assert (1, True) == (nothing.exit_code, "the file defines nothing of ops" in nothing.stderr)
    assert ["b", "other"] == [row["name"] for row in session.rows("select name from pgbeat.periodic_task order by 1")]


def test_prune_removes_what_is_missing_of_each_manager_in_the_file_and_of_no_other(run: Run, session: Session) -> None:
    for manager in ("api", "ops", "sql", "code:shop"):
        session.insert(f"old {manager}", schedule="every 1h", managed_by=manager)
    two = '{"name": "a", "task": "x"}\n{"name": "b", "task": "x", "managed_by": "ops"}\n'

    run("import", "-", "--prune", input=two + '{"name": "c", "task": "x", "managed_by": "code:shop"}\n')

    left = [row["name"] for row in session.rows("select name from pgbeat.periodic_task order by 1")]
    assert ["a", "b", "old code:shop", "old sql"] == left


def test_a_file_may_begin_with_a_byte_order_mark_but_must_be_text(run: Run, session: Session, tmp_path: Path) -> None:
    marked, broken = tmp_path / "marked", tmp_path / "broken"
    marked.write_bytes(b'\xef\xbb\xbf{"name": "x", "task": "y"}\r\n')
    broken.write_bytes(b'{"name": "z", "task": "y", "queue": "\xff"}\n')

    refused = run("import", str(broken))

    assert (1, True) == (refused.exit_code, "queue is '\\udcff'" in refused.stderr)
    assert "1 added" in done(run("import", str(marked)))
    assert "x" == session.value("select name from pgbeat.periodic_task")


def test_the_commands_say_that_the_schema_is_missing(database: str) -> None:
    shown = normalise_url(database).set(drivername="postgresql").render_as_string(hide_password=True)

    for words in (["nodes"], ["list"], ["export"], ["top", "--once"], ["add", "x", "--task", "y"], ["import", "-"]):
        result = CliRunner().invoke(main, ["--url", database, *words], input='{"name": "x", "task": "y"}')

        assert (1, True) == (result.exit_code, f"run `celery-pgbeat --url {quote(shown)} migrate`" in result.stderr)


def test_what_the_database_refuses_undoes_the_whole_import(run: Run, session: Session) -> None:
    session.rows("alter table pgbeat.periodic_task add constraint no_b check (name <> 'b')")

    result = run("import", "-", input='{"name": "a", "task": "x"}\n{"name": "b", "task": "x"}\n')

    assert (1, True) == (result.exit_code, "no_b" in result.stderr)
    assert 0 == session.value("select count(*) from pgbeat.periodic_task")


def test_a_row_that_became_anothers_after_the_comparison_is_not_touched(session: Session, beat: PgBeat) -> None:
    from celery_pgbeat.api.importing import Importer
    from celery_pgbeat.errors import InvalidPeriodicTask
    from celery_pgbeat.postgres.admin_queries import AdminQueries

    session.insert("x", managed_by="api")
    with Importer(AdminQueries(beat.database), beat.settings) as importer:
        assert ["x"] == [found.name for found in importer.compare(['{"name": "x", "task": "other"}'])]
        session.rows("update pgbeat.periodic_task set managed_by = 'ops'")

        with pytest.raises(InvalidPeriodicTask, match="'x' is managed by 'ops'"):
            importer.apply()

    assert "app.probe" == session.task("x")["task"]


def test_many_rows_are_imported_in_steps(run: Run, session: Session) -> None:
    lines = "".join(f'{{"name": "row-{n:04}", "task": "x", "schedule": "0 * * * *"}}\n' for n in range(2500))

    assert 2500 == len(answer(run("import", "-", "--json", input=lines))["differences"])
    assert 2500 == session.value("select count(*) from pgbeat.periodic_task")
    assert 2499 == len(answer(run("import", "-", "--prune", "--json", input=lines.splitlines()[0]))["differences"])
    assert "row-0000" == json.loads(done(run("export")))["name"]


@pytest.mark.parametrize(
    ("columns", "warned"),
    [
        ({"schedule": "every 30m"}, True),
        ({"schedule": "every 30m", "start_at": "2027-01-01T00:00:00Z"}, True),
        ({"schedule": "every 30m", "jitter": "1m"}, False),
        ({"schedule": "H * * * *"}, False),
    ],
)
def test_an_import_warns_of_many_intervals_that_are_counted_from_one_instant(
    run: Run, columns: dict[str, str], warned: bool
) -> None:
    rows = [{"name": f"row-{n}", "task": "x", **columns} for n in range(100)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)

    assert "Warning" not in run("import", "-", "--dry-run", input=lines.partition("\n")[2]).stderr
    said = run("import", "-", "--dry-run", input=lines).stderr
    assert warned == ("100 new rows are 'every 30m', counted from one instant" in said)


# --- doctor


@pytest.mark.parametrize(
    ("schedule", "mend"), [("every 30m", "Rows of one INSERT count their intervals from one"), ("0 0 * * *", "write H")]
)
def test_the_doctor_notes_many_rows_that_are_due_at_once(run: Run, well: Session, schedule: str, mend: str) -> None:
    well.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        f"select 'row-' || n, 'app.probe', '{schedule}', '2999-01-01Z' from generate_series(1, 100) as n"
    )
    found = {row["check"]: row for row in answer(run("doctor", "--json"), 0)["findings"]}["due together"]

    assert ("note", True) == (found["severity"], mend in found["mend"])
    assert found["what"].startswith("100 rows are due at once, at 2999-01-01")
    well.rows("delete from pgbeat.periodic_task where name = 'row-1'")
    assert "due together" not in {row["check"] for row in answer(run("doctor", "--json"), 0)["findings"]}


def findings(result: Result) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in json.loads(result.stdout)["findings"]:
        found.setdefault(finding["check"], []).append(f"{finding['severity']}: {finding['what']}")
    return found


@pytest.fixture
def well(session: Session) -> Session:
    """A database with nodes that live."""
    announce(session, "a-beat")
    announce(session, "a-worker", "worker", tracking=True)
    session.rows("revoke create on schema public from public")  # which before Postgres 15 everybody had
    return session


def test_where_all_is_well_the_doctor_finds_only_that_versions_differ(run: Run, well: Session) -> None:
    if "off" == well.value("show autovacuum"):
        pytest.skip("autovacuum is off in this server, and the doctor would say so")

    result = run("doctor", "--json")

    assert 0 == result.exit_code
    assert {"nodes": ["note: Nodes run version 0.1, this is 0.1.0."]} == findings(result)
    well.rows("update pgbeat.node set version = '0.1.0'")
    assert "No problems found.\n" == run("doctor").stdout


def test_the_doctor_misses_beats_and_trackers(run: Run, session: Session) -> None:
    announce(session, "old-beat", silent="1 hour")
    announce(session, "a-worker", "worker")

    result = run("doctor", "--json")

    assert 1 == result.exit_code
    assert ["error", "warning", "note"] == [one.partition(":")[0] for one in findings(result)["nodes"]]
    assert findings(result)["nodes"][0].startswith("error: No beat has been seen since ")


def test_the_doctor_finds_what_hangs(run: Run, well: Session) -> None:
    for name in ("late", "marked", "lazy", "unplanned", "problem"):
        well.insert(name, schedule="every 1h")
    well.rows(
        "update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '1 hour' where name <> 'unplanned'"
    )
    well.rows("update pgbeat.periodic_task set lazy = true where name = 'lazy'")
    well.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '1 hour' where name = 'lazy'")
    well.rows(
        "update pgbeat.periodic_task set marked_by = 'a-beat', marked_at = pgbeat.now() - interval '1 hour' "
        "where name = 'marked'"
    )
    well.rows("alter table pgbeat.periodic_task disable trigger all")
    well.rows("update pgbeat.periodic_task set updated_at = pgbeat.now() - interval '1 hour'")
    well.rows("update pgbeat.periodic_task set problem = 'no such zone' where name = 'problem'")
    for name, state in (("unsent", "pending"), ("silent", "sent"), ("endless", "running"), ("alone", "buffered")):
        well.rows(
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, tracking, pickup_deadline, busy_until, created_at, wait_reason, started_at) "
            "values (gen_random_uuid(), %s, "
            "pgbeat.now(), 'schedule', %s, false, 'x', '{}', 'give_up', 'full', '1 hour', "
            "case when %s in ('silent', 'unsent') then pgbeat.now() - interval '1 hour' else 'infinity' end, "
            "pgbeat.now() - interval '2 days', case when %s = 'alone' then 'predecessor' end, "
            "case when %s = 'endless' then pgbeat.now() - interval '2 days' end)",
            *(name, state, name, name, name),
        )

    result = run("doctor", "--json")

    heads = [one.partition(", the first")[0] for one in findings(result)["stuck"]]
    assert 1 == result.exit_code
    assert [
        "error: Overdue and not sent: 1 row",
        "warning: Due, with lazy arguments that no beat's code declares: 1 row",
        "error: Marked and not sent: 1 row",
        "error: Not planned: 1 row",
        "error: Cannot be planned: 1 row, 'problem': no such zone.",
        "error: Not at the broker yet: 1 job",
        "error: Silent past busy_until, and not judged: 1 job",
        "warning: Running for more than a day without a max_run_time: 1 job",
        "error: Waits, though nothing keeps it waiting: 1 job",
    ] == heads


def test_the_doctor_says_nothing_of_croniter_where_only_a_hashed_field_differs(run: Run, well: Session) -> None:
    for number in range(3):
        well.insert(f"spread-{number}", schedule="H H * * *", timezone="UTC")

    assert "croniter" not in findings(run("doctor", "--json"))


def test_the_doctor_compares_cron_rows_with_croniter(run: Run, well: Session) -> None:
    for name, schedule in (("alike", "0 9 * * 1-5"), ("june", "0 0 1 6-6 *"), ("minute", "4-4/3 * * * *")):
        well.insert(name, schedule=schedule)
    well.insert("workday", schedule="0 0 LW * *")
    well.insert("interval", schedule="every 1h")

    result = run("doctor", "--json")

    differing, unreadable = findings(result)["croniter"]
    assert 0 == result.exit_code
    assert differing.startswith(
        "note: croniter would run 2 rows at other instants, the first is 'minute' (4-4/3 * * * *), "
    )
    assert "note: croniter cannot read 1 row, the first is 'workday' (0 0 LW * *): [0 0 lw * *] is not acceptable." == (
        unreadable
    )


def test_the_doctor_finds_a_table_that_is_not_vacuumed(run: Run, well: Session) -> None:
    well.rows("alter table pgbeat.node set (autovacuum_enabled = off)")

    (found,) = [one for one in json.loads(run("doctor", "--json").stdout)["findings"] if "'node'" in one["what"]]

    assert "Autovacuum is off for the table 'node'." == found["what"]
    well.rows(found["mend"].partition("(")[2].rpartition(")")[0])
    assert "'node'" not in run("doctor").stdout


def test_the_doctor_reads_the_history_s_days(run: Run, well: Session) -> None:
    well.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) values (gen_random_uuid(), 'x', now(), 'schedule', 'succeeded', 'x', '2020-01-01', now())"
    )
    well.rows(
        "create table pgbeat.finished_job_20200201 partition of pgbeat.finished_job "
        "for values from ('2020-02-01') to ('2020-02-02')"
    )
    tomorrow = well.value("select to_char((pgbeat.now() at time zone 'UTC')::date + 1, 'YYYYMMDD')")
    well.rows(f"drop table pgbeat.finished_job_{tomorrow}")

    result = run("doctor", "--json")

    assert 1 == result.exit_code
    assert [
        "error: The history lacks partitions for 1 coming day, the first is "
        f"{tomorrow[:4]}-{tomorrow[4:6]}-{tomorrow[6:]}.",
        "warning: The history still has 1 day from before pgbeat_retention (30 days), the first is 2020-02-01.",
        "note: Some final jobs are in the default partition of the history, because their day's was not created in "
        "time.",
    ] == findings(result)["history"]


def test_the_doctor_notices_a_clock_that_is_off(run: Run, well: Session) -> None:
    well.rows(
        "create or replace function pgbeat.now() returns timestamptz language sql stable "
        "as $$ select statement_timestamp() - interval '1 minute' $$"
    )

    assert ["warning: The clock of this node is 60 s ahead of the database's."] == findings(run("doctor", "--json"))[
        "clock"
    ]


def test_the_doctor_compares_the_rules_of_the_zones(run: Run, well: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from zoneinfo import ZoneInfo

    from celery_pgbeat.cli.doctor import clocks

    well.insert("nightly", schedule="0 3 * * *", timezone="Europe/Berlin")
    assert "zones" not in findings(run("doctor", "--json"))
    monkeypatch.setattr(clocks, "ZoneInfo", lambda _: ZoneInfo("Africa/Tunis"))  # as if summer time had been abolished

    (found,) = findings(run("doctor", "--json"))["zones"]

    assert "Postgres have different rules for 'Europe/Berlin', first at" in found


def test_the_doctor_finds_that_strangers_may_create_functions_in_the_search_path(run: Run, well: Session) -> None:
    assert "search path" not in findings(run("doctor", "--json"))
    well.rows("grant create on schema public to public")

    result = run("doctor", "--json")

    (found,) = [one for one in json.loads(result.stdout)["findings"] if one["check"] == "search path"]
    assert (1, "warning") == (result.exit_code, found["severity"])
    assert "Every user may create functions in the schema public" in found["what"]
    for statement in (
        found["mend"].removeprefix("Revoke that right, as the schema's owner: ").split("; or change the path: ")
    ):
        well.rows("begin")
        well.rows(statement)
        well.rows("rollback")
    well.rows("revoke create on schema public from public")
    assert "search path" not in findings(run("doctor", "--json"))


def test_a_schema_outside_of_the_search_path_may_be_open_to_all(role: Role, well: Session) -> None:
    well.rows("grant create on schema public to public")

    def checks(path: str) -> set[str]:
        role.set("search_path", path)
        return set(findings(CliRunner().invoke(main, ["--url", role.url(), "doctor", "--json"])))

    assert "search path" in checks("public")
    assert "search path" not in checks("")


def test_the_doctor_finds_that_others_than_its_owner_may_create_objects_in_our_schema(
    run: Run, role: Role, well: Session
) -> None:
    well.rows(f"grant create on schema pgbeat to {role.name}")

    (found,) = findings(run("doctor", "--json"))["search path"]

    assert f"warning: Other users than its owner may create objects in our schema pgbeat: {role.name}." == found
    well.rows(f"revoke create on schema pgbeat from {role.name}")
    assert "search path" not in findings(run("doctor", "--json"))


def test_the_doctor_says_what_a_user_may_not_do(role: Role, well: Session) -> None:
    well.rows(f"revoke insert on pgbeat.active_job from {role.name}")
    well.rows(f"revoke execute on function pgbeat.make_days(int) from {role.name}")

    result = CliRunner().invoke(main, ["--url", role.url(), "doctor", "--json"])

    (found,) = findings(result)["grants"]
    assert (1, True) == (result.exit_code, "execute on function pgbeat.make_days(integer)" in found)
    assert "insert on table active_job" in found


def test_a_schema_that_is_missing_comes_first(database: str) -> None:
    result = CliRunner().invoke(main, ["--url", database, "doctor", "--json"])

    printed = json.loads(result.stdout)
    assert 1 == result.exit_code
    assert "schema" == printed["findings"][0]["check"]
    assert "fix the schema first" == printed["skipped"]["stuck"]


# --- sql and top


def test_the_printed_sql_makes_the_schema_that_migrate_makes(database: str) -> None:
    session = Session(database)

    def shell(*words: str) -> str:
        return done(CliRunner().invoke(main, ["--url", database, *words]))

    session.rows(shell("--schema", "printed", "sql"))
    shell("--schema", "migrated", "migrate")

    def everything(schema: str) -> list[dict[str, Any]]:
        return session.rows(
            "select relname, relkind::text, coalesce(obj_description(oid, 'pg_class'), '') as said from pg_class "
            "where relnamespace = %s::regnamespace and relname !~ '[0-9]{8}' union all "
            "select proname, pronargs::text, coalesce(obj_description(oid, 'pg_proc'), '') "
            "from pg_proc where pronamespace = %s::regnamespace order by 1, 2, 3",
            schema,
            schema,
        )

    assert everything("printed") == everything("migrated") != []
    assert "is up to date" in shell("--schema", "printed", "migrate")


def test_the_sql_is_for_the_schema_that_is_named(run: Run, session: Session) -> None:
    session.rows(done(run("--schema", "shop", "sql")))

    assert session.value("select count(*) from pg_tables where schemaname = 'shop'") > 5


def test_there_is_no_sql_beyond_the_last_version(run: Run) -> None:
    parts = [part["name"] for part in answer(run("sql", "--json"))]
    last = [int(name.split()[1]) for name in parts if name.startswith("migration")][-1]

    assert "schema" == parts[0]
    assert ["locks" if last > 1 else "schema", f"migration {last}"] == [
        part["name"] for part in answer(run("sql", "--from", str(last - 1), "--json"))
    ][:2]
    again = [part["name"] for part in answer(run("sql", "--from", str(last), "--json"))]
    assert ("locks", "definitions: internal/durations", "version") == (again[0], again[1], again[-1])
    result = run("sql", "--from", str(last + 1))
    assert (1, True) == (result.exit_code, f"has nothing for version {last + 1}" in result.stderr)


def test_doctor_sees_functions_that_are_not_of_this_package(run: Run, session: Session) -> None:
    session.rows("update pgbeat.schema_version set definitions = 'others'")

    assert "are not those of this package" in run("doctor").stdout


def test_one_frame_shows_beats_rates_and_what_is_late(run: Run, well: Session) -> None:
    finish(well, 5)
    finish(well, 2, "failed")
    well.insert("late", schedule="every 1h")
    well.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '90 seconds'")

    shown = done(run("top", "--once"))

    assert "1 beat, 1 worker" in shown
    assert "last 10 s: 0.7 jobs/s made, 0.0/s started\nof them 5 succeeded, 2 failed, 0 skipped\n" in shown
    assert "1 overdue, the first for 9" in shown
    assert "OVERDUE\nNAME  LATE BY\nlate  9" in shown
    assert 0.7 == pytest.approx(answer(run("top", "--json"))["made_per_second"], abs=0.3)


def test_import_warns_of_tasks_that_the_app_does_not_know(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "knowing_shop.py").write_text(
        "from celery import Celery\n"
        "app = Celery('shop', broker='memory://', set_as_current=False)\n"
        "@app.task(name='shop.report', shared=False)\n"
        "def report(): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = '{"name": "a", "task": "shop.report"}\n{"name": "b", "task": "shop.reprot"}\n'

    done = run("-A", "knowing_shop", "import", "-", input=lines)

    assert (0, "2 added, 0 changed, 0 removed, 0 equal.") == (done.exit_code, done.stdout.splitlines()[-1])
    assert done.stderr == (
        "Warning: The app knows no task 'shop.reprot', and a worker that does not either drops the job. Did you mean "
        "'shop.report'?\n"
    )
