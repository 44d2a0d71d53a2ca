from __future__ import annotations

from celery_pgbeat.measures.tally import Lateness, Tally


def test_what_was_never_counted_is_zero() -> None:
    tally = Tally()

    tally.count(sent=2, lost=0)
    tally.count(sent=1)

    assert (3, 0, 0) == (tally.counts()["sent"], tally.counts()["lost"], tally.counts()["refused"])


def test_skips_are_counted_by_their_reason() -> None:
    tally = Tally()

    tally.skip({"overlap": 1, "too_late": 40})
    tally.skip({"overlap": 2})

    assert {"overlap": 3, "too_late": 40} == tally.skipped()


def test_a_bucket_holds_what_is_not_later_than_its_bound() -> None:
    lateness = Lateness()

    lateness.add([0.0, 0.01, 0.011, 7200.0])

    buckets = dict(lateness.buckets())
    assert (2, 3, 3, 4) == (buckets["0.01"], buckets["0.025"], buckets["3600.0"], buckets["+Inf"])
    assert 7200.021 == lateness.total


def test_before_the_first_cycle_there_is_no_time_since_it() -> None:
    tally = Tally()

    assert tally.since_cycle() is None
    tally.cycle_ended(broker_up=False)
    assert 0 <= (tally.since_cycle() or 0) < 60
    assert tally.broker_up is False
