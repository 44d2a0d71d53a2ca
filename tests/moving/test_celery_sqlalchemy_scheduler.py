"""Moving from celery-sqlalchemy-scheduler: tables as it makes them. Its code runs on no SQLAlchemy that we support."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from tests.harness.peers.moving_in import AUTUMN, MovingIn
from tests.harness.session import Session

TABLES = """
create table celery_interval_schedule (id serial primary key, every int not null, period varchar(24));
create table celery_crontab_schedule (
    id serial primary key, minute varchar(240), hour varchar(96), day_of_week varchar(64), day_of_month varchar(124),
    month_of_year varchar(64), timezone varchar(64));
create table celery_solar_schedule (id serial primary key, event varchar(24), latitude float, longitude float);
create table celery_periodic_task_changed (id serial primary key, last_update timestamptz not null);
create table celery_periodic_task (
    id serial primary key, name varchar(255) unique, task varchar(255), interval_id int, crontab_id int, solar_id int,
    args text, kwargs text, queue varchar(255), exchange varchar(255), routing_key varchar(255), priority int,
    expires timestamptz, one_off boolean, start_time timestamptz, enabled boolean, last_run_at timestamptz,
    total_run_count int not null, date_changed timestamptz, description text);
insert into celery_interval_schedule (every, period) values (90, 'minutes');
insert into celery_crontab_schedule (minute, hour, day_of_week, day_of_month, month_of_year, timezone)
values ('0', '0', '1', '20-31', '*', 'Asia/Tokyo');
insert into celery_periodic_task_changed (last_update) values ('2026-01-01Z');
insert into celery_periodic_task
    (name, task, interval_id, crontab_id, args, kwargs, queue, priority, enabled, one_off, last_run_at, total_run_count)
values
    ('interval', 'shop.work', 1, null, '[1]', '{"a": 2}', 'slow', 4, true, false, '2026-10-22T11:00:00Z', 3),
    ('crontab', 'shop.work', 9, 1, '[]', '{}', null, null, true, false, null, 0),
    ('off', 'shop.work', null, 1, null, null, null, null, false, false, null, 0),
    ('none', 'shop.work', null, null, '[]', '{}', null, null, true, false, null, 0);
"""


@pytest.fixture
def moving(migrated_database: str) -> MovingIn:
    """Its tables in our database."""
    Session(migrated_database).rows(TABLES)
    made = MovingIn("celery-sqlalchemy-scheduler", migrated_database)
    made.clock.stand_at(AUTUMN)
    return made


def test_its_entries_become_rows(moving: MovingIn) -> None:
    report = moving.report("--apply", "--yes", "--cut-over")
    session = Session(moving.url)

    assert {"none": "it has no schedule: the peer never runs it"} == {
        name: row["reason"] for name, row in report.items() if not row["taken"]
    }
    interval, crontab = session.task("interval"), session.task("crontab")
    assert ("every 1h30m", datetime.fromisoformat("2026-10-22T11:00:00+00:00")) == (
        interval["schedule"],
        interval["anchor"],
    )
    assert ([1], {"a": 2}, "slow", 4) == tuple(interval[column] for column in ("args", "kwargs", "queue", "priority"))
    assert ("crontab: 0 0 20-31 * 1", "Asia/Tokyo") == (crontab["schedule"], crontab["timezone"])
    assert not session.task("off")["enabled"]
    assert ["none"] == [row["name"] for row in session.rows("select name from celery_periodic_task where enabled")]
    assert session.value("select last_update > '2026-02-01Z' from celery_periodic_task_changed")


def test_a_source_may_be_another_database_whose_instants_are_in_utc(migrated_database: str, tmp_path: Path) -> None:
    words = {"serial": "integer", "timestamptz": "timestamp", "T11:00:00Z": " 11:00:00", "2026-01-01Z": "2026-01-01"}
    script = TABLES
    for ours, theirs in words.items():
        script = script.replace(ours, theirs)
    with closing(sqlite3.connect(tmp_path / "beat.db")) as connection:
        connection.executescript(script)
    moving = MovingIn("celery-sqlalchemy-scheduler", migrated_database, f"sqlite:///{tmp_path}/beat.db")
    moving.clock.stand_at(AUTUMN)

    report = moving.report("--apply", "--yes")

    assert ["interval", "crontab", "off"] == [name for name, row in report.items() if row["taken"]]
    row = Session(migrated_database).task("interval")
    assert datetime.fromisoformat("2026-10-22T11:00:00+00:00") == row["anchor"]
