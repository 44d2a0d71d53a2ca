"""Beats in shadow: they decide as usual and send nothing, and they never work beside beats that send."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.beat.upkeep.mode import SENDS, SHADOW, WAITS, Mode
from celery_pgbeat.errors import ShadowConflict
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing import PgBeatTest, at
from tests.harness.kits import MakeKit
from tests.harness.ticks import beat

NOON = "2026-03-02 12:00 UTC"

Make = Callable[..., PgBeatTest]


@pytest.fixture
def make(make_kit: MakeKit) -> Make:
    """Make a kit whose beat is in shadow."""

    def made(entries: dict[str, Any] | None = None, *, shadow: bool = True, **rest: Any) -> PgBeatTest:
        app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
        app.conf.update(
            result_expires=None,
            beat_schedule=entries or {"nightly": entry("0 3 * * *")},
            pgbeat_url="postgresql://nowhere.invalid/shop",
            pgbeat_shadow=shadow,
        )
        return make_kit(app, NOON, **rest)

    return made


def entry(schedule: Any, **ours: Any) -> dict[str, Any]:
    return {"task": "shop.report", "schedule": schedule, "pgbeat": ours}


def ended(kit: PgBeatTest, name: str = "nightly") -> list[tuple[str, str | None, str]]:
    """Return the jobs of a row as (state, reason, occurrence), the oldest first."""
    jobs = kit.beat.jobs(name)[::-1]
    return [(job.state, job.reason, job.scheduled_for.strftime("%d %H:%M")) for job in jobs]


# What is decided.


@pytest.mark.parametrize("overlap", ["skip", "allow", "buffer_one", "cancel_other"])
def test_each_occurrence_is_recorded_as_skipped_and_none_waits_for_another(make: Make, overlap: str) -> None:
    with make({"nightly": entry("0 3 * * *", overlap=overlap)}) as kit:
        kit.run_until(at("2026-03-05T12:00Z"))

        assert [("skipped", "shadow", f"0{day} 03:00") for day in (3, 4, 5)] == ended(kit)
        assert at("2026-03-06T03:00Z") == kit.beat.get("nightly").next_run_at
        assert () == kit.sent


def test_what_would_not_be_sent_has_the_reason_that_it_always_has(make: Make) -> None:
    rows = {
        "late": entry("0 * * * *", catchup="latest"),
        "blacked out": entry("0 * * * *", blackout=["cron: 0 12 * * * PT4H"], blackout_action="skip"),
    }
    with make(rows) as kit:
        kit.clock.set(at("2026-03-02T18:30Z"))
        kit.tick()

        assert Counter({"too_late": 5, "shadow": 1}) == _occurrences(kit, "late")
        kit.run_until(at("2026-03-03T16:30Z"))
        assert {"blackout", "shadow", "too_late"} == set(_occurrences(kit, "blacked out"))


def _occurrences(kit: PgBeatTest, name: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for job in kit.beat.jobs(name):
        counted[str(job.reason)] += job.occurrences
    return counted


def test_an_occurrence_counts_as_a_run_because_the_other_scheduler_sends_it(make: Make) -> None:
    with make({"nightly": entry("0 3 * * *", max_runs=2)}) as kit:
        kit.run_until(at("2026-03-08T00:00Z"))

        assert ["03 03:00", "04 03:00"] == [occurrence for _, _, occurrence in ended(kit)]
        assert (2, None) == (kit.beat.get("nightly").run_count, kit.beat.get("nightly").next_run_at)


def test_a_triggered_job_is_recorded_and_never_sent_later(make: Make) -> None:
    with make() as kit:
        kit.beat.trigger("nightly")
        kit.tick()
        assert [("skipped", "shadow", "02 12:00")] == ended(kit)

        kit._settings = replace(kit._settings, shadow=False)
        kit.sync()
        assert [] == kit.tick()


def test_a_backfill_waits_until_beats_send(make: Make) -> None:
    with make() as kit:
        kit.beat.pause("nightly")
        wanted = kit.beat.backfill("nightly", at("2026-02-01T00:00Z"), at("2026-02-03T00:00Z"))
        kit.tick()

        (found,) = kit.beat.backfills()
        assert (wanted.id, "running", 0) == (found.id, found.state, found.submitted)


def test_what_a_shadow_has_recorded_can_be_backfilled(make: Make) -> None:
    with make() as kit:
        kit.run_until(at("2026-03-04T12:00Z"))
        preview = kit.beat.backfill("nightly", at("2026-03-02T12:00Z"), at("2026-03-04T12:00Z"), dry_run=True)

        assert 2 == preview.to_submit


# Beside beats that send.


@pytest.fixture
def mode(migrated_database: str) -> Iterator[Callable[..., Mode]]:
    """Make the mode of a beat of another host; it is announced."""
    made: list[BeatQueries] = []

    def make(name: str, *, shadow: bool) -> Mode:
        store = beat(migrated_database, str(NodeId(name, "m", 1, "1", "x")))
        made.append(store)
        settings = Settings(url=migrated_database, shadow=shadow)
        one = Mode(store, settings)
        store.announce_node(name, 1, "1.0", one.value)
        return one

    yield make
    for store in made:
        store.database.close()


def announced(one: Mode) -> None:
    """Check, although the last check was a moment ago."""
    one._check_at = 0.0
    one.check()


def gone(one: Mode) -> None:
    one._queries.remove_beats([one._queries.beat])


def test_a_beat_sends_once_it_has_seen_none_in_shadow(mode: Callable[..., Mode]) -> None:
    first, second = mode("a", shadow=False), mode("b", shadow=False)
    assert (WAITS, WAITS) == (first.value, second.value)

    announced(first)
    announced(second)

    assert (SENDS, SENDS) == (first.value, second.value)


def test_beside_a_beat_in_shadow_a_new_one_waits_and_neither_decides(mode: Callable[..., Mode]) -> None:
    shadow = mode("a", shadow=True)
    announced(shadow)
    new = mode("b", shadow=False)

    with pytest.raises(ShadowConflict, match=r"'a' is in shadow .* this one waits while that one lives"):
        announced(new)
    with pytest.raises(ShadowConflict, match="a beat on the host 'b' is not: this one decides nothing"):
        announced(shadow)

    gone(shadow)
    announced(new)
    assert SENDS == new.value


def test_a_stray_beat_in_shadow_stops_nobody_who_sends(mode: Callable[..., Mode]) -> None:
    sending = mode("a", shadow=False)
    announced(sending)
    stray = mode("b", shadow=True)

    with pytest.raises(ShadowConflict):
        announced(stray)
    announced(sending)
    joining = mode("c", shadow=False)
    announced(joining)
    gone(sending)
    announced(joining)

    assert (SENDS, SENDS, SHADOW) == (sending.value, joining.value, stray.value)
    gone(joining)
    announced(stray)  # decides again


def test_a_beat_says_once_that_it_is_in_shadow(mode: Callable[..., Mode], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    one = mode("a", shadow=True)
    one.check()
    one.check()

    assert ["This beat is in shadow (pgbeat_shadow): it records what it would send, and sends nothing"] == [
        text for text in caplog.messages if "shadow" in text
    ]
