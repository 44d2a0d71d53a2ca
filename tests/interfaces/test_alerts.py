"""Alerts: one for each episode in the whole cluster, whichever beat sees it first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from celery_pgbeat.measures.alarm import MOST, Alarm, Alert
from celery_pgbeat.measures.gauges import Gauges, Reading
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.postgres.statements import statement
from tests.harness.session import Session
from tests.harness.situations import BEAT, NOON, Situation, ago
from tests.harness.wait import eventually

AFTER = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
OTHER = "web-3:m:42:start:random"


@pytest.fixture
def situation(migrated_database: str) -> Situation:
    made = Situation(migrated_database)
    made.beat()
    return made


def alarm(url: str, beat: str = BEAT, now: Callable[[], datetime] | None = None) -> Alarm:
    """Make the alarm of a beat, which knows the database's time if nothing else is said."""
    database = Database(url)
    return Alarm(
        database,
        beat,
        None,
        after=AFTER,
        every=SECOND,
        may_judge=lambda: True,
        now=now or (lambda: database.execute("select pgbeat.now()")[0][0]),
        webhook=None,
    )


def raised(situation: Situation) -> list[tuple[str, str]]:
    rows = situation.session.rows("select kind, name from pgbeat.alert order by kind, name")
    return [(row["kind"], row["name"]) for row in rows]


def test_what_is_overdue_for_long_is_raised_once_whoever_looks(situation: Situation, migrated_database: str) -> None:
    situation.plan(ago(minutes=6))
    first, second = alarm(migrated_database), alarm(migrated_database, OTHER)

    told = [*first.look(), *second.look(), *first.look()]

    (alert,) = told
    assert ("overdue", "nightly", ago(minutes=6), timedelta(minutes=6)) == (
        alert.kind,
        alert.name,
        alert.due_at,
        alert.late_by,
    )
    assert "none takes it" in alert.reason
    assert BEAT == situation.session.value("select raised_by from pgbeat.alert")


def test_what_is_overdue_for_less_is_not_raised_yet(situation: Situation, migrated_database: str) -> None:
    situation.plan(ago(minutes=5))

    assert [] == alarm(migrated_database).look()
    situation.clock.advance(timedelta(microseconds=1))
    assert ["nightly"] == [alert.name for alert in alarm(migrated_database).look()]


@pytest.mark.parametrize("step", [-3 * SECOND, 3 * SECOND, timedelta(hours=1)])
def test_a_clock_that_was_set_since_the_beat_last_saw_it_raises_nothing(
    situation: Situation, migrated_database: str, step: timedelta
) -> None:
    situation.plan(ago(minutes=6))
    situation.beat(ago(minutes=2), OTHER)

    assert [] == alarm(migrated_database, now=lambda: NOON - step).look()
    assert ["dead_beat", "overdue"] == [
        alert.kind for alert in alarm(migrated_database, now=lambda: NOON - SECOND).look()
    ]


def test_a_periodic_task_that_is_overdue_for_two_reasons_is_raised_for_the_longest(
    situation: Situation, migrated_database: str
) -> None:
    situation.worker()
    situation.plan(ago(minutes=6))
    situation.job("pending", since=ago(minutes=20))

    (alert,) = alarm(migrated_database).look()

    assert ago(minutes=20) == alert.due_at


def test_when_it_is_over_the_alert_goes_and_the_next_time_is_another(
    situation: Situation, migrated_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    situation.plan(ago(minutes=6))
    watching = alarm(migrated_database)
    watching.look()
    situation.session.rows("update pgbeat.periodic_task set next_run_at = %s", NOON + timedelta(hours=1))

    assert ([], []) == (watching.look(), raised(situation))
    assert ["Over: 'nightly' is not overdue any more"] == caplog.messages
    situation.session.rows("update pgbeat.periodic_task set next_run_at = %s", ago(minutes=7))
    assert ["nightly"] == [alert.name for alert in watching.look()]


def test_an_alert_stands_for_as_long_as_anything_of_the_periodic_task_is_overdue(
    situation: Situation, migrated_database: str
) -> None:
    situation.plan(ago(minutes=6))
    watching = alarm(migrated_database)
    watching.look()
    situation.session.rows("update pgbeat.periodic_task set next_run_at = %s", ago(minutes=1))

    assert ([], [("overdue", "nightly")]) == (watching.look(), raised(situation))


def test_a_beat_that_is_silent_and_has_not_signed_off_is_raised_once(
    situation: Situation, migrated_database: str
) -> None:
    situation.beat(ago(seconds=30), OTHER)
    first, second = alarm(migrated_database), alarm(migrated_database, "web-4:m:5:start:random")
    assert [] == first.look()
    situation.clock.advance(SECOND)
    situation.session.rows("update pgbeat.node set last_seen_at = pgbeat.now() where id = %s", BEAT)

    told = [*second.look(), *first.look()]

    assert told == [
        Alert(
            "dead_beat",
            OTHER,
            ago(seconds=30),
            31 * SECOND,
            "the beat web-3 (process 42) has not been seen since 2100-03-01 11:59:30Z and has not signed off",
        )
    ]


def test_no_beat_raises_an_alert_about_itself_nor_about_a_worker(situation: Situation, migrated_database: str) -> None:
    situation.worker(ago(hours=1))
    situation.clock.advance(timedelta(hours=1))

    assert [] == alarm(migrated_database).look()


@pytest.mark.parametrize(
    "end",
    ["delete from pgbeat.node where id = %s", "update pgbeat.node set last_seen_at = pgbeat.now() where id = %s"],
    ids=["taken off the list", "back"],
)
def test_a_dead_beats_alert_is_over_when_it_is_off_the_list_or_back(
    situation: Situation, migrated_database: str, end: str
) -> None:
    situation.beat(ago(minutes=10), OTHER)
    watching = alarm(migrated_database)
    assert [OTHER] == [alert.name for alert in watching.look()]

    situation.session.rows(end, OTHER)

    assert ([], []) == (watching.look(), raised(situation))


def test_of_a_thousand_that_are_overdue_a_hundred_are_raised(situation: Situation, migrated_database: str) -> None:
    for number in range(MOST + 5):
        situation.plan(ago(minutes=6), name=f"row-{number:03}")
    watching = alarm(migrated_database)

    assert (MOST, 0) == (len(watching.look()), len(watching.look()))
    situation.session.rows("delete from pgbeat.periodic_task where name = (select min(name) from pgbeat.alert)")
    assert (0, 1) == (len(watching.look()), len(watching.look()))


def test_of_many_beats_that_look_at_the_same_time_one_raises_each(situation: Situation, migrated_database: str) -> None:
    beats, rows = 6, 30
    for number in range(rows):
        situation.plan(ago(minutes=6), name=f"row-{number}")
    situation.beat(ago(minutes=10), OTHER)
    alarms = [alarm(migrated_database, f"web-4:m:{number}:start:random") for number in range(beats)]
    together = threading.Barrier(beats)

    def look(one: Alarm) -> list[Alert]:
        together.wait()
        return one.look()

    with ThreadPoolExecutor(beats) as pool:
        told = [alert.name for alerts in pool.map(look, alarms) for alert in alerts]

    assert sorted([OTHER, *(f"row-{number}" for number in range(rows))]) == sorted(told)


def test_a_listener_is_woken_by_an_alert_and_by_nothing_else(situation: Situation, migrated_database: str) -> None:
    situation.session.rows("listen pgbeat_alert")
    connection = situation.session.connection
    watching = alarm(migrated_database)
    watching.look()
    situation.plan(ago(minutes=6))
    watching.look()
    watching.look()
    situation.session.rows("notify pgbeat_alert, 'end'")

    def heard() -> list[str]:
        connection.poll()
        return [notify.payload for notify in connection.notifies]

    eventually(lambda: "end" in heard(), 10, "the end mark")
    assert ["", "end"] == heard()


def test_a_schema_of_the_longest_name_can_be_looked_at(database: str) -> None:
    schema = "s" * 63
    made = Database(database, schema)
    migrate(made.engine, schema)
    session = Session(database)
    session.rows(
        f"insert into {schema}.periodic_task (name, task, next_run_at, planned_revision) values "
        f"('late', 'app.probe', now() - interval '1 hour', 1)"
    )

    now = session.value("select now()")
    rows = made.run("raise_alerts", beat="beat-a", after=300.0, most=MOST, now=now, step=60.0)

    assert ["late"] == [row.name for row in rows]


def test_the_gauges_tell_how_things_stand(situation: Situation, migrated_database: str) -> None:
    situation.beat(ago(minutes=10), OTHER)
    situation.plan(ago(minutes=6))
    situation.plan(ago(seconds=1), name="due")
    situation.plan(name="later")
    situation.job("running", periodic_task="due")
    alarm(migrated_database).look()

    read = Gauges(Database(migrated_database)).read()

    assert Reading(due=2, overdue=1, active={"running": 1}, beats=1, alerts=2, refused_declarations=0) == read


def test_the_gauges_are_not_read_again_for_each_scrape(situation: Situation, migrated_database: str) -> None:
    gauges = Gauges(Database(migrated_database))
    before = gauges.read()

    situation.plan(ago(minutes=6))

    assert before is not None
    assert before is gauges.read()


def test_where_there_is_no_schema_the_gauges_have_nothing_to_tell(database: str) -> None:
    assert Gauges(Database(database)).read() is None


def test_p11_a_look_for_what_is_overdue_reads_no_table_as_a_whole(migrated_database: str) -> None:
    session, database = Session(migrated_database), Database(migrated_database)
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) select 'row-' || n, 'app.probe', "
        "'every 1h', pgbeat.now() + n * interval '1 minute' from generate_series(1, 5000) n"
    )
    session.rows("update pgbeat.periodic_task set planned_revision = revision")
    session.rows("vacuum analyze pgbeat.periodic_task")
    now = session.value("select pgbeat.now()")
    parameters = {"beat": BEAT, "after": 300.0, "most": MOST, "now": now, "step": 60.0}

    rows = database.execute(f"explain (analyze, timing off) {statement('raise_alerts', 'pgbeat')}", parameters)

    plan = "\n".join(row[0] for row in rows)
    assert "Seq Scan on periodic_task" not in plan
