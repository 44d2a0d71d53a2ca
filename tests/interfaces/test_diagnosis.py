"""What is wrong, asked of all who say it: SQL, Python, the shell, the metrics, the alerts and the dashboard agree."""

from __future__ import annotations

from datetime import timedelta

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.measures.gauges import Gauges
from celery_pgbeat.postgres.database import Database
from tests.harness.situations import NOON, Situation, ago


@pytest.mark.parametrize(
    ("dead_after", "lives"), [(None, False), ("2 minutes", True)], ids=["by default", "by setting"]
)
def test_a_beat_is_alive_for_as_long_as_the_beats_say(
    situation: Situation, beat: PgBeat, migrated_database: str, dead_after: str | None, lives: bool
) -> None:
    situation.beat(ago(minutes=1))
    situation.plan(NOON + timedelta(hours=1))
    if dead_after is not None:
        situation.session.rows("insert into pgbeat.app values ('shop', %s, %s, %s, %s)", NOON, NOON, NOON, dead_after)
    gauges = Gauges(Database(migrated_database)).read()

    assert gauges is not None
    assert [lives] * 4 == [
        "no beat" not in situation.explain(),
        beat.nodes()[0].alive,
        beat.health().beats == 1,
        gauges.beats == 1,
    ]
