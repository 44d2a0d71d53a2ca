"""One line of figures for each fault test, shown at the end of the run, whether it passed or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness.account import Account, Limits, prove

LINE = "faults"

Proof = Callable[[Account, Limits], None]


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Add something to the test's line."""
    return lambda text: record_property(LINE, text)


@pytest.fixture
def proven(note: Callable[[str], None]) -> Proof:
    """Put an account into the test's line, then judge it, and its controls."""

    def prove_and_report(account: Account, limits: Limits) -> None:
        note(str(account))
        prove(account, limits)

    return prove_and_report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    reported = [(report, [text for name, text in report.user_properties if name == LINE]) for report in reports]
    if any(lines for _, lines in reported):
        terminalreporter.section("faults")
    for report, lines in reported:
        if lines and report.when == "call":
            name = report.nodeid.rpartition("::")[2].removeprefix("test_")
            terminalreporter.write_line(f"{report.outcome:6}  {name}: {'; '.join(lines)}")
