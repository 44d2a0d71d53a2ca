"""Timeline: what happened on the left of now, what is planned on the right, and which minutes are crowded."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.harness.situations import NOON, Situation, ago
from tests.harness.visitor import Seen, Visitor


def lanes(seen: Seen) -> list[str | None]:
    """Return what each lane says of itself."""
    return [given.get("aria-label") for tag, given in seen.tags if tag == "svg" and given.get("class") == "lane"]


def test_a_lane_says_what_became_of_the_jobs_and_what_is_planned(well: Situation, visitor: Visitor) -> None:
    well.plan(schedule="0 * * * *", timezone="UTC", planned_for=NOON + timedelta(hours=1))
    for hour, state in ((1, "succeeded"), (2, "succeeded"), (3, "failed")):
        well.final(state, ago(hours=hour), started_at=ago(hours=hour), finished_at=ago(hours=hour, minutes=-5))
    well.final("skipped", ago(hours=4), reason="overlap")

    seen = visitor.open("/timeline", hours="6")

    assert ["nightly: 2 succeeded, 1 failed, 1 skipped; 6 planned"] == lanes(seen)
    assert "2100-03-01 09:00:00 UTC: failed, 5m00s" in seen.html
    assert "2100-03-01 08:00:00 UTC: skipped, overlap" in seen.html
    assert "2100-03-01 13:00:00 UTC: planned" in seen.html


@pytest.mark.parametrize(("hours", "counted"), [("1", 1), ("6", 6), ("24", 24), ("25", 24), ("-1", 24), ("x", 24)])
def test_it_reaches_as_far_as_was_chosen(well: Situation, visitor: Visitor, hours: str, counted: int) -> None:
    well.plan(schedule="0 * * * *", timezone="UTC", planned_for=NOON + timedelta(hours=1))
    for hour in range(30):
        well.final("succeeded", ago(hours=hour, minutes=1))

    assert [f"nightly: {counted} succeeded; {counted} planned"] == lanes(visitor.open("/timeline", hours=hours))


def test_a_task_of_many_runs_is_bounded_and_says_so(well: Situation, visitor: Visitor) -> None:
    well.plan(NOON + timedelta(seconds=1), schedule="every 1s", timezone="UTC", planned_for=NOON + timedelta(seconds=1))

    seen = visitor.open("/timeline")

    assert ["nightly: no job; 60+ planned"] == lanes(seen)
    assert 1 == seen.html.count('<rect class="more"')
    assert "more runs: only the next 60 are computed" in seen.html


def test_a_task_of_many_jobs_says_that_older_ones_are_not_drawn(well: Situation, visitor: Visitor) -> None:
    well.task(schedule=None)
    well.session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'nightly', at, 'schedule', 'succeeded', 'app.probe', at, at "
        "from generate_series(1, 310) as n cross join lateral (select %s - n * interval '1 s' as at) as made",
        NOON,
    )

    seen = visitor.open("/timeline", hours="1")

    assert ["nightly: 300 succeeded; 0 planned"] == lanes(seen)
    assert "older jobs: only the latest 300 are drawn" in seen.html


def test_one_that_cannot_be_planned_or_has_no_schedule_has_a_lane_without_plans(
    well: Situation, visitor: Visitor
) -> None:
    well.task("a", schedule=None)
    well.task("b", problem="no zone")
    well.task("c", enabled=False)

    assert [f"{name}: no job; 0 planned" for name in "abc"] == lanes(visitor.open("/timeline"))


def test_it_is_searched_and_paged_by_name(well: Situation, visitor: Visitor) -> None:
    for number in range(40):
        well.task(f"row-{number:02}", schedule=None, group_name="g" if number > 35 else None)

    first = visitor.open("/timeline", hours="6")
    second = visitor.open(first.link("after="))

    assert (30, 10) == (len(lanes(first)), len(lanes(second)))
    assert "hours=6" in first.link("after=")
    assert ["row-07: no job; 0 planned"] == lanes(visitor.open("/timeline", q="07"))
    assert 4 == len(lanes(visitor.open("/timeline", group="g")))
    assert "No task matches" in visitor.open("/timeline", q="nothing").text


def test_a_crowded_minute_is_named_with_a_calmer_one_of_its_hour(well: Situation, visitor: Visitor) -> None:
    at = NOON.replace(hour=15)
    for number in range(20):
        well.plan(at, name=f"crowd-{number:02}", schedule="0 15 * * *")
    for minute in range(1, 6):
        well.plan(at + timedelta(minutes=minute), name=f"calm-{minute}", schedule="0 15 * * *")

    seen = visitor.open("/timeline")

    assert "15:00:00 starts 20 tasks, one of them crowd-00" in seen.text
    assert "Calmer: 15:06:00 starts 0 tasks. In a cron schedule, H for the minute spreads them." in seen.text
    assert "Next runs by time: the busiest minute is 2100-03-01 15:00:00 UTC with 20" in [
        given.get("aria-label") for tag, given in seen.tags if tag == "svg"
    ]


@pytest.mark.parametrize("minute", [1, 20, 45, 58])
def test_the_calmer_minute_is_still_to_come(well: Situation, visitor: Visitor, minute: int) -> None:
    well.clock.stand_at(NOON + timedelta(minutes=minute, seconds=15))
    at = NOON + timedelta(minutes=minute + 1)
    for number in range(20):
        well.plan(at, name=f"crowd-{number:02}", schedule="every 30m")
    for calm in range(1, 6):
        well.plan(at + timedelta(minutes=calm), name=f"calm-{calm}", schedule="0 15 * * *")

    text = visitor.open("/timeline").text

    _, calmer = text.split(" Calmer: ")
    calmest = at + timedelta(minutes=6)
    assert calmer.startswith(f"{calmest:%H:%M:%S} starts 0 tasks.")


def test_an_interval_is_not_advised_to_use_h(well: Situation, visitor: Visitor) -> None:
    for number in range(20):
        well.plan(NOON + timedelta(hours=3), name=f"crowd-{number:02}", schedule="every 30m")
    for minute in range(1, 6):
        well.plan(NOON + timedelta(hours=3, minutes=minute), name=f"calm-{minute}", schedule="0 15 * * *")

    text = visitor.open("/timeline").text

    assert "20 of them repeat an interval: give each an anchor of its own, or jitter" in text
    assert "In a cron schedule" not in text
