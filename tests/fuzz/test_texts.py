"""Any text of a schedule or a window is read or refused, and neither takes long."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse, parse_windows
from celery_pgbeat.schedules.parse import read
from celery_pgbeat.schedules.registry import KINDS
from tests.fuzz.fuzzing import MARKS, attack, fuzzed, quickly
from tests.fuzz.mutations import GOOD, mutated
from tests.harness.schedule_texts import ZONES, zones
from tests.harness.wrong_texts import lists_of_windows

pytestmark = MARKS

NOW = datetime(2026, 12, 7, tzinfo=timezone.utc)
YEAR = timedelta(days=366)
CENTURY = timedelta(days=36_524)
LENGTHS = (*[YEAR] * 9, CENTURY)  # to count over a century takes most of the time
NAMED = {"night": parse_windows("0 0 * * * PT5H")}


@pytest.fixture(autouse=True, scope="module")
def _known_zones() -> None:
    """Let each zone be surveyed before: that is done once in a process."""
    for zone in ZONES:
        parse("30 2 * * *", zone).count(NOW - 11 * CENTURY, NOW + 4 * CENTURY)


def test_each_kind_of_the_registry_is_mutated() -> None:
    kinds = {kind.name for kind in KINDS.all}

    assert kinds == {found[0].name for text in GOOD if (found := KINDS.recognise(text.strip()))}


def check_refusal(refusal: InvalidSchedule) -> None:
    assert refusal.reason.strip()
    assert len(str(refusal)) < 1_000


def check_schedule(text: str, zone: str, dst: str, length: timedelta) -> None:
    try:
        schedule = quickly(lambda: read(text, zone, "a row", dst, NOW))
    except InvalidSchedule as refusal:
        check_refusal(refusal)
        return
    found = quickly(lambda: list(schedule.occurrences(NOW, limit=3)))
    last = quickly(lambda: schedule.previous(NOW))
    until = NOW + (YEAR if schedule.kind == "solar" else length)  # each day of those is asked for
    total = quickly(lambda: schedule.count(NOW, until))
    assert found == sorted(set(found))
    assert len(found) <= total or found[-1] > until
    assert last is None or last < NOW
    assert all(map(schedule.matches, found))
    assert schedule == read(schedule.text, zone, "a row", dst, NOW)
    assert schedule.describe()


def check_windows(texts: list[str], zone: str) -> None:
    try:
        windows = quickly(lambda: parse_windows(texts, zone, named=NAMED))
    except InvalidSchedule as refusal:
        check_refusal(refusal)
        return
    quickly(lambda: windows.covers(NOW))


def test_a_mutated_schedule_or_window_is_read_or_refused_and_raises_nothing_else() -> None:
    attack(check_mutation)


def check_mutation(numbers: random.Random) -> None:
    text = mutated(numbers)
    zone, dst = numbers.choice(ZONES), numbers.choice(("default", "skip", "once", "all"))
    check_schedule(text, zone, dst, numbers.choice(LENGTHS))
    check_windows([text], zone)


@fuzzed(texts=lists_of_windows(), zone=zones)
def test_a_list_of_windows_is_read_or_refused_and_raises_nothing_else(texts: list[str], zone: str) -> None:
    check_windows(texts, zone)
