"""A diamond of five tasks across the nights when the clocks change, and across a day without a beat.

extract ──► sums, counts ──► load ──► publish
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from celery import Celery

from celery_pgbeat.testing import PgBeatTest, Sent, at, occurrences
from tests.harness.kits import MakeKit

AFTER = {
    "extract": [],
    "sums": ["extract"],
    "counts": ["extract"],
    "load": ["sums", "counts"],
    "publish": ["load"],
}
SCHEDULE, ZONE = "30 */2 * * *", "Europe/Berlin"  # 02:30 comes twice in October, never in March
NIGHTS = {"back": "2026-10-25", "forward": "2027-03-28"}
DAY = timedelta(days=1)
CAUGHT_UP = {"all": slice(None), "latest": slice(-1, None), "earliest": slice(1), "none": slice(0)}


def app() -> Celery:
    """An app without results, so that Celery adds no entry of its own; its servers are nowhere."""
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone=ZONE, pgbeat_url="postgresql://nowhere.invalid/shop")
    return app


def account(kit: PgBeatTest, name: str) -> tuple[list[datetime], int]:
    """Return the occurrences of a task that ran, in their order, and how many are recorded as missed."""
    jobs = kit.jobs(name)
    missed = [job for job in jobs if job.state == "skipped"]
    assert {"too_late"} >= {job.reason for job in missed}
    ran = sorted(job.scheduled_for for job in jobs if job.state == "succeeded")
    assert len(ran) + len(missed) == len(jobs)
    return ran, sum(job.occurrences for job in missed)


def in_order(sent: list[Sent]) -> bool:
    """Whether each task was sent after those before it, for the same occurrence, and its own rounds one by one."""
    places = {(one.periodic_task, one.scheduled_for): place for place, one in enumerate(sent)}
    rounds = [[one.scheduled_for for one in sent if one.periodic_task == name] for name in AFTER]
    return all(first < second for round in rounds for first, second in pairwise(round)) and all(
        places[upstream, one.scheduled_for] < places[one.periodic_task, one.scheduled_for]
        for one in sent
        for upstream in AFTER[one.periodic_task]
    )


# Each two of the four in some row.
@pytest.mark.parametrize(
    ("own_times", "catchup", "night", "downtime"),
    [
        (True, "all", "back", "over the night"),
        (False, "all", "forward", "after the night"),
        (True, "latest", "forward", "over the night"),
        (False, "latest", "back", "after the night"),
        (True, "earliest", "back", "after the night"),
        (False, "earliest", "forward", "over the night"),
        (True, "none", "forward", "after the night"),
        (False, "none", "back", "over the night"),
    ],
)
def test_a_diamond_runs_each_round_once_in_order_and_records_what_it_leaves_out(
    make_kit: MakeKit, own_times: bool, catchup: str, night: str, downtime: str
) -> None:
    midnight = at(f"{NIGHTS[night]} 00:00 {ZONE}")
    down = midnight - DAY / 24 if downtime == "over the night" else midnight + DAY / 2
    up, end = down + DAY, down + 2 * DAY
    begin = midnight - DAY / 2
    before = occurrences(SCHEDULE, begin, down, timezone=ZONE)
    missed = occurrences(SCHEDULE, down, up, timezone=ZONE)
    behind = occurrences(SCHEDULE, up, end, timezone=ZONE)
    ran = before + missed[CAUGHT_UP[catchup]] + behind

    with make_kit(app(), begin) as kit:
        for name, upstream in AFTER.items():
            schedule = SCHEDULE if own_times or not upstream else None
            kit.beat.schedule(name, f"shop.{name}", schedule, after=upstream or None, catchup=catchup, timezone=ZONE)
        kit.run_until(down)
        kit.clock.set(up)
        kit.run_until(end)

        left_out = len(missed) - len(missed[CAUGHT_UP[catchup]])
        for name in AFTER:
            recorded = left_out if own_times or name == "extract" else 0
            assert account(kit, name) == (ran, recorded), name
        assert in_order(list(kit.sent))
