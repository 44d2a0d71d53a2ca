"""Times of the shell: in the viewer's zone or in UTC, with how far away they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import click
import pytest
from click.testing import CliRunner

from celery_pgbeat.cli.output.times import duration, from_now, instant, localised, rounded, until_from_now, with_utc

NOW = datetime(2026, 12, 7, 3, tzinfo=timezone.utc)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A viewer in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@click.command()
@with_utc
def shown() -> None:
    """Print two instants, and one in a sentence."""
    for at in (NOW, NOW.replace(month=6)):
        click.echo(instant(at))
    click.echo(localised("paused until 2026-12-07 03:00:00Z (why)"))


@pytest.mark.usefixtures("berlin")
def test_times_are_those_of_the_viewer_and_in_utc_if_asked_for() -> None:
    assert [
        "2026-12-07 04:00:00+01:00",
        "2026-06-07 05:00:00+02:00",
        "paused until 2026-12-07 04:00:00+01:00 (why)",
    ] == CliRunner().invoke(shown).output.splitlines()
    assert [
        "2026-12-07 03:00:00Z",
        "2026-06-07 03:00:00Z",
        "paused until 2026-12-07 03:00:00Z (why)",
    ] == CliRunner().invoke(shown, ["--utc"]).output.splitlines()


@pytest.mark.usefixtures("berlin")
def test_the_last_instant_of_the_calendar_can_be_shown() -> None:
    assert "9999-12-31 23:59:59Z" == instant(datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "now"),
        (45, "in 45 s"),
        (-45, "45 s ago"),
        (270, "in 4 min"),
        (-7_200, "2 h ago"),
        (3 * 86_400, "in 3 d"),
        (5 * 365 * 86_400, "in 5 years"),
    ],
)
def test_a_distance_is_in_its_largest_sensible_unit(seconds: float, words: str) -> None:
    assert words == from_now(NOW + timedelta(seconds=seconds), NOW)


def test_nothing_is_a_dash() -> None:
    assert ["-"] * 4 == [instant(None), from_now(None, NOW), rounded(None), duration(None)]


def test_short_durations_have_hundredths() -> None:
    assert ["0.35 s", "12 s", "2 min"] == [duration(timedelta(seconds=seconds)) for seconds in (0.351, 12.4, 121)]


def test_a_pause_that_ends_says_in_short_how_long_it_lasts() -> None:
    state = "running, paused until 2026-12-10 03:00:00Z"

    assert "running, paused for 3 d more" == until_from_now(state, NOW)
    assert "waiting" == until_from_now("waiting", NOW)
