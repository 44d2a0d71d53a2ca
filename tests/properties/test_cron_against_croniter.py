"""In UTC, outside the classes that docs/schedule-reference.md lists, croniter 7 gives the same instants."""

from __future__ import annotations

from datetime import datetime

import pytest
from croniter import CroniterError, croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import UTC, chain


def plain(low: int, high: int) -> st.SearchStrategy[str]:
    """Return fields in which the dialects agree: no equal ranges, no steps beyond a range, no lists with a star."""
    number = st.integers(low, high)
    pair = st.tuples(number, number).filter(lambda pair: pair[0] != pair[1])
    element = st.one_of(number.map(str), pair.map(lambda ends: f"{ends[0]}-{ends[1]}"))
    step = st.integers(2, (high - low) // 2).map(lambda size: f"*/{size}")
    return st.one_of(st.just("*"), step, st.lists(element, min_size=1, max_size=3).map(",".join))


day = st.one_of(plain(1, 28), st.sampled_from(("L", "15W", "1W")))
weekday = st.one_of(plain(0, 6), st.sampled_from(("mon-fri", "sun", "L5", "L1", "2#3")))
fields = st.tuples(plain(0, 59), plain(0, 23), day, plain(1, 12), weekday)


def agreed(words: tuple[str, ...]) -> bool:
    """Return whether cron's two day fields are read alike: croniter ORs `*/n`, and ANDs `#` and L."""
    starred = [words[2].startswith("*"), words[4].startswith("*")]
    special = words[2][-1] in "LW" or "#" in words[4] or "L" in words[4]
    return "*/" not in words[2] + words[4] and (any(starred) or not special)


@settings(max_examples=500, deadline=None, database=None)
@given(fields, st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))
def test_croniter_gives_the_same_instants_in_utc(words, naive):
    assume(agreed(words))
    text, base = " ".join(words), naive.replace(tzinfo=UTC)
    theirs = croniter(text, base)

    assert [theirs.get_next(datetime) for _ in range(4)] == chain(parse(text), base, 4)


@settings(max_examples=100, deadline=None, database=None)
@given(fields)
def test_croniter_refuses_nothing_that_is_accepted_here_and_the_other_way_round(words):
    assume(agreed(words))
    text = " ".join(words)
    try:
        parse(text)
    except InvalidSchedule:
        with pytest.raises(CroniterError):
            croniter(text, datetime(2026, 1, 1, tzinfo=UTC)).get_next()
    else:
        assert croniter.is_valid(text)


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("0 0 1 6-6 *", "2027-06-01", "2027-01-01"),  # an equal range is one value, not the whole field
        ("0 0 */2 * 1", "2026-12-07", "2026-12-03"),  # a field that starts with a star is ANDed
        ("4-4/3 * * * *", "2026-12-01T00:04", "2026-12-01T00:03"),
        ("0 0 * * 7/1", "2026-12-06", "2026-12-02"),  # 7/1 is Sunday, not every day
    ],
)
def test_the_documented_classes_in_which_croniter_differs(text, ours, theirs):
    base = datetime(2026, 12, 1, tzinfo=UTC)

    assert datetime.fromisoformat(ours).replace(tzinfo=UTC) == parse(text).next(base)
    assert datetime.fromisoformat(theirs).replace(tzinfo=UTC) == croniter(text, base).get_next(datetime)


def test_a_sixth_field_comes_first_here_and_last_there():
    base = datetime(2026, 12, 1, tzinfo=UTC)

    assert base.replace(second=30) == parse("30 * * * * *").next(base)
    assert base.replace(minute=30) == croniter("30 * * * * *", base).get_next(datetime)
