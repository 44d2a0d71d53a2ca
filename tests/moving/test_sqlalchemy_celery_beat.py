"""Moving from sqlalchemy-celery-beat: its tables are filled, and its runs computed, by its own code."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn
from tests.harness.session import Session

PEER = "sqlalchemy_peer"
AUTUMN_DIFFERENCES = {
    "cron 05": ([], ["10-25 01:00:00", "10-25 01:30:00"]),  # the second pass of the repeated hour
    # It goes on to send messages that have expired.
    "expires": ([f"10-{day} 04:00:00" for day in (25, 26, 27, 28, 29)], []),
}
SPRING_DIFFERENCES = {
    "cron 10": (["03-28 01:30:00"], ["03-28 01:00:00"]),  # 02:30 does not exist: right after the gap
    "expires": (["03-28 03:00:00", "03-29 03:00:00", "03-30 03:00:00", "03-31 03:00:00", "04-01 03:00:00"], []),
}


@pytest.fixture
def moving(migrated_database: str) -> MovingIn:
    """Both schedulers in one database."""
    return MovingIn("sqlalchemy-celery-beat", migrated_database)


@pytest.mark.parametrize(("start", "expected"), [(AUTUMN, AUTUMN_DIFFERENCES), (SPRING, SPRING_DIFFERENCES)])
def test_both_run_at_the_same_times_apart_from_what_the_docs_list(
    moving: MovingIn, start: datetime, expected: object
) -> None:
    moving.filled_by(PEER, start)
    report = moving.report("--apply", "--yes")

    assert expected == moving.differences(PEER, start)
    assert {"lost its schedule": "its crontab schedule is missing"} == {
        name: row["reason"] for name, row in report.items() if not row["taken"]
    }
    assert ["expires"] == [name for name, row in report.items() if row["changes"]]
    row = Session(moving.url).task("with everything")
    assert {"expires": 90, "headers": {"tenant": "north"}, "exchange": "shop", "routing_key": "shop.slow"} == (
        row["options"]
    )
    assert (["a", 1], {"b": None}, "slow", 7) == (row["args"], row["kwargs"], row["queue"], row["priority"])


def test_a_cut_over_switches_off_there_what_is_taken(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)

    moving.report("--apply", "--yes", "--cut-over")

    enabled = Session(moving.url).rows("select name from celery_schema.celery_periodictask where enabled")
    assert ["lost its schedule"] == [row["name"] for row in enabled]
    assert {"equal"} == {row["kind"] for row in moving.report("--apply", "--yes").values() if row["taken"]}
