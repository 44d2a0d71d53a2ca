"""A planted defect, and the tests that must find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.model.mutants import Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = "celery_pgbeat"


@dataclass(frozen=True, slots=True)
class Planted:
    """A mutant of files of the package: `mutant.where` are their paths within it.

    Attributes:
        tests: files or folders within `tests`; that which finds it soonest is the first one.
    """

    mutant: Mutant
    tests: tuple[str, ...]

    def sources(self, root: Path = ROOT) -> dict[Path, str]:
        """Return the files that it changes, with their texts after that."""
        files = [root / PACKAGE / file for file in self.mutant.where]
        return {file: self.mutant.of(file.read_text(encoding="utf-8")) for file in files}
