"""Copies of the repository, in each of which one defect at a time is planted and the tests are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import cache_from_source
from pathlib import Path
from time import monotonic

from tests.mutants.planted import PACKAGE, ROOT, Planted

LIMIT = 1800.0  # seconds after which the tests of a mutant are ended: one that never ends is found
COPIED = (PACKAGE, "tests", "docs", "examples", "pyproject.toml", "README.md")
PYTEST = ("-x", "-n", "0", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--hypothesis-seed=0")
FOUND_BY = re.compile(r"^(?:FAILED|ERROR) tests/([^\s\[]+)", re.MULTILINE)  # without the parameters


@dataclass(frozen=True, slots=True)
class Run:
    """What came of the tests.

    Attributes:
        found_by: the first test that failed, or why there is none; None if all passed.
        is_sound: whether that test passes without the defect.
    """

    found_by: str | None
    seconds: float
    is_sound: bool = True


class Copy:
    """A copy of the repository. Its tests import the package from the copy, and so does what they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name)
            else:
                shutil.copy(ROOT / name, folder / name)

    def run(self, tests: Sequence[str]) -> Run:
        """Run tests up to the first failure."""
        began = monotonic()
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "pytest", *PYTEST, *(f"tests/{test}" for test in tests)],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(self.folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:  # the servers that it has started end with it
            return Run(f"not within {LIMIT:.0f} s", monotonic() - began)
        found = FOUND_BY.search(ended.stdout)
        if found is not None:
            return Run(found[1], monotonic() - began)
        # 1 without a failed test: pytest has found a socket open as it ended.
        failed = None if ended.returncode in (0, 1) else f"exit code {ended.returncode}"
        return Run(failed, monotonic() - began)

    def run_planted(self, planted: Planted) -> Run:
        """Plant a defect, run its tests, take it out again, and run the test that has failed once more."""
        sources = planted.sources(self.folder)
        originals = {file: file.read_text(encoding="utf-8") for file in sources}
        try:
            self._write(sources)
            run = self.run(planted.tests)
        finally:
            self._write(originals)
        if run.found_by is None or not run.found_by.partition("::")[0].endswith(".py"):
            return run
        return replace(run, is_sound=self.run([run.found_by]).found_by is None)

    def _write(self, sources: Mapping[Path, str]) -> None:
        for file, text in sources.items():
            file.write_text(text, encoding="utf-8")
            # Of two texts of the same second and length the interpreter would take the compiled one of the first.
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
