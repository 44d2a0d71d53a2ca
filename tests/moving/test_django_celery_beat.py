"""Moving from django-celery-beat: its tables are filled, and its runs computed, by its own code."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from celery_pgbeat.planning import Rules, plan
from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn
from tests.harness.role import Role
from tests.harness.session import Session
from tests.harness.ticks import beat

PEER = "django_peer"
RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
AUTUMN_DIFFERENCES = {
    # The second pass of the repeated hour, which Celery's arithmetic leaves out.
    "cron 05": ([], ["10-25 01:00:00", "10-25 01:30:00"]),
    # Overdue at the import: not made up.
    "never ran": (["10-22 12:00:05"], []),
}
SPRING_DIFFERENCES = {
    # 02:30 does not exist: right after the gap, at 03:00 there. Celery's arithmetic says 03:30.
    "cron 10": (["03-28 01:30:00"], ["03-28 01:00:00"]),
    "never ran": (["03-25 12:00:05"], []),
}
REFUSED = {
    "clocked in the past": "its only time has passed",
    "has expired": "it has expired, at ",
    "one off, done": "it is a one-off that has had its run",
    "wrong hour": "Celery refuses its crontab: Invalid end range: 25 > 23.",
    "wrong arguments": "args is not JSON (",
    "a header of Celery's": "options['headers'] has a header 'task', which is Celery's own: use another name",
    "celery.backend_cleanup": "it is Celery's own: our beats declare it where the result backend needs it",
}


@pytest.fixture
def moving(migrated_database: str) -> MovingIn:
    """Both schedulers in one database."""
    return MovingIn("django-celery-beat", migrated_database)


@pytest.mark.parametrize(("start", "expected"), [(AUTUMN, AUTUMN_DIFFERENCES), (SPRING, SPRING_DIFFERENCES)])
def test_both_run_at_the_same_times_apart_from_what_the_docs_list(
    moving: MovingIn, start: datetime, expected: object
) -> None:
    moving.filled_by(PEER, start)
    report = moving.report("--apply", "--yes")

    assert expected == moving.differences(PEER, start)
    assert REFUSED.keys() == {name for name, row in report.items() if not row["taken"]}
    assert all(report[name]["reason"].startswith(reason) for name, reason in REFUSED.items())


def test_each_column_has_its_place(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    moving.report("--apply", "--yes")
    session = Session(moving.url)

    row = session.task("with everything")
    wanted = {"args": ["a", 1], "kwargs": {"b": {"c": None}}, "queue": "slow", "priority": 7, "overlap": "allow"}
    assert wanted == {column: row[column] for column in wanted}
    assert {"expires": 90, "headers": {"tenant": "north"}} == row["options"]
    assert ("crontab: 0 5 * * *", "Europe/Berlin", "Mails the report.", "api") == (
        row["schedule"],
        row["timezone"],
        row["subject"],
        row["managed_by"],
    )
    routed = session.task("routed")
    assert ("shop", "shop.slow") == (routed["options"]["exchange"], routed["options"]["routing_key"])
    assert AUTUMN + timedelta(days=9) == routed["end_at"] == datetime.fromisoformat(routed["options"]["expires"])
    assert (False, "it was switched off in django-celery-beat") == (
        session.task("off")["enabled"],
        session.task("off")["pause_reason"],
    )
    assert 1 == session.task("one off")["max_runs"]


def test_a_first_look_writes_nothing_and_a_second_import_changes_nothing(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    session = Session(moving.url)
    count = "select count(*) from pgbeat.periodic_task"

    looked = moving.run()
    assert (0, 0) == (looked.exit_code, session.value(count))
    assert (
        "66 taken (66 new, 0 to change, 0 equal), 0 of them changed in meaning, 7 refused; nothing was" in looked.stdout
    )
    moving.report("--apply", "--yes")
    before = session.rows("select * from pgbeat.periodic_task order by name")
    session.rows("update django_celery_beat_periodictask set last_run_at = last_run_at + interval '17 minutes'")
    moving.clock.advance(timedelta(hours=1))
    assert {"equal"} == {row["kind"] for row in moving.report("--apply", "--yes").values() if row["taken"]}

    assert before == session.rows("select * from pgbeat.periodic_task order by name")


def test_a_cut_over_switches_off_there_what_is_taken(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    session = Session(moving.url)
    told = session.value("select last_update from django_celery_beat_periodictasks")

    moving.report("--apply", "--yes", "--cut-over")

    enabled = "select name from django_celery_beat_periodictask where enabled order by name"
    left = {row["name"] for row in session.rows(enabled)}
    assert REFUSED.keys() == left
    assert session.value("select last_update from django_celery_beat_periodictasks") > told
    assert ["off"] == [row["name"] for row in session.rows("select name from pgbeat.periodic_task where not enabled")]
    assert {"equal"} == {
        row["kind"] for row in moving.report("--apply", "--yes", "--cut-over").values() if row["taken"]
    }
    assert 1 == session.value("select count(*) from pgbeat.periodic_task where not enabled")
    said = moving.run("--apply", "--yes", "--cut-over").stdout
    assert said.endswith("refused; written, and what is taken is switched off there.\n")


def test_if_the_rows_cannot_be_written_nothing_is_switched_off(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    session = Session(moving.url)
    session.rows("alter table pgbeat.periodic_task add constraint no_clocked check (name <> 'routed')")

    assert 1 == moving.run("--apply", "--yes", "--cut-over").exit_code

    assert 0 == session.value("select count(*) from pgbeat.periodic_task")
    assert session.value("select enabled from django_celery_beat_periodictask where name = 'cron 00'")


def test_rows_of_other_managers_are_left_alone(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    session = Session(moving.url)
    session.insert("cron 00", schedule="every 1h")

    left = moving.report("--apply", "--yes")["cron 00"]
    taken = moving.report("--apply", "--yes", "--take-over")["cron 00"]

    assert "its row is managed by 'sql'; --take-over changes it" == left["reason"]
    assert {"from": "sql", "to": "api"} == taken["columns"]["managed_by"]


def test_a_source_that_cannot_be_read_is_one_sentence(migrated_database: str) -> None:
    nowhere = "postgresql://x:secret@127.0.0.1:1/shop"
    for source, words in {
        None: "has no table 'django_celery_beat_periodictask'",
        nowhere: "127.0.0.1:1/shop cannot be read: ",
        "nonsense": "the source is not a database URL",
        "redshift://host/shop": "the driver of the source's database is not installed",
    }.items():
        done = MovingIn("django-celery-beat", migrated_database, source).run()
        assert (1, 1) == (done.exit_code, len(done.stderr.splitlines())), done.output
        assert words in done.stderr
        assert "secret" not in done.stderr


def test_the_report_names_the_tables_and_their_owners(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    owner = Session(moving.url).value("select current_user")

    read = json.loads(moving.run("--json").stdout)["read"]

    assert f"public.django_celery_beat_periodictask of {owner}" == read[0]
    assert f"Read: {read[0]}, public.django_celery_beat_intervalschedule of {owner}, " in moving.run().stdout


TABLE = "django_celery_beat_periodictask"
RUNS_CODE = """
create schema theirs;
create function theirs.run() returns boolean language plpgsql as $$ begin raise exception 'it ran'; end $$;
"""


@pytest.mark.parametrize(
    ("set_up", "words"),
    [
        (f"create view {TABLE} as select theirs.run()", "no table: what else has that name could run code of its"),
        (f"create materialized view {TABLE} as select 1", f"public.{TABLE} of "),
        (f"create table theirs.{TABLE} (id int)", "add ?options=-csearch_path%3Dtheirs to the URL of the source"),
        (f"create view theirs.{TABLE} as select theirs.run()", f"the table '{TABLE}' is not on the search path."),
    ],
)
def test_what_is_no_table_on_the_search_path_is_not_read(migrated_database: str, set_up: str, words: str) -> None:
    Session(migrated_database).rows(RUNS_CODE + set_up)

    done = MovingIn("django-celery-beat", migrated_database).run()

    assert (1, True, False) == (done.exit_code, words in done.stderr, "it ran" in done.stderr), done.output


def test_a_policy_for_rows_does_not_run_its_owners_code(migrated_database: str, role: Role) -> None:
    Session(migrated_database).rows(
        f"""{RUNS_CODE} create table {TABLE} (id int primary key); insert into {TABLE} values (1);
        alter table {TABLE} enable row level security; create policy theirs on {TABLE} using (theirs.run());
        grant usage on schema theirs to "{role.name}"; grant select on {TABLE} to "{role.name}";"""
    )

    done = MovingIn("django-celery-beat", migrated_database, role.url()).run()

    assert (1, True, False) == (done.exit_code, "row-level security" in done.stderr, "it ran" in done.stderr), (
        done.output
    )


def test_a_value_that_python_cannot_have_is_one_sentence(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    Session(moving.url).rows(f"update {TABLE} set start_time = '10000-01-01' where name = 'routed'")

    done = moving.run()

    assert (1, 1) == (done.exit_code, len(done.stderr.splitlines())), done.output
    assert f"Error: the table '{TABLE}' has a value that Python cannot have: " in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cut-over"], "give --apply too"),
        (["postgresql://other/shop", "--apply", "--cut-over"], "--cut-over needs entries in tables"),
        (["--apply", "--dry-run"], "contradict each other"),
        (["--prune"], "--prune is for FILE"),
    ],
)
def test_flags_that_do_not_fit_are_wrong_usage(migrated_database: str, words: list[str], message: str) -> None:
    done = MovingIn("django-celery-beat", migrated_database).run(*words)

    assert (2, True) == (done.exit_code, message in done.stderr)


def test_with_make_up_a_new_row_counts_from_its_last_run_there_and_is_decided_by_catchup(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    last = AUTUMN - timedelta(seconds=3)
    moving.clock.advance(timedelta(minutes=50))

    moving.report("--apply", "--yes", "--make-up")

    session = Session(moving.url)
    counts = (
        "select planned_from, planned_revision < revision as to_be_planned from pgbeat.periodic_task where name = %s"
    )
    assert {"planned_from": last, "to_be_planned": True} == session.row(counts, "every 20 minutes")
    assert last < session.row(counts, "never ran")["planned_from"]
    assert last < session.row(counts, "off")["planned_from"]
    store = beat(moving.url)
    while planned := [plan(row, RULES) for row in store.unplanned(100)]:
        store.plan(planned, "UTC")
    assert last + timedelta(minutes=20) == session.task("every 20 minutes")["next_run_at"]
    assert {"equal"} == {row["kind"] for row in moving.report("--apply", "--yes", "--make-up").values() if row["taken"]}
    assert last + timedelta(minutes=20) == session.task("every 20 minutes")["next_run_at"]
