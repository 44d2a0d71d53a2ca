"""What becomes of the occurrences that nobody decided in time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from celery_pgbeat.planning import Decision, Skipped
from tests.unit.planning.rows import at, decide, due


def decided_by_all(**columns: object) -> list[Decision]:
    """Decide at 12:02 about a row that was last decided at 06:00, until nothing is due any more."""
    next_run_at, last, decisions = at("06:05"), at("06:00"), []
    while next_run_at <= at("12:02"):
        decision = decide(due(at("12:02"), next_run_at, last_run_at=last, catchup="all", **columns))
        decisions.append(decision)
        assert decision.next_run_at is not None
        next_run_at, last = decision.next_run_at, decision.decided_until
    return decisions


def test_all_of_them_go_out_in_their_order_and_then_the_next_one() -> None:
    """S-7: down from 06:00 to 12:02, every five minutes."""
    decisions = decided_by_all()

    assert [at("06:05") + timedelta(minutes=5 * n) for n in range(72)] == [one.scheduled_for for one in decisions]
    assert {"catchup"} == {one.origin for one in decisions}
    assert [None] * 72 == [one.skipped for one in decisions]
    assert at("12:05") == decisions[-1].next_run_at


def test_of_all_only_the_newest_go_out_where_there_is_a_limit() -> None:
    decisions = decided_by_all(catchup_limit=10)

    first = decisions[0]
    assert first.scheduled_for is None
    assert Skipped(at("06:05"), at("11:10"), 62, "too_late") == first.skipped
    assert [at("11:15") + timedelta(minutes=5 * n) for n in range(10)] == [one.scheduled_for for one in decisions[1:]]
    assert [None] * 10 == [one.skipped for one in decisions[1:]]


def test_of_all_only_those_within_the_window_go_out() -> None:
    decisions = decided_by_all(catchup_window=timedelta(hours=1))

    assert decisions[0].skipped is not None
    assert 60 == decisions[0].skipped.count
    assert [at("11:05") + timedelta(minutes=5 * n) for n in range(12)] == [one.scheduled_for for one in decisions[1:]]


def test_a_run_that_sql_set_before_the_row_was_defined_does_not_widen_the_limit() -> None:
    """Of what was missed since the definition the newest go out; what was set is recorded with the rest."""
    row = due(
        at("12:02"),
        at("11:00", 6),
        planned_for=None,
        planned_from=at("09:00"),
        catchup="all",
        catchup_limit=10,
    )

    passed, following = decide(row), at("11:15")

    assert passed.skipped is not None
    assert (None, following) == (passed.scheduled_for, passed.planned_for)
    assert (at("11:00", 6), 27) == (passed.skipped.first, passed.skipped.count)


def test_occurrences_that_a_window_delayed_are_one_run_however_late_it_is_decided() -> None:
    row = due(
        at("05:05"),
        at("05:00"),
        schedule="*/10 * * * *",
        planned_for=at("00:00"),
        catchup="all",
        blackout=["0 0 * * * PT5H"],
    )

    decision = decide(row)

    assert (at("05:00"), "catchup", at("05:10")) == (decision.scheduled_for, decision.origin, decision.next_run_at)
    assert Skipped(at("00:00"), at("04:50"), 30, "blackout") == decision.skipped


def test_without_a_limit_all_means_the_newest_thousand() -> None:
    row = due(
        at("12:00"),
        datetime(2016, 12, 7, tzinfo=timezone.utc),
        schedule="every 1m",
        anchor=datetime(2016, 1, 1, tzinfo=timezone.utc),
        planned_from=datetime(2016, 1, 1, tzinfo=timezone.utc),
        catchup="all",
    )

    decision = decide(row)

    # What is less than 32 s late is on time and none of these.
    assert at("11:59") - timedelta(minutes=999) == decision.planned_for
    assert decision.skipped is not None
    assert decision.skipped.count > 5_000_000


def test_too_late_for_the_window_nothing_goes_out_and_one_record_has_the_count() -> None:
    """S-8."""
    minute = timedelta(minutes=1)
    for catchup in ("latest", "earliest", "all"):
        decision = decide(
            due(at("12:02"), at("06:05"), catchup=catchup, catchup_window=minute, last_run_at=at("06:00"))
        )

        assert (None, at("12:05")) == (decision.scheduled_for, decision.next_run_at)
        assert decision.skipped is not None
        assert (72, "too_late") == (decision.skipped.count, decision.skipped.reason)
