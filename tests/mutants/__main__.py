"""Plant each defect and run the tests that must find it: `python -m tests.mutants [--at-once 2] [subject ...]`.

First these tests must pass without a defect. The exit code is 1 if a mutant survives that is not listed as equivalent,
2 if the tests fail without one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.planted import Planted
from tests.mutants.running import Copy, Run
from tests.mutants.table import SUBJECTS, mutants_of


def run_all(mutants: dict[str, Planted], copies: list[Copy]) -> Iterator[tuple[str, Run]]:
    """Run the tests of each mutant, in each copy one after the other; iterate over the names and what came of them."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run(name: str) -> tuple[str, Run]:
        copy = free.get()
        try:
            return name, copy.run_planted(mutants[name])
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(run, mutants)


def main(subjects: list[str], at_once: int) -> int:
    """Run; return the exit code."""
    mutants = {name: planted for subject in subjects for name, planted in mutants_of(subject).items()}
    with TemporaryDirectory(prefix="pgbeat-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(at_once)]
        tests = sorted({test for planted in mutants.values() for test in planted.tests})
        sound = copies[0].pytest(tests, "-n", str(at_once))
        print(sound.stdout, flush=True)
        if sound.returncode:
            return 2
        survived = 0
        for name, run in run_all(mutants, copies):
            verdict = "found" if run.found_by else "equivalent" if name in EQUIVALENT else "SURVIVED"
            survived += verdict == "SURVIVED"
            print(f"{verdict:10} {run.seconds:6.1f} s  {name}  {run.found_by or ''}", flush=True)
    equivalent = sum(name in EQUIVALENT for name in mutants)
    print(f"{len(mutants)} mutants, {equivalent} of them equivalent: {survived} survive.")
    return 1 if survived else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant defects and run the tests.")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"all by default: {', '.join(SUBJECTS)}")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are tried side by side")
    given = parser.parse_args()
    if unknown := set(given.subjects) - set(SUBJECTS):
        parser.error(f"there is no subject {', '.join(sorted(unknown))}")
    sys.exit(main(given.subjects or list(SUBJECTS), given.at_once))
