"""The registry of kinds: an entry is all that the rest of the package needs to know about a kind."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.declare import define
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, gap_below, parse, parse_windows, registry
from celery_pgbeat.schedules.kind import Kind, Parsed
from celery_pgbeat.schedules.registry import KINDS, Kinds
from celery_pgbeat.schedules.source_text import SourceText
from celery_pgbeat.schedules.wallclock.grid import Grid
from celery_pgbeat.settings import Settings

FULL_MOON = datetime(2026, 11, 24, 14, 53, tzinfo=timezone.utc)
MONTH = timedelta(days=29, hours=12, minutes=44)


def read_moon(source: SourceText) -> Parsed:
    if source.body != "full":
        raise source.refuse("phase", f"phase {source.body!r} is not full", source.at)
    return Parsed("moon", "moon: full", source.zone(), Grid(FULL_MOON, MONTH, first=-10_000))


MOON = Kind(
    name="moon",
    example="moon: full",
    prefixes=("moon",),
    read=read_moon,
    describe=lambda text: f"at {text.removeprefix('moon: ')} moon",
    shortest_gap=timedelta(days=29),
)


@pytest.fixture
def moon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", Kinds(*KINDS.all, MOON))


def example_of(kind: Kind) -> Schedule:
    if kind.name == "solar":
        pytest.importorskip("ephem")
    return parse(kind.example)


@pytest.mark.parametrize("kind", KINDS.all, ids=lambda kind: kind.name)
def test_the_example_of_a_kind_is_read_as_that_kind_and_described(kind: Kind) -> None:
    schedule = example_of(kind)

    assert kind.name == schedule.kind
    assert kind is schedule.kind_info
    assert schedule == parse(schedule.text)
    assert schedule.describe()


@pytest.mark.parametrize("kind", KINDS.all, ids=lambda kind: kind.name)
def test_no_schedule_is_faster_than_its_kind_allows(kind: Kind) -> None:
    assert gap_below(example_of(kind), kind.shortest_gap) is None


@pytest.mark.usefixtures("moon")
def test_a_new_kind_needs_nothing_but_an_entry() -> None:
    schedule = parse("moon: full", "Europe/Berlin")

    assert schedule.next(FULL_MOON) == FULL_MOON + MONTH
    assert "at full moon (Europe/Berlin)" == schedule.describe()
    assert gap_below(schedule, timedelta(days=29)) is None
    assert parse_windows("moon: full P1D", "UTC").covers(FULL_MOON + timedelta(hours=3))
    assert "moon: full" == define("tides", "app.probe", "moon: full", {}, Settings()).schedule


@pytest.mark.usefixtures("moon")
@pytest.mark.parametrize(("text", "position"), [("moon: half", 6), (" MOON :half", 7)])
def test_what_a_new_kind_refuses_is_refused_when_a_row_is_declared(text: str, position: int) -> None:
    with pytest.raises(InvalidSchedule, match="phase 'half' is not full") as refused:
        define("tides", "app.probe", text, {}, Settings())

    assert "phase" == refused.value.field
    with pytest.raises(InvalidSchedule) as refused:
        parse(text)
    assert position == refused.value.position


def test_without_its_entry_a_text_is_no_schedule() -> None:
    with pytest.raises(InvalidSchedule, match="not a schedule"):
        parse("moon: new")
