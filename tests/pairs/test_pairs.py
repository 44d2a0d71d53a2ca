"""Two statements at one moment come to what they come to one after the other.

`tests/model` says one statement after the other, in any order; here two overlap. See `checker.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from tests.model.mutants import mutate
from tests.pairs.benign import BENIGN
from tests.pairs.checker import Anomaly, Figures, Meeting
from tests.pairs.differences import KEYS
from tests.pairs.planted import PLANTED
from tests.pairs.selection import ALL, chosen
from tests.pairs.situations import SITUATIONS
from tests.pairs.stage import Stage

OUTCOME = Path(__file__).with_name("outcome.sql")
GUARANTEES = Path(__file__).parents[2] / "docs" / "guarantees.md"
PARTS = 4  # that run beside each other
LONG = pytest.mark.timeout(7200 if ALL else 180)
# Each of these once came to what neither order comes to: the situation, and the two statements.
ONCE_WRONG: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "an unsent job and the next tick are dropped for each other": (
        "late, catchup latest, unsent since long",
        [("submit", "recover"), ("recover", "submit")],
    ),
    "a job that has been sent, and runs nowhere, is asked to end": (
        "due, cancel_other, being sent",
        [("confirm", "submit")],
    ),
    "a job that will be retried is asked to end": ("due, cancel_other, running", [("retry", "submit")]),
    "a job that goes back to the broker is asked to end": ("due, cancel_other, running", [("requeue", "submit")]),
    "a job that is to be sent again is asked to end": ("due, cancel_other, sent in vain", [("judge", "submit")]),
    "a lost job starts beside the next tick": (
        "due, skip, lost, not exclusive",
        [("start_lost", "submit"), ("submit", "start_lost")],
    ),
    "a lost job starts beside one that is triggered": (
        "due, skip, lost, not exclusive",
        [("start_lost", "trigger"), ("trigger", "start_lost")],
    ),
    "a lost job starts beside the next one": (
        "due, skip, lost, not exclusive, the next is sent",
        [("start 2", "start_lost 1")],
    ),
    "a tick is skipped for a job that is judged lost": ("due, skip, running in silence", [("judge", "submit")]),
}
# Each of these comes to what neither order comes to, and is harmless: the situation, and the two statements.
HARMLESS = [
    ("not due, lost", "start_lost", "trigger_many"),
    ("not due, lost", "start_lost", "retry_job"),
    ("group that a failure pauses, has the place", "finish_many", "delete group"),
    ("group that a failure pauses, has the place", "delete group", "finish_many"),
]


def wrong(anomalies: list[Anomaly]) -> list[str]:
    """Return in words what is not known to be harmless."""
    return [str(anomaly) for anomaly in anomalies if not any(kind.covers(anomaly) for kind in BENIGN)]


@pytest.mark.parametrize("what", ONCE_WRONG)
def test_it_no_longer_happens_that(stage: Stage, what: str) -> None:
    situation, pairs = ONCE_WRONG[what]
    meeting, figures = Meeting(stage, situation), Figures()
    found = [meeting.meet(meeting.named(first), meeting.named(second), figures) for first, second in pairs]

    assert [] == wrong([anomaly for anomaly in found if anomaly is not None])


@pytest.mark.parametrize(("situation", "first", "second"), HARMLESS)
def test_what_differs_from_both_orders_is_of_a_kind_that_the_page_explains(
    stage: Stage, situation: str, first: str, second: str
) -> None:
    meeting = Meeting(stage, situation)

    anomaly = meeting.meet(meeting.named(first), meeting.named(second), Figures())

    assert anomaly is not None
    assert [] == wrong([anomaly])


@LONG
@pytest.mark.parametrize("part", range(PARTS))
def test_two_statements_at_one_moment_come_to_what_one_of_their_orders_comes_to(
    stage: Stage, part: int, record_property: Callable[[str, object], None]
) -> None:
    figures, began = Figures(), monotonic()
    for name in list(SITUATIONS)[part::PARTS]:
        meeting = Meeting(stage, name)
        figures.situations += 1
        for first, second in chosen(meeting):
            anomaly = meeting.meet(first, second, figures)
            if anomaly is not None:
                figures.anomalies.append(anomaly)
    unknown = wrong(figures.anomalies)
    benign = len(figures.anomalies) - len(unknown)
    record_property("pairs", f"{figures}, {benign} benign, {len(unknown)} wrong, {monotonic() - began:.0f} s")

    assert figures.pairs > figures.situations
    if unknown:
        pytest.fail("\n".join(unknown), pytrace=False)  # an assertion would show the first lines only


@pytest.mark.parametrize("what", PLANTED)
def test_the_check_finds_that(stage: Stage, what: str) -> None:
    planted = PLANTED[what]
    sound = Meeting(stage, planted.situation)
    pair = [sound.named(planted.first), sound.named(planted.second)]
    assert sound.meet(pair[0], pair[1], Figures()) is None
    raced = Meeting(stage, planted.situation, mutate(planted.mutant, stage.database))

    anomaly = raced.meet(raced.named(planted.first), raced.named(planted.second), Figures())

    assert anomaly is not None
    assert [str(anomaly)] == wrong([anomaly])


def test_the_page_says_what_is_harmless_and_why() -> None:
    _, _, rest = GUARANTEES.read_text(encoding="utf-8").partition("\n## Two statements at one moment\n")
    section, _, _ = rest.partition("\n## ")
    said = [" ".join(item.split()) for item in re.findall(r"^- ((?:.|\n(?!\n|- ))+)", section, re.MULTILINE)]

    assert [kind.because for kind in BENIGN] == said


def test_each_kind_of_line_of_an_outcome_has_its_key() -> None:
    _, _, outcome = OUTCOME.read_text(encoding="utf-8").partition("create function stage.outcome()")

    assert set(KEYS) == set(re.findall(r"^ +select '([^']+)'", outcome, re.MULTILINE))
