"""Hundreds of entries, drawn: of each peer the same runs in the week of a changed clock, apart from what the docs list.

Each peer's own code writes the entries and computes its runs. `PGBEAT_TEST_ENTRIES=1000` draws a thousand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.peers.entries import COUNT, Varied, varied
from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn

ENTRIES = int(os.environ.get("PGBEAT_TEST_ENTRIES", "40"))
pytestmark = pytest.mark.timeout(1800 if ENTRIES > 100 else 180)
BERLIN = "Europe/Berlin"
HOUR = timedelta(hours=1)
# When the clocks of Berlin change in that week; those of the other zones do not.
CHANGES = {
    AUTUMN: datetime(2026, 10, 25, 1, tzinfo=timezone.utc),
    SPRING: datetime(2027, 3, 28, 1, tzinfo=timezone.utc),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Varied]:
    """The entries, by name."""
    monkeypatch.setenv(COUNT, str(ENTRIES))
    return {one.name: one for one in varied()}


Moving = Callable[[str], MovingIn]


@pytest.fixture
def moving(migrated_database: str, redis_url: str) -> Moving:
    """Moves from a peer."""

    def make(kind: str) -> MovingIn:
        if kind == "redbeat":
            return MovingIn(kind, migrated_database, redis_url, app="tests.harness.peers.shop_in_berlin")
        app = "tests.harness.peers.varied_in_code" if kind == "beat-schedule" else None
        return MovingIn(kind, migrated_database, app=app)

    return make


@pytest.mark.parametrize("start", [AUTUMN, SPRING], ids=["autumn", "spring"])
@pytest.mark.parametrize(
    ("kind", "peer", "words"),
    [
        ("beat-schedule", "varied_in_code", ()),
        ("django-celery-beat", "django_peer", ()),
        ("redbeat", "redbeat_peer", ()),
        ("sqlalchemy-celery-beat", "sqlalchemy_peer", ()),
        ("apscheduler", "apscheduler_peer", ("--trust-pickle",)),
    ],
)
def test_all_are_taken_and_differ_only_where_the_clocks_change(
    moving: Moving,
    drawn: dict[str, Varied],
    kind: str,
    peer: str,
    words: tuple[str, ...],
    start: datetime,
    record_property: Callable[[str, object], None],
) -> None:
    here = moving(kind)
    if kind != "beat-schedule":
        here.filled_by(peer, start, ENTRIES)
    else:
        here.clock.stand_at(start)
    report = here.report("--apply", "--yes", *words)

    assert drawn.keys() <= {name for name, row in report.items() if row["taken"]}
    found = {name: both for name, both in here.differences(peer, start, ENTRIES).items() if name in drawn}
    record_property("differences", json.dumps(found))
    print(json.dumps(found))
    own_zone = kind in ("beat-schedule", "redbeat")  # there all have the zone of the app, Berlin
    assert all(own_zone or drawn[name].zone == BERLIN for name in found)
    change = CHANGES[start]
    theirs = {instant for of_peer, _ in found.values() for instant in of_peer}
    ours = {instant for _, of_rows in found.values() for instant in of_rows}
    first, last = f"{change:%m-%d %H:%M:%S}", f"{change + HOUR:%m-%d %H:%M:%S}"
    if start == AUTUMN:  # we run in the second pass of the repeated hour too
        # An interval of APScheduler leaves that hour out: what we do in the second pass it has done in the first.
        before = {f"{change - HOUR:%m-%d %H}"} if kind == "apscheduler" else set()
        assert before >= {instant[:8] for instant in theirs}
        assert all(first <= instant < last for instant in ours)
    else:  # what does not exist runs there an hour later, here right after the gap, or not at all
        assert all(first <= instant < last for instant in theirs)
        assert ours <= {first}
