"""Moving from RedBeat: its keys are written, and its runs computed, by its own code."""

from __future__ import annotations

from datetime import datetime

import pytest
import redis

from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn
from tests.harness.session import Session

PEER = "redbeat_peer"
HOURLY = '{"__type__": "interval", "every": 3600}'
AT = '{{"__type__": "datetime", "year": {year}, "month": 1, "day": 1, "timezone": "{zone}"}}'
AUTUMN_DIFFERENCES = {
    "cron 01": ([], ["10-25 01:00:00", "10-25 01:30:00"]),  # the second pass of the repeated hour
    "never ran": (["10-22 12:00:05"], []),  # overdue at the import: not made up
}
SPRING_DIFFERENCES = {
    "cron 02": (["03-28 01:30:00"], ["03-28 01:00:00"]),  # 02:30 does not exist: right after the gap
    "never ran": (["03-25 12:00:05"], []),
}
REFUSED = {
    "broken": "its schedule is none that RedBeat writes",
    "gone": "its hash has no definition",
    "easter": "its rule has byeaster",
    "half an hour": "its rule starts at an offset of 330 minutes",
    "linked": "options has 'link', and a row holds the call of one task",
    "of code": "the app's code declares it (beat_schedule): our beats write this row from there",
    "of code too": "the app's code declares it, and its beats write this row",
}


@pytest.fixture
def moving(migrated_database: str, redis_url: str) -> MovingIn:
    """A Redis with RedBeat's keys, and an app in Berlin."""
    return MovingIn("redbeat", migrated_database, redis_url, app="tests.harness.peers.shop_in_berlin")


@pytest.mark.parametrize(("start", "expected"), [(AUTUMN, AUTUMN_DIFFERENCES), (SPRING, SPRING_DIFFERENCES)])
def test_both_run_at_the_same_times_apart_from_what_the_docs_list(
    moving: MovingIn, start: datetime, expected: object
) -> None:
    moving.filled_by(PEER, start)
    report = moving.report("--apply", "--yes")

    assert expected == moving.differences(PEER, start)
    assert REFUSED.keys() == {name for name, row in report.items() if not row["taken"]}
    assert all(report[name]["reason"].startswith(reason) for name, reason in REFUSED.items())


def test_options_arguments_and_switches_are_kept_and_a_second_import_changes_nothing(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    moving.report("--apply", "--yes")
    session = Session(moving.url)

    row = session.task("with everything")
    wanted = {"kwargs": {"b": [None]}, "queue": "slow", "priority": 3, "timezone": "Europe/Berlin", "overlap": "allow"}
    assert wanted == {column: row[column] for column in wanted}
    assert {"expires": 60, "headers": {"tenant": "north"}, "routing_key": "x"} == row["options"]
    assert [1, {"__type__": "datetime", "__value__": "2026-01-01T00:00:00+00:00"}] == row["args"]
    assert ["off"] == [
        found["name"] for found in session.rows("select name from pgbeat.periodic_task where not enabled")
    ]
    assert {"equal"} == {found["kind"] for found in moving.report("--apply", "--yes").values() if found["taken"]}


def test_a_redis_that_cannot_be_read_is_one_sentence(moving: MovingIn) -> None:
    for source, words in {
        moving.source: "there is no key 'redbeat::schedule' with entries: give --key-prefix, or the database",
        "redis://:secret@127.0.0.1:1/0": "Redis cannot be read: ",
        "nonsense": "the source is not a Redis URL",
        "redis://:s3/secret@127.0.0.1/0": "the source is not a Redis URL: in a user name or a password write @ as %40",
    }.items():
        moving.source = source
        done = moving.run()
        assert (1, 1) == (done.exit_code, len(done.stderr.splitlines())), done.output
        assert words in done.stderr
        assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("schedule", "last", "reason"),
    [
        ('{"__type__": "interval", "every": 1e308}', "null", "an interval must not be longer than 100 years"),
        ('{"__type__": "interval", "every": Infinity}', "null", "'inf': not an interval"),
        ('{"__type__": "rrule", "freq": 3, "dtstart": 1e20}', "null", "it cannot be read: OverflowError: "),
        ('{"__type__": "rrule", "freq": 9, "dtstart": 0}', "null", "it cannot be read: IndexError: "),
        ("[" * 5_000, "null", "it cannot be read: RecursionError: "),
        (HOURLY, AT.format(year=10**30, zone="UTC"), "it cannot be read: OverflowError: "),
        (HOURLY, AT.format(year=1, zone="Asia/Tokyo"), "last_run_at is 0001-01-01T00:00:00"),
        (HOURLY, AT.format(year=2026, zone="America"), "'America': there is no time zone of that name"),
        (HOURLY, AT.format(year=2026, zone="x" * 5_000), "xxx...': there is no time zone of that name"),
        (HOURLY, '"yesterday"', "last_run_at is 'yesterday', not a datetime"),
        (HOURLY.replace("interval", "crontab"), '"yesterday"', "it cannot be read: KeyError: 'minute'"),
    ],
)
def test_a_value_that_is_out_of_all_bounds_refuses_its_entry_alone(
    moving: MovingIn, schedule: str, last: str, reason: str
) -> None:
    with redis.Redis.from_url(str(moving.source)) as client:
        for name, times, ran in (("odd", schedule, last), ("good", HOURLY, "null")):
            definition = f'{{"name": "{name}", "task": "shop.work", "schedule": {times}}}'
            client.hset(f"redbeat:{name}", mapping={"definition": definition, "meta": f'{{"last_run_at": {ran}}}'})
            client.zadd("redbeat::schedule", {f"redbeat:{name}": 0})

    report = moving.report("--apply", "--yes", "--make-up")

    assert {"odd": False, "good": True} == {name: row["taken"] for name, row in report.items()}
    assert reason in report["odd"]["reason"]
