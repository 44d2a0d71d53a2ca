"""An account passes only where nothing is wrong, and its controls never do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from tests.harness.account import Account, Limits, controls, prove
from tests.harness.checker import grid
from tests.harness.probe import Run

FIRST = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
DUE = grid("tick", FIRST, SECOND, FIRST + 99 * SECOND)


def seen(late: timedelta = SECOND / 10) -> list[Run]:
    return [
        Run(job=f"job-{number}", label="tick", periodic_task="tick", scheduled_for=instant, started_at=instant + late)
        for number, (_, instant) in enumerate(DUE)
    ]


def perfect() -> Account:
    return Account(DUE, seen(), seen(SECOND))


def faults(account: Account, limits: Limits = Limits()) -> str:  # noqa: B008  frozen
    with pytest.raises(AssertionError) as found:
        limits.judge(account)
    return str(found.value)


def test_an_account_without_faults_passes_and_is_shown_in_one_line() -> None:
    prove(perfect(), Limits(late={99: 0.1}))
    shown = "due 100  lost 0  recorded 0  doubled sends 0  double starts 0  late p50 0.100 p99 0.100 max 0.100 s"
    assert shown == str(perfect())


def test_a_message_that_never_came_is_lost() -> None:
    assert "1 lost, at most 0 may be: [('tick'" in faults(replace(perfect(), sent=seen()[1:]))


def test_a_run_that_never_started_is_lost_though_its_message_came() -> None:
    assert "1 lost" in faults(replace(perfect(), started=seen()[:-1]))


def test_a_recorded_occurrence_is_not_lost() -> None:
    Limits().judge(Account(DUE, seen()[1:], seen()[1:], recorded=DUE[:1]))


def test_an_occurrence_that_is_recorded_twice_was_decided_twice() -> None:
    assert "1 recorded more than once" in faults(replace(perfect(), recorded=[DUE[0], DUE[1], DUE[0]]))


def test_a_message_that_came_twice_is_a_double_send_and_no_double_start() -> None:
    account = replace(perfect(), sent=[*seen(), seen()[3]])
    assert "1 sent more than once" in faults(account)
    assert [] == account.doubled_starts


def test_double_sends_are_allowed_up_to_a_share_or_a_number() -> None:
    account = replace(perfect(), sent=[*seen(), *seen()[:2]])
    Limits(doubled_sends=0.02).judge(account)
    Limits(forgiven=2).judge(account)
    assert "2 sent more than once, at most 1 may be" in faults(account, Limits(doubled_sends=0.01))


def test_a_run_that_started_twice_is_never_allowed() -> None:
    account = replace(perfect(), started=[*seen(), seen()[3]])
    assert "1 started more than once" in faults(account, Limits(doubled_sends=1, forgiven=100))


def test_a_message_before_its_instant_is_early() -> None:
    assert "100 early" in faults(replace(perfect(), sent=seen(-SECOND)))


def test_lateness_is_that_of_the_first_of_two_messages() -> None:
    account = replace(perfect(), sent=[*seen(), replace(seen()[3], started_at=FIRST + 60 * SECOND)])
    assert SECOND / 10 == account.late(100)


def test_a_round_in_which_nothing_was_due_proves_nothing() -> None:
    assert "nothing was due" in faults(Account([], seen()))


def test_each_control_has_its_fault_and_none_passes() -> None:
    limits = Limits(doubled_sends=0.05)
    made = controls(perfect(), limits)
    assert [1, 0, 0] == [len(control.lost) for control in made.values()]
    assert [0, 6, 0] == [len(control.doubled_sends) for control in made.values()]
    assert [0, 0, 1] == [len(control.doubled_starts) for control in made.values()]
    for control in made.values():
        faults(control, limits)


def test_limits_that_allow_everything_fail_the_controls() -> None:
    with pytest.raises(AssertionError, match="proves nothing: sends doubled"):
        prove(perfect(), Limits(doubled_sends=1))
