"""What a check may find."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING, NOTE = "error", "warning", "note"  # works wrongly now; may go wrong; worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: how bad it is, what it is, and how to mend it; a sentence each."""

    severity: str
    what: str
    mend: str
