"""What two statements at one moment may come to though neither order of them does, because it harms nothing.

`docs/guarantees.md` says the same, and a test compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.pairs.checker import Anomaly


@dataclass(frozen=True, slots=True)
class Benign:
    """One kind of outcome.

    Attributes:
        first: verbs of the statement that comes first and commits last.
        second: verbs of the one beside it.
        differences: what each line of the difference to one of the orders looks like.
        because: why it harms nothing; a sentence of the page.
    """

    first: frozenset[str]
    second: frozenset[str]
    differences: tuple[str, ...]
    because: str

    def covers(self, anomaly: Anomaly) -> bool:
        """Return whether an anomaly is of this kind."""
        return (
            anomaly.first.verb in self.first
            and anomaly.second.verb in self.second
            and any(self._is_all_of(difference) for difference in anomaly.differences)
        )

    def _is_all_of(self, difference: tuple[str, ...]) -> bool:
        return all(any(re.fullmatch(pattern, line) for pattern in self.differences) for line in difference)


BENIGN: tuple[Benign, ...] = ()
