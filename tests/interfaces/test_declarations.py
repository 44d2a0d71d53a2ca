"""Which declaration is in force while beats of several versions live: decided by the tables, never by a race."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from celery import Celery
from celery.beat import BeatLazyFunc
from celery.schedules import crontab

from celery_pgbeat.beat.upkeep import code_schedules
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.beat.upkeep.declared import Declared, hash_of
from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.code_sync_queries import CodeSyncQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from tests.harness.clock import Clock
from tests.harness.ticks import LEASE
from tests.harness.transactions import Attempt, Transaction

MANAGER = "code:shop"
HEARTBEAT = timedelta(seconds=10)
DEAD_AFTER = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


def entry(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"task": "shop.sync", "schedule": crontab(minute=0), "args": args, "kwargs": kwargs}


V1 = {"same": entry(), "changed": entry(1), "old": entry()}
V2 = {"same": entry(), "changed": entry(2), "new": entry()}


class Site:
    """Beats of any versions on one database, each with the code that it was started with."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.clock = Clock(url)
        self.clock.stand_at(self.clock.now())
        self._codes: dict[str, CodeSchedules] = {}

    def start(self, name: str, schedule: dict[str, Any]) -> CodeSchedules:
        """Start a beat, again if there was one of that name."""
        app = Celery("shop", broker="memory://", set_as_current=False)
        app.conf.update(result_expires=None, beat_schedule=schedule)
        BeatQueries(self.database, name, LEASE).announce_node("host", 1, "1.0")
        self._codes[name] = CodeSchedules(app, self.database, Settings())
        self._codes[name].sync()
        return self._codes[name]

    def stop(self, name: str) -> None:
        """Stop a beat in good order."""
        self.kill(name)
        BeatQueries(self.database, name, LEASE).remove_beats([name])

    def kill(self, name: str) -> None:
        """Have a beat say no more."""
        del self._codes[name]

    def live(self, duration: timedelta) -> None:
        """Let the beats that live send their signs of life for so long."""
        for _ in range(duration // HEARTBEAT):
            self.clock.advance(HEARTBEAT)
            self.beat()
        self.clock.advance(duration % HEARTBEAT)
        self.beat()

    def beat(self) -> None:
        """Have each beat that lives send a sign of life."""
        for code in self._codes.values():
            code.sync()

    @property
    def rows(self) -> dict[str, tuple[Any, ...]]:
        """What stands in the rows, and how often it was written."""
        found = self.database.execute("select name, enabled, args, xmin::text as version from pgbeat.periodic_task")
        return {row.name: tuple(row[1:]) for row in found}

    @property
    def shown(self) -> dict[str, list[int] | None]:
        """The arguments of each row, None where it is paused."""
        return {name: args if enabled else None for name, (enabled, args, _) in self.rows.items()}


SHOWN_1 = {"same": [], "changed": [1], "old": []}
SHOWN_2 = {"same": [], "changed": [2], "old": None, "new": []}
SHOWN_1_AGAIN = {**SHOWN_1, "new": None}


@pytest.fixture
def site(migrated_database: str) -> Iterator[Site]:
    made = Site(migrated_database)
    yield made
    made.database.close()


@pytest.fixture
def rolled_out(site: Site) -> Site:
    """One beat of each version, the second of which came later."""
    site.start("one", V1)
    site.live(DEAD_AFTER)
    site.start("two", V2)
    return site


def test_of_two_versions_the_one_that_came_last_is_in_force_and_the_other_changes_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one = site.start("one", V1)
    assert SHOWN_1 == site.shown
    two = site.start("two", V2)
    assert SHOWN_2 == site.shown
    before = site.rows

    site.live(3 * DEAD_AFTER)
    another = site.start("another", V1)

    assert before == site.rows
    assert [True, True, True] == [one.is_in_sync, two.is_in_sync, another.is_in_sync]
    assert 2 == caplog.text.count("Another declaration of code:shop is in force")


def test_when_the_beats_of_the_later_version_are_gone_the_one_before_is_in_force_again(
    rolled_out: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    site = rolled_out
    site.kill("two")
    site.live(DEAD_AFTER - SECOND)
    assert SHOWN_2 == site.shown

    site.live(HEARTBEAT)

    assert SHOWN_1_AGAIN == site.shown
    assert "The declaration of code:shop that this beat has" in caplog.text
    assert "Resumed 'old', which the code declares again" in caplog.text


def test_an_operators_edits_stand_through_the_roll_out_and_the_roll_back(site: Site) -> None:
    site.start("one", {**V1, "paused": entry()})
    edit = "update pgbeat.periodic_task set queue = 'mine', subject = %(subject)s where name in ('changed', 'old')"
    site.database.execute(edit, {"subject": "edited"})
    site.database.execute("select pgbeat.pause('paused', 'stocktaking')")
    site.start("two", V2)
    site.database.execute("update pgbeat.periodic_task set priority = 3 where name = 'changed'")

    site.kill("two")
    site.live(DEAD_AFTER + HEARTBEAT)

    found = {
        row.name: (row.queue, row.subject, row.priority, row.enabled, row.pause_reason)
        for row in site.database.execute("select * from pgbeat.periodic_task")
    }
    assert {
        "same": (None, None, None, True, None),
        "changed": ("mine", "edited", 3, True, None),
        "old": ("mine", "edited", None, True, None),
        "paused": (None, None, None, False, "stocktaking"),
        "new": (None, None, None, False, "no longer declared by code:shop"),
    } == found
    assert SHOWN_1_AGAIN["changed"] == site.shown["changed"]


def test_a_resumed_row_that_code_declares_no_more_stays_resumed_until_code_has_declared_it_again(site: Site) -> None:
    site.start("one", V1)
    site.start("two", V2)
    site.database.execute("select pgbeat.resume('old')")

    assert site.start("two", V2).is_in_sync
    assert site.start("three", {**V2, "more": entry()}).is_in_sync
    assert [] == site.shown["old"]

    site.start("four", {**V2, "old": entry()})
    site.start("five", V2 | {"five": entry()})
    assert site.shown["old"] is None


@pytest.mark.parametrize("end", [Site.kill, Site.stop])
@pytest.mark.parametrize(("name", "schedule"), [("one", V1), ("two", V2)])
def test_a_beat_that_is_only_started_again_brings_nothing_about(
    rolled_out: Site, name: str, schedule: dict[str, Any], end: Callable[[Site, str], None]
) -> None:
    site, before = rolled_out, rolled_out.rows
    end(site, name)
    site.live(DEAD_AFTER - SECOND)
    site.start(name, schedule)
    site.live(2 * DEAD_AFTER)

    assert before == site.rows


def test_a_version_that_was_gone_and_comes_back_is_seen_anew(rolled_out: Site) -> None:
    site = rolled_out
    site.kill("one")
    site.live(DEAD_AFTER + HEARTBEAT)

    site.start("one", V1)  # the roll-back: the beats of the other version still live
    assert SHOWN_1_AGAIN == site.shown
    site.live(HEARTBEAT)
    assert SHOWN_1_AGAIN == site.shown

    site.kill("two")
    site.live(DEAD_AFTER + HEARTBEAT)
    site.start("two", V2)  # and the next roll-forward
    site.live(HEARTBEAT)
    assert SHOWN_2 == site.shown


def test_after_an_outage_the_order_of_the_first_claims_does_not_matter(rolled_out: Site) -> None:
    site, before = rolled_out, rolled_out.rows
    site.clock.advance(timedelta(hours=1))
    site.beat()  # the older one speaks first
    site.live(2 * DEAD_AFTER)

    assert before == site.rows


def test_of_beats_that_are_started_again_after_an_outage_the_older_one_waits_for_the_newer(rolled_out: Site) -> None:
    site, before = rolled_out, rolled_out.rows
    site.kill("two")
    site.kill("one")
    site.clock.advance(timedelta(hours=1))
    site.start("one", V1)
    site.live(DEAD_AFTER - SECOND)
    assert before == site.rows

    site.start("two", V2)
    site.live(2 * DEAD_AFTER)
    assert before == site.rows


def test_a_later_version_that_does_not_come_back_after_an_outage_is_waited_for_once(rolled_out: Site) -> None:
    site = rolled_out
    site.kill("two")
    site.clock.advance(timedelta(hours=1))
    site.live(HEARTBEAT)
    assert SHOWN_2 == site.shown

    site.live(DEAD_AFTER + HEARTBEAT)

    assert SHOWN_1_AGAIN == site.shown


def test_a_beat_that_was_frozen_comes_into_force_again_when_it_wakes(rolled_out: Site) -> None:
    site = rolled_out
    frozen = site._codes.pop("two")
    site.live(DEAD_AFTER + HEARTBEAT)
    assert SHOWN_1_AGAIN == site.shown

    frozen.sync()

    assert SHOWN_2 == site.shown
    assert frozen.is_in_sync


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(hours=1)])
def test_the_order_in_which_versions_came_outlives_a_step_of_the_clock(rolled_out: Site, step: timedelta) -> None:
    site = rolled_out
    site.clock.advance(step)
    site.beat()
    site.live(2 * DEAD_AFTER)
    assert SHOWN_2 == site.shown

    site.start("three", {"three": entry()})
    site.live(2 * DEAD_AFTER)
    assert [] == site.shown["three"]

    site.kill("three")
    site.live(2 * DEAD_AFTER)
    assert site.shown["three"] is None


def test_a_single_beat_may_be_started_with_any_code_at_any_time(site: Site) -> None:
    for schedule, shown in ((V1, SHOWN_1), (V2, SHOWN_2), (V1, SHOWN_1_AGAIN), (V2, SHOWN_2)):
        site.start("only", schedule)
        assert shown == site.shown
        site.stop("only")


def test_a_beat_that_ends_beside_others_takes_no_declaration_along(rolled_out: Site) -> None:
    rolled_out.stop("two")

    assert 2 == rolled_out.database.execute("select count(*) from pgbeat.declaration")[0][0]


def test_declarations_without_a_beat_for_a_day_are_forgotten(rolled_out: Site) -> None:
    site = rolled_out
    site.kill("one")
    site.clock.advance(timedelta(days=1, hours=1))
    store = BeatQueries(site.database, "two", LEASE)
    store.forget_nodes()
    assert 2 == site.database.execute("select count(*) from pgbeat.declaration")[0][0]

    site.beat()
    store.forget_nodes()

    assert 1 == site.database.execute("select count(*) from pgbeat.declaration")[0][0]


def test_a_beat_says_with_each_sign_of_life_that_it_has_its_declaration(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr(code_schedules, "boottime", lambda: at)
    code = site.start("one", V1)
    assert code.is_in_sync

    at += HEARTBEAT.total_seconds()

    assert not code.is_in_sync
    site.clock.advance(HEARTBEAT)
    code.sync()
    assert code.is_in_sync
    seen = site.database.execute("select pgbeat.now() - last_seen_at from pgbeat.declaration")[0][0]
    assert seen < SECOND


def test_what_broke_off_in_the_middle_is_not_settled(rolled_out: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site = rolled_out
    site.kill("two")
    site.live(DEAD_AFTER - SECOND)
    one = site._codes["one"]
    assert one.is_in_sync
    site.clock.advance(HEARTBEAT)
    with monkeypatch.context() as broken:
        broken.setattr(CodeSyncQueries, "resume_declared", Mock(side_effect=DatabaseUnavailable("away")))
        with pytest.raises(DatabaseUnavailable):
            site.beat()

    assert not one.is_in_sync
    site.beat()
    assert SHOWN_1_AGAIN == site.shown


def test_what_two_versions_send_lazily_is_sent_by_the_beats_that_agree_with_the_row(site: Site) -> None:
    lazy = BeatLazyFunc(int)
    one = site.start("one", {"agreed": entry(lazy), "settled": entry(lazy), "moved": entry(lazy)})
    site.start("two", {"agreed": entry(lazy), "settled": entry(5), "moved": entry(lazy, queue=1)})

    site.beat()

    assert ["agreed"] == one.lazy_names
    assert [True, False, False] == [one.lazy_entry(name) is not None for name in ("agreed", "settled", "moved")]
    site.kill("two")
    site.live(DEAD_AFTER + HEARTBEAT)
    assert {"agreed", "settled", "moved"} == set(one.lazy_names)


def declarations(site: Site, manager: str = MANAGER) -> CodeSyncQueries:
    return CodeSyncQueries("pgbeat", site.database, manager)


WRITES: dict[str, Callable[[CodeSyncQueries, str], Any]] = {
    "insert_declared": lambda said, code: said.insert_declared(code, [dict(site_record("fresh"))]),
    "update_declared": lambda said, code: said.update_declared(code, [dict(site_record("changed", args=[7]))], {}),
    "resume_declared": lambda said, code: said.resume_declared(code, ["old"]),
    "pause_undeclared": lambda said, code: said.pause_undeclared(code, ["changed"], "gone"),
}


def site_record(name: str, **columns: Any) -> dict[str, Any]:
    """A row as code declares it, complete enough for the table."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(result_expires=None, beat_schedule={name: entry()})
    return {**CodeSchedules(app, None, Settings()).declared.records[name], **columns}  # type: ignore[arg-type]


@pytest.mark.parametrize("write", WRITES)
def test_only_the_declaration_in_force_writes(rolled_out: Site, write: str) -> None:
    site, before = rolled_out, rolled_out.rows
    (in_force,) = site.database.execute("select hash from pgbeat.declaration_in_force")
    others = site.database.execute("select hash from pgbeat.declaration where hash <> %(hash)s", {"hash": in_force[0]})

    assert not WRITES[write](declarations(site), others[0][0])
    assert before == site.rows
    assert WRITES[write](declarations(site), in_force[0])


@pytest.mark.parametrize("write", WRITES)
def test_a_write_under_way_while_another_declaration_comes_into_force_writes_nothing(
    rolled_out: Site, migrated_database: str, write: str
) -> None:
    site, before = rolled_out, rolled_out.rows
    (in_force,) = site.database.execute("select hash from pgbeat.declaration_in_force")
    claiming = Transaction(migrated_database)
    claim = {"manager": MANAGER, "hash": "later", "dead_after": 30.0, "starting": True}
    assert (2, False) <= tuple(claiming.run("announce_declaration", **claim)[0])

    writing = Attempt(lambda: WRITES[write](declarations(site), in_force[0])).waits_for(claiming, site.database)
    claiming.commit()

    assert not writing.answer()
    assert before == site.rows


def test_a_claim_during_a_write_of_the_declaration_in_force_does_not_wait_and_is_repeated(
    rolled_out: Site, migrated_database: str
) -> None:
    site = rolled_out
    (in_force,) = site.database.execute("select hash from pgbeat.declaration_in_force")
    writing = Transaction(migrated_database)
    writing.run("resume_declared", manager=MANAGER, hash=in_force[0], names=[])

    later = site.start("three", V1 | {"three": entry()})

    assert not later.is_in_sync
    assert "three" not in site.rows
    writing.commit()
    later.sync()
    assert later.is_in_sync
    assert [] == site.shown["three"]


def test_of_two_claims_at_the_same_moment_the_one_that_knew_less_gives_way(
    rolled_out: Site, migrated_database: str
) -> None:
    site = rolled_out
    site.kill("two")
    site.live(DEAD_AFTER - SECOND)
    site.clock.advance(2 * SECOND)
    claiming = Transaction(migrated_database)
    claiming.run("announce_declaration", manager=MANAGER, hash="later", dead_after=30.0, starting=True)

    site.beat()  # knows nothing of it, and would be in force else
    claiming.commit()

    assert "later" == site.database.execute("select hash from pgbeat.declaration_in_force")[0][0]
    site.beat()
    assert SHOWN_2 == site.shown


def test_beats_of_three_versions_that_start_at_once_end_with_one_of_them_and_none_writes_twice(
    site: Site, migrated_database: str
) -> None:
    versions = [{f"row-{number}": entry(version) for number in range(50)} for version in range(3)]
    barrier = threading.Barrier(6)

    def start(number: int) -> list[CodeSchedules]:
        own = Site.__new__(Site)
        own.database, own._codes = Database(migrated_database), {}
        barrier.wait(20)
        own.start(f"beat-{number}", versions[number % 3])
        for _ in range(5):
            own.beat()
        return list(own._codes.values())

    with ThreadPoolExecutor(6) as pool:
        codes = [code for codes in pool.map(start, range(6)) for code in codes]
    for code in codes:  # the latest may have found somebody writing each time: it comes again
        code.sync()
    settled = site.rows
    for code in codes:
        code.sync()

    assert 1 == len({tuple(args) for _, args, _ in settled.values()})
    assert 50 == len(settled)
    assert settled == site.rows
    order = site.database.execute("select hash from pgbeat.declaration order by first_seen_at desc, hash desc limit 1")
    assert order == site.database.execute("select hash from pgbeat.declaration_in_force")


def test_apps_that_share_a_schema_have_each_their_own_declaration(site: Site) -> None:
    first, second = declarations(site, "code:a"), declarations(site, "code:b")

    assert 1 == first.announce_declaration("one", DEAD_AFTER, starting=True).revision
    assert 1 == second.announce_declaration("two", DEAD_AFTER, starting=True).revision
    assert 1 == first.announce_declaration("one", DEAD_AFTER, starting=False).revision


def test_a_declaration_of_which_postgres_refuses_a_row_stays_the_same_one(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.database.execute("alter table pgbeat.periodic_task add constraint no_new check (name <> 'new')")

    site.start("one", V2)
    site.start("two", V2).sync()
    site.beat()

    assert {"same", "changed"} == set(site.rows)
    assert 1 == site.database.execute("select count(*) from pgbeat.declaration")[0][0]
    assert "The periodic task 'new' in code is refused" in caplog.text


HASHED = """
import sys
from datetime import datetime
from celery import Celery
from celery.beat import BeatLazyFunc
from celery.schedules import crontab
from celery_pgbeat import PgBeat, cron
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.settings import Settings

turn = reversed if "reversed" in sys.argv else list
app = Celery("shop", broker="memory://", set_as_current=False)
entries = {
    "plain": {"task": "t", "schedule": 0.1 + 1.2, "args": (1, "ü"), "kwargs": dict(turn([("a", 1), ("b", [2.5])]))},
    "lazy": {"task": "t", "schedule": crontab(hour={3, 1}), "args": (BeatLazyFunc(int), 2)},
    "options": {"task": "t", "schedule": 60, "options": dict(turn([("expires", 9), ("queue", "q")]))},
    "refused": {"task": "t", "schedule": object()},
}
app.conf.update(result_expires=None, beat_schedule=dict(turn(list(entries.items()))))
beat = PgBeat(app)

@app.on_after_finalize.connect
def add(sender, **_):
    sender.add_periodic_task(30.0, sender.signature("t", args=(7,)), name="added")

def one():
    beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), name="one", max_run_time="50%")(task)

def two():
    beat.periodic_task("@daily", name="two", run_on_start=True, start_at=datetime(2026, 1, 1))(task)
    beat.periodic_task("@daily", name="three", run_on_start=True)(task)

@app.task(shared=False, name="decorated")
def task():
    pass

for declare in turn([one, two]):
    declare()
code = CodeSchedules(app, None, Settings()).declared
assert {"plain", "lazy", "options", "added", "one", "two", "three"} == set(code.records), code.records
print(code.hash)
"""


def test_the_hash_depends_on_nothing_but_what_is_declared() -> None:
    hashes = {
        subprocess.run(
            [sys.executable, "-c", HASHED, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed, arguments in (("1", []), ("2", ["reversed"]))
    }

    assert 1 == len(hashes)


def test_the_hash_is_the_same_with_every_python() -> None:
    said = {"row": {"task": "t", "args": [1.5, "ü", None], "kwargs": {"b": 1e308, "a": True}}}

    assert "12949a2c1846b6025a078a1ec5ccab4b8197827f5cfc4b83ce4f0f598c65f66e" == hash_of(
        Declared(said, ["row"], {}, {"refused": ValueError("refused")})
    )


@pytest.mark.parametrize(
    "other",
    [
        {"a": entry(2)},
        {"b": entry(1)},
        {"a": entry(1), "b": entry(1)},
        {"a": {**entry(1), "pgbeat": {"run_on_start": True}}},
        {"a": entry(BeatLazyFunc(int))},
        {},
    ],
)
def test_the_hash_tells_declarations_apart(other: dict[str, Any]) -> None:
    def hash_of(schedule: dict[str, Any]) -> str:
        app = Celery("shop", broker="memory://", set_as_current=False)
        app.conf.update(result_expires=None, beat_schedule=schedule)
        return CodeSchedules(app, None, Settings()).declared.hash  # type: ignore[arg-type]

    assert hash_of({"a": entry(1)}) == hash_of({"a": entry(1)})
    assert hash_of({"a": entry(1)}) != hash_of(other)


def at_random(minute: int, **more: Any) -> dict[str, Any]:
    return {f"job-{number:02}": {**entry(), "schedule": crontab(minute=minute), **more} for number in range(12)}


RANDOM = "Are these times random at import?"


@pytest.mark.parametrize(
    ("one", "two", "minutes", "told"),
    [
        (at_random(1), at_random(2), 6, 1),
        (at_random(1), at_random(2), 4, 0),  # a rolling deploy
        (at_random(1), at_random(2, kwargs={"x": 1}), 6, 0),  # two versions
        (at_random(1), {**at_random(2), "more": entry()}, 6, 0),
        (at_random(1), at_random(1), 6, 0),
    ],
    ids=["random", "rolling", "another-version", "another-entry", "control"],
)
def test_living_beats_that_differ_only_in_times_log_it_once(
    site: Site,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    one: dict[str, Any],
    two: dict[str, Any],
    minutes: int,
    told: int,
) -> None:
    boottime = 0.0
    monkeypatch.setattr(code_schedules, "boottime", lambda: boottime)
    site.start("one", one)
    site.start("two", two)
    site.live(HEARTBEAT)
    boottime = minutes * 60.0
    site.live(3 * HEARTBEAT)

    warnings = [record.getMessage() for record in caplog.records if RANDOM in record.getMessage()]
    assert told == len(warnings)
    if told:
        assert "the times of 'job-00', 'job-01', 'job-02'" in warnings[0]
        assert "'job-09', …. Are these times" in warnings[0]
