"""The table of faults in docs/proof.md names tests that exist, and contains every test under tests/faults."""

from __future__ import annotations

import re

from tests.docs.pages import NAMED, ROOT, written_in

PAGE = ROOT / "docs" / "proof.md"
LINE = re.compile(r"^\| (.+) \| (.*) \|$", re.MULTILINE)


def table() -> dict[str, list[tuple[str, str]]]:
    """Return the tests, as file and name, that stand beside each fault; beside a heading stand none."""
    faults, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## Limits\n")  # tests/docs/test_limits.py reads those
    found = LINE.findall(faults)
    lines = [(fault, tests) for fault, tests in found if fault not in ("fault", "---")]
    return {fault: NAMED.findall(tests) for fault, tests in lines if not fault.startswith("*")}


def test_every_fault_of_the_table_has_a_test_that_exists() -> None:
    assert len(table()) > 40
    assert [] == [fault for fault, tests in table().items() if not tests]
    named = [test for tests in table().values() for test in tests]
    assert [] == [f"{file}::{name}" for file, name in named if name not in written_in(ROOT / file)]


def test_every_test_under_faults_is_in_the_table() -> None:
    named = {test for tests in table().values() for test in tests}
    written = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
        for name in written_in(path)
    }

    assert [] == sorted(written - named)
