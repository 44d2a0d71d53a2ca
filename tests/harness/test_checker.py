"""The rules find nothing in what is right, and exactly the fault in what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.checker import doubled, early, grid, lateness, lost, overlapping
from tests.harness.probe import Run

FIRST = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
DUE = grid("tick", FIRST, 10 * SECOND, FIRST + 90 * SECOND)


def perfect() -> list[Run]:
    """Ten runs of one task, each 0.1 to 1 s late and 5 s long."""
    return [
        Run(
            job=f"job-{number}",
            label="tick",
            periodic_task="tick",
            scheduled_for=instant,
            started_at=instant + (number + 1) * SECOND / 10,
            finished_at=instant + (number + 1) * SECOND / 10 + 5 * SECOND,
        )
        for number, (_, instant) in enumerate(DUE)
    ]


def test_a_grid_includes_both_ends() -> None:
    assert len(DUE) == 10
    assert DUE[0] == ("tick", FIRST)
    assert DUE[-1] == ("tick", FIRST + 90 * SECOND)
    assert grid("tick", FIRST, 10 * SECOND, FIRST + 99 * SECOND) == DUE


def test_no_fault_is_found_in_a_history_without_faults() -> None:
    assert lost(DUE, perfect()) == []
    assert doubled(perfect()) == []
    assert early(perfect()) == []
    assert overlapping(perfect()) == []


def test_one_run_taken_away_is_lost() -> None:
    runs = perfect()
    del runs[3]
    assert lost(DUE, runs) == [DUE[3]]


def test_a_run_of_another_task_at_the_same_instant_is_no_substitute() -> None:
    runs = perfect()
    runs[3] = replace(runs[3], periodic_task="other")
    assert lost(DUE, runs) == [DUE[3]]


def test_one_run_repeated_under_another_job_is_doubled() -> None:
    runs = perfect()
    assert doubled([*runs, replace(runs[4], job="another")]) == [DUE[4]]


def test_one_job_started_twice_is_doubled() -> None:
    runs = perfect()
    assert doubled([*runs, runs[4]]) == [DUE[4]]


def test_a_job_outside_any_schedule_that_started_twice_is_doubled() -> None:
    manual = Run(job="manual", label="x", started_at=FIRST)
    again = replace(manual, started_at=FIRST + SECOND)
    assert doubled([manual]) == []
    assert doubled([manual, again]) == [("", FIRST + SECOND)]


def test_two_jobs_outside_any_schedule_are_not_doubled() -> None:
    assert doubled([Run(job="a", label="x", started_at=FIRST), Run(job="b", label="x", started_at=FIRST)]) == []


def test_a_retry_is_not_doubled_but_the_same_retry_twice_is() -> None:
    runs = perfect()
    retry = replace(runs[4], attempt=1, started_at=runs[4].started_at + 6 * SECOND)
    assert doubled([*runs, retry]) == []
    assert doubled([*runs, retry, retry]) == [DUE[4]]


def test_a_run_before_its_instant_is_early() -> None:
    runs = perfect()
    runs[5] = replace(runs[5], started_at=DUE[5][1] - timedelta(microseconds=1))
    assert early(runs) == [runs[5]]


def test_a_run_that_starts_before_the_last_one_ends_overlaps() -> None:
    runs = perfect()
    runs[6] = replace(runs[6], finished_at=runs[7].started_at + SECOND)
    assert overlapping(runs) == [(runs[6], runs[7])]


def test_a_long_run_overlaps_more_than_its_neighbour() -> None:
    runs = perfect()
    runs[6] = replace(runs[6], finished_at=runs[8].started_at + SECOND)
    assert overlapping(runs) == [(runs[6], runs[7]), (runs[6], runs[8])]


def test_runs_of_different_tasks_do_not_overlap() -> None:
    runs = perfect()
    other = replace(runs[6], periodic_task="other")
    assert overlapping([*runs, other]) == []


def test_a_run_without_an_end_overlaps_what_follows_until_it_is_known_when_it_was_killed() -> None:
    runs = perfect()
    runs[8] = replace(runs[8], finished_at=None)
    assert overlapping(runs) == [(runs[8], runs[9])]
    assert overlapping(runs, killed={"job-8": runs[8].started_at + SECOND}) == []
    assert overlapping(runs, killed={"job-8": runs[9].started_at + SECOND}) == [(runs[8], runs[9])]


def test_lateness_is_given_by_nearest_rank() -> None:
    assert lateness(perfect(), (10, 50, 90, 100)) == {
        10: SECOND / 10,
        50: SECOND / 2,
        90: 9 * SECOND / 10,
        100: SECOND,
    }


def test_lateness_of_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="no run"):
        lateness([])
