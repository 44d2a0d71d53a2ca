"""One line of figures for each part of the check, shown at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.pairs.stage import Stage

LINE = "pairs"


@pytest.fixture
def stage(migrated_database: str) -> Iterator[Stage]:
    """Two connections to a database of this test's own."""
    with closing(Stage(migrated_database)) as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    lines = [
        f"{report.outcome:6}  {text}"
        for report in reports
        if report.when == "call"
        for name, text in report.user_properties
        if name == LINE
    ]
    if lines:
        terminalreporter.section("two statements at one moment")
    for line in sorted(lines):
        terminalreporter.write_line(line)
