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
            and any(difference and self._is_all_of(difference) for difference in anomaly.differences)
        )

    def _is_all_of(self, difference: tuple[str, ...]) -> bool:
        return all(any(re.fullmatch(pattern, line) for pattern in self.differences) for line in difference)


SUBMITS = frozenset({"submit", "submit, not judging"})
BENIGN = (
    Benign(
        SUBMITS,
        frozenset({"clear_dead_beats"}),
        (r"active_job\.marked_at: None -> .+", r"active_job\.marked_by: None -> .+"),
        "A beat dies while its submit is being executed: the beat that frees what it left does not see the job of "
        "that submit. The job is sent when the lease is over.",
    ),
    Benign(
        frozenset({"rename", "start_lost"}),
        frozenset({"rename", "start_lost"}),
        (r"active_job\.exclusive: (False -> True|True -> False)", r"periodic_task_state\.row_created_at: None -> .+"),
        "A row is renamed while a lost job of it starts late: the start may read the row under its old or its new "
        "name. That decides whether the job, and the time of its start, block a new row under the old name.",
    ),
    Benign(
        frozenset({"start_lost"}),
        frozenset({"trigger_many", "retry_job"}),
        (r"answer of the second: (yes|55000) -> 55006",),
        "A lost job starts late while a person triggers its row among others, or has that job run again: the whole "
        "statement of the person is refused with 55006, and has changed nothing.",
    ),
    Benign(
        frozenset({"finish_many", "give_up_start", "delete group"}),
        frozenset({"finish_many", "give_up_start", "delete group"}),
        (r"\+ group_failure",),
        "A group is deleted while a job of it fails: the failure stays until a beat looks, within a second. A group "
        "that is made under the same name before then, and pauses when a job fails, is paused.",
    ),
)
