"""What a run has found: figures with their medians and spread, as a table for people and as JSON for the report."""

from __future__ import annotations

import json
import os
import statistics
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks import machine

HEADS = ("what", "median", "least", "most", "of", "unit", "beside")


@dataclass
class Figure:
    """One figure, measured several times.

    Attributes:
        ratios: how many times as large its median is as that of other figures of the same run, by their names.
    """

    what: str
    unit: str
    values: list[float]
    ratios: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    def beside(self, name: str, other: Figure) -> Figure:
        """Note the ratio to another figure; nothing is noted beside one that is 0."""
        if other.median:
            self.ratios[name] = self.median / other.median
        return self

    def cells(self) -> tuple[str, ...]:
        """Return its line of a table."""
        compared = ", ".join(f"{written(ratio)} x {name}" for name, ratio in self.ratios.items())
        least, most = min(self.values), max(self.values)
        spread = map(written, (self.median, least, most))
        return (self.what, *spread, str(len(self.values)), self.unit, compared)


@dataclass
class Run:
    """What one call of the door has found, and where."""

    measure: str
    at: str
    options: Mapping[str, Any]
    machine: Mapping[str, str]
    figures: list[Figure]

    @classmethod
    def of(cls, measure: str, options: Mapping[str, Any], figures: Sequence[Figure]) -> Run:
        """Note the figures together with the time and the machine."""
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return cls(measure, at, options, machine.described(), list(figures))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least of the values that so large a share of them (0 to 1) does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def written(value: float) -> str:
    """Write a number with three digits that count, or with all in front of the point."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def shown(run: Run) -> str:
    """Return the figures as a table for a terminal."""
    lines = [HEADS, *(figure.cells() for figure in run.figures)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ("<", ">", ">", ">", ">", "<", "<")
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, aligned, widths, strict=True)).rstrip()
        for line in lines
    )


def appendable(text: str) -> Path:
    """Return the path of a file that a run can be added to, before the run is measured.

    Raises:
        ArgumentTypeError: it is another file, or cannot be written.
    """
    path = Path(text)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"{text!r} cannot be written")
    return readable(text) if path.exists() else path


def readable(text: str) -> Path:
    """Return the path of a file with runs.

    Raises:
        ArgumentTypeError: it is another file, or cannot be read.
    """
    path = Path(text)
    try:
        if not path.is_file():
            raise ArgumentTypeError(f"{text!r} is no file")
        read(path)
    except OSError as error:
        raise ArgumentTypeError(f"{text!r} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise ArgumentTypeError(
            f"{text!r} has no results of measures: name a new file, or one that --out has written"
        ) from None
    return path


def append(path: Path, run: Run) -> None:
    """Add a run to those in the file."""
    found = [*read(path), run] if path.exists() else [run]
    path.write_text(json.dumps([asdict(one) for one in found], indent=1, default=str) + "\n")


def read(path: Path) -> list[Run]:
    """Read all runs of a file, oldest first."""
    return [
        Run(**{**one, "figures": [Figure(**figure) for figure in one["figures"]]})
        for one in json.loads(path.read_text())
    ]
