"""Plant each defect and run the tests that must find it: `python -m tests.mutants [--at-once 2] [subject ...]`.

First these tests must pass in a copy without a defect. The exit code is 1 if a mutant survives that is not listed as
equivalent, 2 if the tests fail without one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TypeVar

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.running import Copy, Run
from tests.mutants.table import SUBJECTS, mutants_of

What = TypeVar("What")


def in_copies(
    copies: SimpleQueue[Copy], at_once: int, things: Iterable[What], run: Callable[[Copy, What], Run]
) -> Iterator[tuple[What, Run]]:
    """Run each in a copy of its own, several at once; iterate over the results in this order."""

    def in_one(thing: What) -> tuple[What, Run]:
        copy = copies.get()
        try:
            return thing, run(copy, thing)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(in_one, things)


def main(subjects: list[str], at_once: int) -> int:
    """Run; return the exit code."""
    mutants = {name: planted for subject in subjects for name, planted in mutants_of(subject).items()}
    files = sorted({test for planted in mutants.values() for test in planted.tests})
    with TemporaryDirectory(prefix="pgbeat-mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(at_once):
            copies.put(Copy(Path(folder) / str(number)))
        failed = 0
        for file, run in in_copies(copies, at_once, files, lambda copy, file: copy.run([file])):
            failed += run.found_by is not None
            print(f"{'FAILS' if run.found_by else 'passes':8} {run.seconds:6.1f} s  {run.found_by or file}", flush=True)
        if failed:
            print(f"{failed} of {len(files)} files fail without a mutant.")
            return 2
        survived = 0
        for (name, _), run in in_copies(copies, at_once, mutants.items(), lambda copy, one: copy.run_planted(one[1])):
            verdict = "found" if run.found_by else "equal" if name in EQUIVALENT else "SURVIVED"
            survived += verdict == "SURVIVED"
            print(
                f"{verdict:8} {run.seconds:6.1f} s  {name}{f'  ({run.found_by})' if run.found_by else ''}", flush=True
            )
    equal = sum(name in EQUIVALENT for name in mutants)
    print(f"{len(mutants)} mutants, {equal} of them equivalent: {survived} survive.")
    return 1 if survived else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant defects and run the tests.")
    parser.add_argument("subjects", nargs="*", choices=[*SUBJECTS, []], help=f"all by default: {', '.join(SUBJECTS)}")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are tried side by side")
    given = parser.parse_args()
    sys.exit(main(given.subjects or list(SUBJECTS), given.at_once))
