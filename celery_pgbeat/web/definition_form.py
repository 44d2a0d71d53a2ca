"""What the forms of a definition have in common, in the dashboard and in Django's admin.

Which columns they have and in which sections, why there is no form, which values would be replaced unseen, and at which
field an error stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from celery_pgbeat.columns import DECLARED, Column
from celery_pgbeat.errors import DatabaseUnavailable, InvalidSchedule, PgBeatError
from celery_pgbeat.texts.redaction import ARGUMENTS

EDITABLE: Mapping[str, Column] = {name: column for name, column in DECLARED.items() if name != "managed_by"}
NEVER_OF_SENSITIVE = ARGUMENTS | {"sensitive"}  # to untick it would show what it hides
# By field, the column that it replaces in a sensitive row. It shows nothing of the old value; empty, it changes none.
REPLACING: Mapping[str, str] = {f"new_{name}": name for name in ("args", "kwargs")}
REPLACES = "Replaces the hidden {} of this sensitive task; empty: no change."
FIRST = ("name", "task", "schedule", "timezone")  # always in view
CALL = ("args", "kwargs", "options", "sensitive", "queue", "priority", "kind", "target", "due_in")
_REST = [name for name in EDITABLE if name not in (*FIRST, *CALL)]
_TIMES = [name for name in _REST if EDITABLE[name].decides == "times"]
_NOTES = [name for name in _REST if EDITABLE[name].is_free_text]
SECTIONS: Sequence[tuple[str, Sequence[str]]] = (
    ("What is sent", CALL),
    ("When, in detail", _TIMES),
    ("Around a run", [name for name in _REST if name not in (*_TIMES, *_NOTES)]),
    ("Notes", _NOTES),
)
FIRST_WORD = re.compile(r"\w+")  # of an error: errors of a column begin with its name


def is_of_code(managed_by: str) -> bool:
    """Return whether the code of an app declares the rows of this manager."""
    return managed_by.startswith("code:")


def refusal_of(managed_by: str) -> str | None:
    """Return why the definition of a row of this manager is not changed in a form; None if it is."""
    if not is_of_code(managed_by):
        return None
    return (
        f"Code declares this task ({managed_by}): change it there. A change here would be lost as soon as the code "
        "changes it. Pause it here if it must stop now, or take it over."
    )


def replaced_unseen(changes: Iterable[str], row: Any) -> str:
    """Return what to say of a form that was drawn of an older definition.

    Args:
        changes: the columns that it would change.
        row: as it is now.
    """
    named = [
        name if name in ARGUMENTS else f"{name} (now {json.dumps(getattr(row, name), default=str, ensure_ascii=False)})"
        for name in changes
    ]
    what = ", ".join(named) or "nothing"
    return f"Another person has changed this task. Saving again would replace {what}: compare, and save again."


def field_of(error: PgBeatError, sentence: str, fields: Collection[str], blackout: str = "") -> str | None:
    """Return the field that an error names; None if it names none of these.

    Args:
        error: why the change was refused.
        sentence: the error as the user reads it.
        fields: the names of those in the form.
        blackout: the text in the field of the windows, which have errors of the same kind as the schedule.
    """
    if isinstance(error, InvalidSchedule):
        within = "blackout" if error.text and error.text in blackout else "schedule"
        field = "timezone" if error.field == "timezone" else within
    elif isinstance(error, DatabaseUnavailable):
        return None
    else:
        named = FIRST_WORD.match(sentence)
        field = named[0] if named else ""
    return next((name for name in (field, f"new_{field}") if name in fields), None)
