"""The zone that a text names itself, and whether the zone of the row matters."""

from __future__ import annotations

import pytest

from celery_pgbeat.schedules import needs_zone, own_zone
from tests.harness.zone_texts import FOLLOWING, NAMED


@pytest.mark.parametrize(("text", "zone"), NAMED.items())
def test_a_zone_in_the_text_is_found_and_the_row_s_does_not_matter(text: str, zone: str) -> None:
    assert (zone, False) == (own_zone(text), needs_zone(text))


@pytest.mark.parametrize("text", FOLLOWING)
def test_a_text_without_a_zone_follows_the_row_unless_it_is_elapsed_time(text: str) -> None:
    assert own_zone(text) is None
    assert needs_zone(text) is (text not in ("PT1H", "every 5m"))
