"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING, NOTE = "error", "warning", "note"  # wrong now; may go wrong; worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: its severity, what it is, and how to fix it; a sentence each."""

    severity: str
    what: str
    mend: str
