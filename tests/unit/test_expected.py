"""When rows without a schedule are expected to run, computed from the occurrences of those before them."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat.api.expected import MOST_STEPS, Expected, Follower, Outlook, Scheduled

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
LONG = 3_000  # longer than Python's stack is deep


def at(hours: float) -> datetime:
    return NOON + hours * HOUR


def by_lists(lists: Mapping[str, Sequence[float]], delay: float = 0) -> Scheduled:
    """Make what returns the occurrences of rows with a schedule, in hours after noon; each is due after a delay."""

    def scheduled(name: str, instant: datetime, due_after: datetime | None) -> Expected | None:
        coming = (Expected(at(hour), at(hour + delay)) for hour in lists.get(name, ()))
        return next(
            (one for one in coming if one.occurrence > instant and (due_after is None or one.due_at > due_after)), None
        )

    return scheduled


def follower(
    name: str,
    after: Sequence[str],
    since: float = 0,
    lasts: Mapping[str, float] | None = None,
    firsts: Mapping[str, float] | None = None,
    is_on: bool = True,
    planned: float | None = None,
    end: float | None = None,
    most: int | None = None,
) -> Follower:
    known = lasts or {}
    earliest = {**known, **(firsts or {})}
    return Follower(
        name,
        after,
        at(since),
        [at(earliest[one]) if one in earliest else None for one in after],
        [at(known[one]) if one in known else None for one in after],
        is_on,
        None if planned is None else Expected(at(planned), NOON),
        None if end is None else at(end),
        most,
    )


def hours(outlook: Outlook, name: str, number: int = 3, due_after: datetime | None = None) -> list[float]:
    return [(one.occurrence - NOON) / HOUR for one in islice(outlook.coming(name, due_after), number)]


def outlook(
    followers: Sequence[Follower], lists: Mapping[str, Sequence[float]], now: float = 0, delay: float = 0
) -> Outlook:
    return Outlook(followers, by_lists(lists, delay), at(now))


def test_after_one_task_a_row_has_its_occurrences() -> None:
    assert [1, 2, 3] == hours(outlook([follower("b", ["a"])], {"a": [0, 1, 2, 3, 4]}), "b")


def test_after_several_each_occurrence_is_the_latest_of_their_next_ones() -> None:
    lists = {"hourly": range(100), "daily": [3, 27, 51]}

    assert [3, 27, 51] == hours(outlook([follower("x", ["hourly", "daily"])], lists), "x", 5)


def test_where_one_has_no_further_occurrence_it_ends() -> None:
    assert [5] == hours(outlook([follower("x", ["a", "b"])], {"a": [1, 2, 3], "b": [5]}), "x")
    assert [] == hours(outlook([follower("x", ["a", "unknown"])], {"a": [1, 2, 3]}), "x")


def test_a_row_before_it_may_have_no_schedule_either() -> None:
    rows = [follower("last", ["middle", "b"]), follower("middle", ["a", "b"])]

    assert [4, 8, 12] == hours(outlook(rows, {"a": range(0, 100, 2), "b": range(0, 100, 4)}), "last")


def test_two_tasks_in_turn_are_counted_from_the_last_occurrence() -> None:
    lists = {"a": [1, 25, 49], "b": [3, 27, 51]}

    assert [3, 27, 51] == hours(outlook([follower("x", ["a", "b"], since=0)], lists), "x", 5)
    assert [25, 49] == hours(outlook([follower("x", ["a", "b"], since=2)], lists), "x", 5)


def test_a_paused_row_and_what_comes_after_it_have_none() -> None:
    rows = [follower("x", ["a"], is_on=False), follower("y", ["x"]), follower("z", ["a", "x"])]
    found = outlook(rows, {"a": [1, 2]})

    assert [[], [], []] == [hours(found, name) for name in ("x", "y", "z")]
    assert {} == dict(found.firsts())


def test_of_a_task_that_has_run_for_it_the_next_one_is_not_awaited() -> None:
    rows = [follower("x", ["a", "b"], since=-10, lasts={"a": -2})]

    assert [1, 22] == hours(outlook(rows, {"a": [22, 46], "b": [1, 2]}), "x", 2)


def test_where_all_have_run_it_is_expected_now_for_what_all_have_reached() -> None:
    rows = [follower("x", ["a", "b"], since=-10, lasts={"a": -1, "b": -3}, firsts={"a": -5})]
    found = outlook(rows, {"a": [1, 2], "b": [4]})

    assert Expected(at(-3), NOON) == next(found.coming("x"))
    assert [-3, 4] == hours(found, "x", 2)


def test_of_one_that_has_run_now_the_next_one_is_a_schedules() -> None:
    rows = [follower("x", ["a"], since=-10, lasts={"a": -1}), follower("y", ["x"], since=-10)]
    found = outlook(rows, {"a": [1, 2]})

    assert [-1, 1, 2] == hours(found, "x") == hours(found, "y")
    assert [1, 2] == hours(found, "y", due_after=NOON)


def test_the_run_that_is_planned_already_is_that_of_what_comes_after_it() -> None:
    rows = [follower("x", ["a"], since=-10, planned=-1), follower("y", ["x"], since=-10)]
    found = outlook(rows, {"a": [-1, 1, 2]})

    assert [1, 2] == hours(found, "x")
    assert [-1, 1, 2] == hours(found, "y")


def test_the_bounds_of_a_row_are_also_those_of_what_comes_after_it() -> None:
    rows = [
        *(follower("ends", ["a"], end=2), follower("twice", ["a"], most=2), follower("never", ["a"], most=0)),
        *(follower("late", ["a"], since=-10, lasts={"a": -1}, end=-2), follower("joined", ["a", "b"], end=5, most=1)),
    ]
    found = outlook(
        [*rows, *(follower(f"{row.name}+", [row.name]) for row in rows)], {"a": range(1, 9), "b": [4, 5, 6]}
    )

    for mark in ("", "+"):
        assert [[1, 2], [1, 2], [], [], [4]] == [hours(found, row.name + mark) for row in rows]


def test_it_is_due_when_the_last_of_them_is() -> None:
    (first,) = islice(outlook([follower("x", ["a", "b"])], {"a": [1], "b": [2]}, delay=0.5).coming("x"), 1)

    assert Expected(at(2), at(2.5)) == first


def test_a_row_that_comes_after_itself_never_runs() -> None:
    found = outlook([follower("x", ["y"]), follower("y", ["x"]), follower("z", ["y", "a"])], {"a": [1]})

    assert [[], [], []] == [hours(found, name) for name in ("x", "y", "z")]


def test_a_long_chain_a_wide_one_and_a_net_are_quick() -> None:
    begun = time.monotonic()
    chain = [follower(f"{n}", [f"{n - 1}"] if n else ["a"]) for n in range(LONG)]
    net = [follower(f"net {n}", [f"net {n - 1}", "a"] if n else ["a"]) for n in range(LONG)]
    wide = [follower("wide", [f"{n}" for n in range(100)])]
    found = outlook([*chain, *net, *wide], {"a": range(1, 1000)})

    assert LONG + LONG + 1 == len(found.firsts())
    assert [1, 2, 3] == hours(found, f"{LONG - 1}") == hours(found, f"net {LONG - 1}") == hours(found, "wide")
    assert time.monotonic() - begun < 10


def test_a_search_that_would_take_too_long_ends() -> None:
    def each_second(_name: str, instant: datetime, _due_after: datetime | None) -> Expected:
        return Expected(instant + timedelta(seconds=1), instant + timedelta(seconds=1))

    found = Outlook([follower("x", ["a", "b"])], each_second, NOON)

    assert [] == hours(found, "x", due_after=NOON + timedelta(seconds=2 * MOST_STEPS))


def reference(name: str, rows: Mapping[str, Follower], lists: Mapping[str, Sequence[int]]) -> list[int]:
    """Return all occurrences of a row, computed from the definition and from nothing else."""
    if name in lists:
        return list(lists[name])
    before = [reference(one, rows, lists) for one in rows[name].after]
    found: list[int] = []
    reached = (rows[name].since - NOON) // HOUR
    while all(reached < (line[-1] if line else reached) for line in before):
        reached = max(line[bisect_right(line, reached)] for line in before)
        found.append(reached)
    return found


@given(st.data())
def test_it_is_what_the_definition_says(data: st.DataObject) -> None:
    instants = st.lists(st.integers(0, 40), max_size=12, unique=True).map(sorted)
    lists = {name: data.draw(instants, label=name) for name in "abc"}
    names, rows = list(lists), {}
    for number in range(data.draw(st.integers(1, 6))):
        after = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        rows[f"row {number}"] = follower(f"row {number}", after, since=data.draw(st.integers(0, 10)))
        names.append(f"row {number}")

    found = outlook(list(rows.values()), lists)
    if data.draw(st.booleans()):
        found.firsts()

    for name in data.draw(st.permutations(list(rows))):
        assert reference(name, rows, lists) == hours(found, name, 100), name
