"""Plant each defect and run the tests that must find it: `python -m tests.mutants [--at-once 2] [subject ...]`.

A test that has found a defect must pass without it. The exit code is 1 if a mutant survives that is not listed as
equivalent, 2 if a test fails without a defect.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.planted import Planted
from tests.mutants.running import Copy, Run
from tests.mutants.table import SUBJECTS, mutants_of

FOUND, SURVIVED, EQUIVALENT_ONE, UNSOUND = "found", "SURVIVED", "equivalent", "UNSOUND"


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
    verdicts: Counter[str] = Counter()
    with TemporaryDirectory(prefix="pgbeat-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(at_once)]
        for name, run in run_all(mutants, copies):
            verdict = verdict_of(name, run)
            verdicts[verdict] += 1
            print(f"{verdict:10} {run.seconds:6.1f} s  {name}  {run.found_by or ''}", flush=True)
    print(f"{len(mutants)} mutants: {', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items()))}")
    return 2 if verdicts[UNSOUND] else 1 if verdicts[SURVIVED] else 0


def verdict_of(name: str, run: Run) -> str:
    """Return what came of a mutant, in one word."""
    if run.found_by is None:
        return EQUIVALENT_ONE if name in EQUIVALENT else SURVIVED
    return FOUND if run.is_sound else UNSOUND


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant defects and run the tests.")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"all by default: {', '.join(SUBJECTS)}")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are tried side by side")
    given = parser.parse_args()
    if unknown := set(given.subjects) - set(SUBJECTS):
        parser.error(f"there is no subject {', '.join(sorted(unknown))}")
    sys.exit(main(given.subjects or list(SUBJECTS), given.at_once))
