"""The shape of what each command prints with `--json`: every key, and what kind of value it has.

A shape is a type, a tuple of types, a list with the shape of its elements, a dict with exactly these keys,
`each(shape)` for a dict whose keys are free, `maybe(shape)` for null, or a test of a text.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from celery_pgbeat.api import Backfill, BackfillPreview, GraphNode, Job, PeriodicTask, Work
from celery_pgbeat.api.groups import GroupStatus, TaskGroup

NUMBER = (int, float)


class maybe(NamedTuple):
    """Null, or of this shape."""

    shape: Any


class each(NamedTuple):
    """A dict with any keys, and values of this shape."""

    shape: Any


def instant(value: Any) -> bool:
    """Tell whether it is an instant in UTC, in ISO 8601."""
    return isinstance(value, str) and datetime.fromisoformat(value).utcoffset() == timedelta(0)


def uuid(value: Any) -> bool:
    """Tell whether it is an id."""
    return isinstance(value, str) and str(UUID(value)) == value


def fault(shape: Any, value: Any, where: str = "$") -> str | None:
    """Say what is not as the shape has it; None if all is."""
    if isinstance(shape, maybe):
        return None if value is None else fault(shape.shape, value, where)
    if isinstance(shape, each):
        shape = dict.fromkeys(value, shape.shape) if isinstance(value, dict) else {}
    if isinstance(shape, dict):
        if not isinstance(value, dict) or shape.keys() != value.keys():
            return f"{where} has {value!r}, not the keys {sorted(shape)}"
        found = [fault(shape[key], value[key], f"{where}.{key}") for key in shape]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is {value!r}, not a list"
        found = [fault(shape[0], element, f"{where}[{at}]") for at, element in enumerate(value)]
    elif isinstance(shape, (type, tuple)):
        fits = isinstance(value, shape) and (not isinstance(value, bool) or shape is bool)
        return None if fits else f"{where} is {value!r}, not {shape}"
    else:
        return None if shape(value) else f"{where} is {value!r}, not a {shape.__name__}"
    return next((one for one in found if one is not None), None)


def _of_columns(row: type) -> dict[str, Any]:
    """Return the shape of a row: as the Python door types its columns."""
    kinds: dict[Any, Any] = {datetime: instant, timedelta: NUMBER, UUID: uuid}
    shape: dict[str, Any] = {}
    hints = get_type_hints(row)
    for field in fields(row):
        hint = str if get_origin(hints[field.name]) is Literal else hints[field.name]
        options = (
            [kind for kind in get_args(hint) if isinstance(kind, type)] if type(None) in get_args(hint) else [hint]
        )
        plain = [getattr(kind, "__origin__", kind) for kind in options] or [list]
        kind = next((kind for kind in plain if kind is not type(None)), list)
        one = [str] if field.name in ("blackout", "target") else kinds.get(kind, kind)
        shape[field.name] = maybe(one) if type(None) in get_args(hint) else one
    return shape


PERIODIC_TASK = _of_columns(PeriodicTask)
STATUS = {
    "state": str,
    "last_state": maybe(str),
    "last_scheduled_for": maybe(instant),
    "lateness": maybe(NUMBER),
    "failures": int,
}
JOB = {**_of_columns(Job), "lateness": maybe(NUMBER), "duration": maybe(NUMBER)}
BACKFILL = _of_columns(Backfill)
GROUP = _of_columns(TaskGroup)
GRAPH_NODE = {**_of_columns(GraphNode), "after": maybe([str])}
CHANGES = each({"from": (str, int, float, list, dict, type(None)), "to": (str, int, float, list, dict, type(None))})
MOVED = {"name": str, "before": maybe(instant), "after": maybe(instant)}
CHANGE = {
    "id": int,
    "at": instant,
    "who": str,
    "role": str,
    "kind": str,
    "name": str,
    "action": str,
    "revision": maybe(int),
    "columns": [str],
    "before": dict,
    "after": dict,
    "job": maybe(uuid),
    "backfill": maybe(uuid),
    "reason": maybe(str),
}
CHECK = {"ok": maybe(bool), "detail": str}
NODE = {
    "id": str,
    "role": str,
    "hostname": str,
    "pid": int,
    "version": str,
    "started_at": instant,
    "last_seen_at": instant,
    "tracking": bool,
    "mode": maybe(str),
    "alive": bool,
    "jobs": int,
    "silent_for": NUMBER,
}
FINDING = {"check": str, "severity": str, "what": str, "mend": str}
OVERDUE = {"name": str, "due_at": instant}
RUNNING = {
    "id": uuid,
    "periodic_task": str,
    "worker": maybe(str),
    "started_at": maybe(instant),
    "attempt": int,
    "busy_until": instant,
}
PROBLEM = {"name": str, "problem": str}

SHAPES: dict[str, Any] = {
    "migrate": {"schema": str, "version": int, "applied": int},
    "sql": [{"name": str, "sql": str}],
    "list": [{**PERIODIC_TASK, **STATUS}],
    "show": {**PERIODIC_TASK, **STATUS, "description": maybe(str), "last_job": maybe(JOB)},
    "upcoming": [{"name": str, "next_run_at": instant, "planned_for": maybe(instant), "after": maybe([str])}],
    "graph": [GRAPH_NODE],
    "jobs": [JOB],
    "job": {**JOB, "arguments": maybe({"args": maybe(list), "kwargs": maybe(dict), "sensitive": bool})},
    "work": [{**_of_columns(Work), "args": maybe(list), "kwargs": maybe(dict)}],
    "overdue": [{"name": str, "code": str, "due_at": instant, "late_by": NUMBER, "reason": str}],
    "add": {
        "done": str,
        "changes": CHANGES,
        "row": PERIODIC_TASK,
        "timezone": maybe(str),
        "next_run_at": maybe(instant),
    },
    "changes": [CHANGE],
    "revert": {"name": str, "applied": bool, "changes": CHANGES},
    "edit": {"name": str, "applied": bool, "changes": CHANGES},
    "remove": {"removed": [str]},
    "pause": PERIODIC_TASK,
    "resume": PERIODIC_TASK,
    "replan": {"replanned": [str], "moved": [MOVED], "still_to_be_planned": int},
    "explain": {"name": str, "explanation": str},
    "validate": {
        "kind": str,
        "text": str,
        "description": str,
        "timezone": str,
        "dst": str,
        "anchor": maybe(instant),
        "occurrences": [{"utc": instant, "local": str, "note": maybe(str)}],
        "skipped": list,
        "finished": bool,
        "croniter": maybe({"agrees": bool}),
    },
    "trigger": {"periodic_task": str, "job": uuid},
    "job retry": {"job": uuid, "periodic_task": str, "arguments_of": str},
    "group list": [{**_of_columns(GroupStatus), "state": str, "rules": str}],
    "group limit": GROUP,
    "group pause": GROUP,
    "group resume": GROUP,
    "backfill": BACKFILL,
    "backfill list": [BACKFILL],
    "backfill cancel": BACKFILL,
    "import": {
        "applied": bool,
        "equal": int,
        "left_out": int,
        "declared_by_code": int,
        "differences": [{"what": str, "name": str, "kind": str, "columns": CHANGES}],
    },
    "compare": {
        "since": instant,
        "until": instant,
        "equal": bool,
        "rows": [
            {
                "name": str,
                "both": int,
                "only_theirs": [instant],
                "only_ours": [instant],
                "drifted": int,
                "compared": bool,
            }
        ],
    },
    "nodes": [NODE],
    "top": {
        "now": instant,
        "seconds": NUMBER,
        "beats": int,
        "workers": int,
        "jobs": each(int),
        "made_per_second": NUMBER,
        "started_per_second": NUMBER,
        "succeeded": int,
        "failed": int,
        "skipped": int,
        "start_median": maybe(NUMBER),
        "start_worst": maybe(NUMBER),
        "late": int,
        "late_since": maybe(instant),
        "next_run_at": maybe(instant),
        "overdue": [OVERDUE],
        "running": [RUNNING],
        "problems": [PROBLEM],
    },
    "doctor": {"well": bool, "findings": [FINDING], "checked": [str], "skipped": each(str)},
    "health": {
        "healthy": bool,
        "checks": {"database": CHECK, "schema": CHECK, "beats": CHECK, "lag": CHECK},
        "refused": [{"name": str, "app": str, "reason": str, "seen_at": instant}],
    },
}

RUN = {"utc": instant, "local": str}
# What some commands print with certain words, beside the shape above.
WITH_WORDS: dict[str, Any] = {
    "upcoming NAME": {
        "name": str,
        "state": str,
        "problem": maybe(str),
        "kind": maybe(str),
        "text": maybe(str),
        "description": maybe(str),
        "timezone": maybe(str),
        "after": maybe([str]),
        "start_at": maybe(instant),
        "end_at": maybe(instant),
        "max_runs": maybe(int),
        "jitter": maybe(NUMBER),
        "blackout": maybe([str]),
        "run_count": maybe(int),
        "blackout_action": maybe(str),
        "runs": [{**RUN, "planned_for": maybe(instant), "note": maybe(str)}],
    },
    "validate --window": {
        "kind": str,
        "text": str,
        "description": str,
        "timezone": str,
        "occurrences": [{"opens": RUN, "closes": maybe(RUN)}],
        "finished": bool,
    },
    "compare --unsent": {"since": instant, "unsent": [{"name": str, "scheduled_for": [instant]}]},
    "backfill --dry-run": {**_of_columns(BackfillPreview), "first": [instant]},
}
