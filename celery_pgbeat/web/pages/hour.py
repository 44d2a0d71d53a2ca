"""The last hour as charts: how many jobs, how long they waited for their start, how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from celery_pgbeat.web.charts import Bar, bars
from celery_pgbeat.web.words import duration, in_full

MINUTE = timedelta(minutes=1)
MINUTES, SAMPLE = 60, 300  # of a chart, and the jobs that are read of each minute
Row = Mapping[str, Any]


class Chart(NamedTuple):
    """One chart.

    Attributes:
        name: what it shows.
        latest: its latest figure.
        drawing: the SVG.
    """

    name: str
    latest: str
    drawing: Markup


def charts_of(minutes: Sequence[Row]) -> Sequence[Chart]:
    """Return the charts of these minutes; none if there are no minutes."""
    return [_rate(minutes), _waits(minutes), _ends(minutes)] if minutes else []


def _rate(minutes: Sequence[Row]) -> Chart:
    rates = [minute["made"] * (MINUTE / minute["covered"]) for minute in minutes]
    drawn = [
        Bar(rate, f"{_begin(minute)}: {rate:,.0f} jobs", "run") for rate, minute in zip(rates, minutes, strict=True)
    ]
    most = max(range(len(rates)), key=rates.__getitem__)
    finding = (
        f"Jobs a minute in the last hour: {rates[-1]:,.0f} in the last minute, at most {rates[most]:,.0f} "
        f"at {_begin(minutes[most])}"
    )
    return Chart("Jobs a minute", f"{rates[-1]:,.0f}", bars(drawn, finding))


def _waits(minutes: Sequence[Row]) -> Chart:
    worst = [minute["wait_worst"] for minute in minutes]
    drawn = [
        Bar(
            None if wait is None else wait.total_seconds(),
            f"{_begin(minute)}: 95 % within {duration(wait)}",
            "ok",
        )
        for wait, minute in zip(worst, minutes, strict=True)
    ]
    known = [wait for wait in worst if wait is not None]
    latest = duration(known[-1]) if known else "–"
    finding = (
        f"From the decision to the start, 95 % of the jobs: {latest} at last, at most {duration(max(known))} in the "
        "hour"
        if known
        else "No job started in the last hour"
    )
    return Chart("Decision to start, 95 %", latest, bars(drawn, finding))


def _ends(minutes: Sequence[Row]) -> Chart:
    scaled = [(minute, MINUTE / minute["covered"]) for minute in minutes]
    failed = [minute["failed"] * scale for minute, scale in scaled]
    skipped = [minute["skipped"] * scale for minute, scale in scaled]
    drawn = [
        Bar(
            bad + left,
            f"{_begin(minute)}: {bad:,.0f} failed, {left:,.0f} skipped",
            "late",
            bad / (bad + left or 1),
        )
        for bad, left, minute in zip(failed, skipped, minutes, strict=True)
    ]
    finding = f"{sum(failed):,.0f} failed and {sum(skipped):,.0f} skipped in the last hour"
    return Chart("Failed, skipped", f"{sum(failed):,.0f}, {sum(skipped):,.0f}", bars(drawn, finding))


def _begin(minute: Row) -> str:
    return in_full(minute["minute"])
