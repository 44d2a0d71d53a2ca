"""Times of a row that code has changed are judged from its last run, as by Celery's beat: no day is lost unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_pgbeat.testing import PgBeatTest
from tests.harness.kits import MakeKit

Make = Callable[..., PgBeatTest]


def daily(hour: int, minute: int = 0, **ours: Any) -> dict[str, Any]:
    return {"a": {"task": "shop.report", "schedule": crontab(hour=hour, minute=minute), "pgbeat": ours}}


@pytest.fixture
def make(make_kit: MakeKit) -> Iterator[Make]:
    """Start a beat on some code, on the 7th of December 2026 at noon."""
    with ExitStack() as stack:

        def start(schedule: dict[str, Any], now: str = "2026-12-07T12:00Z", **conf: Any) -> PgBeatTest:
            app = Celery("shop", broker="memory://", set_as_current=False)
            app.conf.update(result_expires=None, beat_schedule=schedule, **conf)
            app.task(name="shop.report", shared=False)(report)
            return stack.enter_context(make_kit(app, now))

        yield start


def report() -> None: ...


def deploy(kit: PgBeatTest, schedule: dict[str, Any], when: str | None = None) -> list[str]:
    """Let time pass, then start the beat again with other code; return what was sent at that instant, and for when."""
    if when is not None:
        kit.run_until(when)
    kit.app.conf.beat_schedule = schedule
    kit.sync()
    return [shown(sent.scheduled_for) for sent in kit.tick()]


def shown(instant: datetime) -> str:
    return f"{instant:%d %H:%M}"


def runs(kit: PgBeatTest) -> list[str]:
    return [shown(sent.scheduled_for) for sent in kit.sent]


def test_a_job_whose_time_code_moves_into_the_past_runs_at_once_and_once(make: Make) -> None:
    kit = make(daily(18))

    assert ["08 06:00"] == deploy(kit, daily(6), "2026-12-08T12:00Z")

    kit.run_until("2026-12-10T12:00Z")
    assert ["07 18:00", "08 06:00", "09 06:00", "10 06:00"] == runs(kit)
    assert [] == list(kit.skipped)


def test_one_that_was_to_run_first_today_runs_today(make: Make) -> None:
    kit = make(daily(18))

    assert ["07 14:00"] == deploy(kit, daily(14), "2026-12-07T16:00Z")


def test_time_before_the_row_was_made_is_never_caught_up(make: Make) -> None:
    kit = make(daily(18))

    assert [] == deploy(kit, daily(6), "2026-12-07T16:00Z")
    assert "2026-12-08T06:00:00+00:00" == kit.beat.get("a").next_run_at.isoformat()  # type: ignore[union-attr]


def test_time_while_paused_is_never_caught_up(make: Make) -> None:
    kit = make(daily(18))
    kit.run_until("2026-12-07T19:00Z")
    kit.beat.pause("a")
    kit.run_until("2026-12-09T12:00Z")

    assert [] == deploy(kit, daily(6))
    kit.beat.resume("a")
    assert [] == deploy(kit, daily(10))
    assert ["10 10:00"] == [shown(sent.scheduled_for) for sent in kit.run_until("2026-12-10T12:00Z")]


def test_a_change_by_sql_starts_again_from_now(make: Make) -> None:
    kit = make(daily(18))
    kit.run_until("2026-12-08T12:00Z")

    kit.beat.update("a", schedule="0 6 * * *")

    assert [] == kit.tick()
    assert [] == deploy(kit, daily(9)), "an author's edit discards what was undecided, for the code as well"


@pytest.mark.parametrize(
    ("ours", "expected"), [({"catchup": "none"}, "too_late"), ({"catchup_window": "1h"}, "too_late")]
)
def test_what_the_row_does_not_catch_up_is_recorded(make: Make, ours: dict[str, Any], expected: str) -> None:
    kit = make(daily(18, **ours))

    assert [] == deploy(kit, daily(6, **ours), "2026-12-08T12:00Z")
    assert [(expected, "08 06:00")] == [(job.reason, shown(job.scheduled_for)) for job in kit.skipped]


def test_a_slow_job_that_becomes_a_quick_one_is_no_burst(make: Make) -> None:
    monthly = {"a": {"task": "shop.report", "schedule": crontab(hour=6, minute=0, day_of_month=1)}}
    quick = {"a": {"task": "shop.report", "schedule": crontab(), "pgbeat": {"catchup": "all", "overlap": "allow"}}}
    kit = make(monthly)

    assert ["20 12:00"] == deploy(kit, quick, "2026-12-20T12:00:30Z")
    assert [] == list(kit.skipped)


def test_a_late_run_is_not_followed_by_another_of_the_same_day(make: Make) -> None:
    kit = make(daily(18))
    assert ["08 06:00"] == deploy(kit, daily(6), "2026-12-08T12:00Z")

    assert [] == deploy(kit, daily(10), "2026-12-08T13:00Z")
    assert ["08 14:00"] == deploy(kit, daily(14), "2026-12-08T15:00Z"), "as Celery's beat: a later time is another run"


def test_a_change_of_the_zone_loses_no_run(make: Make) -> None:
    kit = make(daily(18))
    kit.run_until("2026-12-08T17:30Z")
    kit.app = Celery("shop", broker="memory://", set_as_current=False)
    kit.app.conf.update(result_expires=None, timezone="Europe/Berlin")
    kit.app.task(name="shop.report", shared=False)(report)

    assert ["08 17:00"] == deploy(kit, daily(18))


def test_an_interval_that_each_start_draws_anew_runs_all_the_same(make: Make) -> None:
    """Restarts come more often than the job: counted from the start it would never run."""
    kit = make({"a": {"task": "shop.report", "schedule": timedelta(minutes=50)}})

    for hour in range(13, 25):
        for minute, interval in ((0, 55), (20, 65), (40, 70)):
            when = kit.now.replace(hour=hour % 24, day=7 + hour // 24, minute=minute)
            deploy(kit, {"a": {"task": "shop.report", "schedule": timedelta(minutes=interval)}}, when.isoformat())
    times = [sent.sent_at for sent in kit.sent]
    gaps = [later - earlier for earlier, later in pairwise(times)]

    assert len(times) >= 8
    assert max(gaps) <= timedelta(minutes=70 + 20)
    assert min(gaps) >= timedelta(minutes=50)


def test_a_row_that_had_ended_has_nothing_to_catch_up(make: Make) -> None:
    kit = make(daily(18, max_runs=1))

    assert [] == deploy(kit, daily(6), "2026-12-10T12:00Z")
    assert ["11 06:00"] == [shown(sent.scheduled_for) for sent in kit.run_until("2026-12-11T12:00Z")]


def test_a_single_date_that_code_moves_into_the_past_is_over(make: Make) -> None:
    def once(text: str) -> dict[str, Any]:
        return {"a": {"task": "shop.report", "schedule": text}}

    kit = make(once("2026-12-24"))

    assert [] == deploy(kit, once("2026-12-08"), "2026-12-09T12:00Z")
    assert kit.beat.get("a").next_run_at is None  # type: ignore[union-attr]


def test_four_days_of_restarts_that_draw_the_time_anew_lose_no_day(make: Make) -> None:
    """Each draw is the worst: just behind the last restart, or far ahead."""
    kit = make(daily(18), now="2026-12-07T00:00Z")
    for day in range(7, 11):
        for restart, hour in (("05:00", 20), ("09:00", 7), ("12:00", 3), ("16:00", 22), ("19:00", 4)):
            deploy(kit, daily(hour, 30), f"2026-12-{day:02}T{restart}Z")
    kit.run_until("2026-12-11T00:00Z")

    days = {sent.sent_at.day for sent in kit.sent}
    assert {7, 8, 9, 10} == days
    assert [] == list(kit.skipped)
    assert len(kit.sent) == len({sent.id for sent in kit.sent})


def test_a_roll_back_to_another_draw_is_judged_alike(make: Make) -> None:
    """Two beats have drawn two times: whichever declaration comes into force, the row's day has its run."""
    kit = make(daily(10), now="2026-12-07T00:00Z")
    assert [] == deploy(kit, daily(18), "2026-12-07T11:00Z")
    kit.run_until("2026-12-08T12:00Z")
    assert ["07 10:00", "07 18:00"] == runs(kit), "the draw of the newer beat is later: a second run, as in Celery"

    assert ["08 10:00"] == deploy(kit, daily(10)), "the beat that drew 18:00 is gone: 10:00 is in force again"
    kit.run_until("2026-12-09T12:00Z")
    assert ["07 10:00", "07 18:00", "08 10:00", "09 10:00"] == runs(kit)
