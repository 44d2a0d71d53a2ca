"""What code declares and beats refuse is in the table until it is mended, and every command that is asked shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab
from click.testing import CliRunner, Result

from celery_pgbeat import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.cli import main
from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.measures.alarm import Alarm
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from tests.harness.ticks import LEASE

GOOD = {"task": "shop.sync", "schedule": crontab(minute=0)}
LINKED = {**GOOD, "options": {"link": 1}}
TOO_FAST = {**GOOD, "schedule": 0.1}
UTC = timezone.utc


@pytest.fixture
def database(migrated_database: str) -> Iterator[Database]:
    made = Database(migrated_database)
    yield made
    made.close()


@pytest.fixture
def shell(migrated_database: str) -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(main, ["--url", migrated_database, *words])


def shop(schedule: dict[str, Any], name: str = "shop") -> Celery:
    app = Celery(name, broker="memory://", set_as_current=False)
    app.conf.update(result_expires=None, beat_schedule=schedule)
    return app


def deploy(database: Database, schedule: dict[str, Any], beat: str = "beat-a", name: str = "shop") -> CodeSchedules:
    """Start a beat with this code."""
    BeatQueries(database, beat, LEASE).announce_node("host", 1, "1.0")
    code = CodeSchedules(shop(schedule, name), database, Settings())
    code.sync()
    return code


def stop(database: Database, beat: str) -> None:
    BeatQueries(database, beat, LEASE).remove_beats([beat])


def refused(database: Database) -> dict[tuple[str, str], str]:
    rows = database.execute("select app, name, reason from pgbeat.refused_declaration order by app, name")
    return {(row.app, row.name): row.reason for row in rows}


def test_what_is_refused_is_recorded_with_its_reason_and_cleared_when_the_code_is_mended(database: Database) -> None:
    deploy(database, {"linked": LINKED, "fast": TOO_FAST, "good": GOOD})
    found = refused(database)
    assert [("code:shop", "fast"), ("code:shop", "linked")] == list(found)
    assert "'link'" in found["code:shop", "linked"]

    deploy(database, {"linked": GOOD, "fast": TOO_FAST, "good": GOOD}, "beat-b")
    assert [("code:shop", "fast")] == list(refused(database))

    deploy(database, {"good": GOOD, "other": GOOD}, "beat-c")
    assert {} == refused(database)


def test_a_beat_that_starts_with_equal_code_writes_nothing(database: Database) -> None:
    deploy(database, {"linked": LINKED})
    version = "select xmin::text, seen_at from pgbeat.refused_declaration"
    (before,) = database.execute(version)

    deploy(database, {"linked": LINKED}, "beat-b")

    assert [before] == database.execute(version)


def test_what_postgres_alone_refuses_is_recorded_too(database: Database) -> None:
    database.execute("alter table pgbeat.periodic_task add constraint no_queue check (queue is null)")

    deploy(database, {"queued": {**GOOD, "options": {"queue": "low"}}, "good": GOOD})

    assert [("code:shop", "queued")] == list(refused(database))


def test_an_older_version_of_the_code_records_nothing_while_a_newer_one_is_in_force(database: Database) -> None:
    old = deploy(database, {"linked": LINKED, "good": GOOD})
    deploy(database, {"better": GOOD, "good": GOOD}, "beat-b")

    old.sync()

    assert {} == refused(database)


def test_a_name_and_a_reason_of_any_length_and_any_characters_are_recorded(database: Database) -> None:
    deploy(database, {"n" * 300: GOOD, "a\0b": GOOD, "half \ud800": GOOD, "": GOOD, "fast" + "é" * 190: TOO_FAST})

    assert 5 == len(refused(database))
    assert ("code:shop", "n" * 199 + "…") in refused(database)


def test_when_the_last_beat_stops_it_is_forgotten(database: Database) -> None:
    deploy(database, {"linked": LINKED})
    BeatQueries(database, "beat-b", LEASE).announce_node("host", 2, "1.0")

    stop(database, "beat-a")
    assert 1 == len(refused(database))

    stop(database, "beat-b")
    assert {} == refused(database)


def test_what_was_refused_of_an_app_that_is_gone_is_forgotten_by_the_next_app(database: Database) -> None:
    deploy(database, {"linked": LINKED})
    deploy(database, {"fast": TOO_FAST}, "beat-b", "site")
    assert 2 == len(refused(database))

    database.execute("update pgbeat.declaration set last_seen_at = last_seen_at - interval '1 hour'")
    deploy(database, {"fast": TOO_FAST, "good": GOOD}, "beat-c", "site")

    assert [("code:site", "fast")] == list(refused(database))


def test_explain_and_every_command_that_names_it_say_why_there_is_no_row(
    database: Database, shell: Callable[..., Result]
) -> None:
    deploy(database, {"linked": LINKED})
    beat = PgBeat(url=database.url)

    sentence = beat.explain("linked")
    assert sentence.startswith("'linked' is not running, and has no row: code:shop declares it, and its beats refuse")
    assert "'link'" in sentence
    for call in (beat.get, beat.pause, beat.trigger):
        with pytest.raises(UnknownPeriodicTask, match=r"^No periodic task is named 'linked': code:shop declares it"):
            call("linked")
    shown = shell("show", "linked")
    assert 1 == shown.exit_code
    assert shown.stderr.startswith("Error: No periodic task is named 'linked': code:shop declares it")
    beat.close()


def test_explain_says_that_a_row_is_as_its_code_declared_it_before(database: Database) -> None:
    deploy(database, {"linked": GOOD})
    deploy(database, {"linked": LINKED}, "beat-b")
    beat = PgBeat(url=database.url)

    assert "the row stays as it was declared before: code:shop declares it" in beat.explain("linked")
    beat.close()


def test_list_names_it_below_the_table_and_in_its_json(database: Database, shell: Callable[..., Result]) -> None:
    deploy(database, {"linked": LINKED, "good": GOOD})

    listed = shell("list")
    assert 2 == len(listed.stdout.splitlines())
    assert listed.stderr.startswith("Refused: 'linked' in code:shop: ")
    row, one = json.loads(shell("list", "--json").stdout)
    assert "good" == row["name"]
    assert ("linked", "code:shop", "refused") == (one["name"], one["managed_by"], one["state"])
    assert "'link'" in one["problem"]
    for words in (["--like", "g%"], ["--managed-by", "sql"], ["--task", "shop.sync"], ["--limit", "1"]):
        assert "Refused" not in shell("list", *words).stderr


def test_health_shows_it_and_stays_healthy(database: Database, shell: Callable[..., Result]) -> None:
    deploy(database, {"linked": LINKED})

    healthy = shell("health", "--json")
    assert 0 == healthy.exit_code
    (one,) = json.loads(healthy.stdout)["refused"]
    assert ("linked", "code:shop") == (one["name"], one["app"])
    assert "Refused: 'linked' in code:shop: " in shell("health").stderr


def test_a_call_that_does_not_match_its_task_is_refused_where_the_task_is_known(database: Database) -> None:
    def start(beat: str, **arguments: Any) -> None:
        app = shop({"off": {"task": "shop.lights", "schedule": crontab(minute=0), **arguments}, "unknown": GOOD})

        @app.task(name="shop.lights", shared=False)
        def lights(room: str) -> None: ...

        BeatQueries(database, beat, LEASE).announce_node("host", 1, "1.0")
        CodeSchedules(app, database, Settings()).sync()

    start("beat-a")
    assert "missing 1 required positional argument: 'room'" in refused(database)["code:shop", "off"]

    start("beat-b", args=("hall",))
    assert {} == refused(database)


def test_doctor_finds_it(database: Database, shell: Callable[..., Result]) -> None:
    deploy(database, {"linked": LINKED})

    found = [one for one in json.loads(shell("doctor", "--json").stdout)["findings"] if "linked" in one["what"]]

    (one,) = found
    assert ("declarations", "error") == (one["check"], one["severity"])
    assert one["what"].startswith("code:shop declares 'linked', and its beats refuse that: options")


def test_it_raises_an_alert_at_once_and_ends_it_when_it_is_mended(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    deploy(database, {"linked": LINKED})
    alarm = Alarm(
        database,
        "beat-a",
        None,
        after=LEASE * 100,
        every=LEASE,
        may_judge=lambda: True,
        now=lambda: database.execute("select pgbeat.now()")[0][0],
        webhook=None,
    )

    (alert,) = alarm.look()
    assert ("refused", "linked") == (alert.kind, alert.name)
    assert str(alert).startswith("'linked' in code is refused: code:shop declares it, and its beats refuse that: ")
    assert [] == alarm.look()

    deploy(database, {}, "beat-b")
    assert [] == alarm.look()
    assert "Over: 'linked' is not refused any more" in caplog.messages
    assert datetime.now(UTC) >= alert.due_at
