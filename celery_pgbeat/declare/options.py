"""The options of `apply_async` that a row may hold: an allow-list, for what is unknown may be anything.

Left out, with the reason: what identifies or links messages (`task_id`, `link`, `chain`, `group_id`, ...) is ours or
would start tasks that are not allowed; what holds live objects (`producer`, `connection`, `declare`) is no JSON; and a
serializer other than JSON would let a table make a worker run code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from celery_pgbeat.declare.texts import printable, routable
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.safe_text import in_short, type_of
from celery_pgbeat.texts.suggestions import did_you_mean


class Kind(NamedTuple):
    """What an option's value must be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


LONGEST = 366 * 86_400  # seconds; a worker counts them as a float on its own clock, and ends as a whole where it cannot


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LONGEST <= value <= LONGEST


# A date, or a date and a time, with an offset or without. The same as `is_date_time` in SQL
# (`tests/interfaces/test_validation.py`).
DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.([0-9]{3}|[0-9]{6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def read_instant(text: str) -> datetime:
    """Return the instant that an option says in ISO 8601; without an offset it is in UTC.

    Raises:
        ValueError: it is no such text.

    Example:
        >>> read_instant("2026-12-07T09:00:00+01:00").isoformat()
        '2026-12-07T09:00:00+01:00'
    """
    if not DATE_TIME.fullmatch(text):
        raise ValueError(f"{text!r} is not an ISO 8601 date-time")
    instant = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc)


def _is_instant(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(read_instant(value))
    except ValueError:
        return False


SECONDS = Kind(f"a number of seconds from 0 to {LONGEST}", lambda value: _is_number(value) and value >= 0)
INSTANT = Kind("an ISO 8601 date-time", _is_instant)
MOMENT = Kind(
    f"a number of seconds up to {LONGEST} or an ISO 8601 date-time",
    lambda value: _is_number(value) or _is_instant(value),
)
TEXT = Kind("text", lambda value: isinstance(value, str))
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("a dict", lambda value: isinstance(value, Mapping))

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("confirm_timeout", "countdown", "soft_time_limit", "time_limit", "timeout"), SECONDS),
    **dict.fromkeys(("exchange", "exchange_type", "routing_key", "reply_to", "MessageGroupId"), TEXT),
    **dict.fromkeys(("argsrepr", "kwargsrepr", "shadow", "compression"), TEXT),
    **dict.fromkeys(("ignore_result", "retry"), SWITCH),
    **dict.fromkeys(("headers", "retry_policy"), OBJECT),
    "eta": INSTANT,
    "expires": MOMENT,
    "delivery_mode": Kind("1 or 2", lambda value: value in (1, 2)),
    "serializer": Kind("'json', the only one allowed", lambda value: bool(value == "json")),
}
ROUTES = frozenset(("exchange", "routing_key", "reply_to"))  # they choose a queue, like the column
ONE_LINE = frozenset(("shadow", "compression", "exchange_type", "MessageGroupId"))
KNOWN_OPTIONS = frozenset(KINDS)  # pgbeat.known_options() in SQL is made from it

# What makes a message start other tasks. A row could start tasks that pgbeat_allowed_tasks does not allow.
TO_OTHER_TASKS = frozenset(("link", "link_error", "chain", "chord"))
CALLS_OTHERS = "apply_async(link=…, link_error=…), chain(…).delay() or chord(…).delay()"

RESERVED_HEADER = "pgbeat"  # a worker reads the job from it
# Celery writes the headers of an option last: `task` among them would call a task that is not allowed, `id` would make
# it another job, and the worker would use the others instead of its own values.
CELERY_HEADERS = frozenset(
    (
        *("_children", "_filter_x_death_headers", "_get_custom_headers", "_protected", "args", "argsrepr"),
        *("as_execution_options", "callbacks", "called_directly", "chain", "children", "chord", "clear", "compression"),
        *("correlation_id", "delivery_info", "errbacks", "eta", "expires", "get", "group", "group_index", "headers"),
        *("hostname", "id", "ignore_result", "is_eager", "kwargs", "kwargsrepr", "lang", "logfile", "loglevel"),
        *("origin", "parent_id", "properties", "replaced_task_nesting", "reply_to", "retries", "root_id", "shadow"),
        *("soft_time_limit", "stamped_headers", "stamps", "task", "taskset", "time_limit", "timelimit"),
        *("update", "utc"),
    )
)
IN_COLUMNS = ("queue", "priority")


def read_options(field: str, value: Any) -> dict[str, Any]:
    """Return the options as plain JSON values; `queue` and `priority` are returned unchecked, for their columns.

    Raises:
        InvalidPeriodicTask: an option is unknown, refused, or of the wrong kind; names it.
    """
    if not isinstance(value, Mapping):
        raise InvalidPeriodicTask(f"{field} is {type_of(value)}, not a dict")
    return {name: given if name in IN_COLUMNS else _option(name, given) for name, given in value.items()}


def _option(name: Any, value: Any) -> Any:
    where = f"options[{in_short(name)}]"
    if name in TO_OTHER_TASKS:
        raise InvalidPeriodicTask(
            f"options has {in_short(name)}, and a row holds the call of one task: call a small task of your own that "
            f"calls the others, with {CALLS_OTHERS}"
        )
    if name not in KINDS:
        hint = did_you_mean(str(name), KINDS) or f"; known are {', '.join(sorted(KINDS))}"
        raise InvalidPeriodicTask(f"options has {in_short(name)}, which a periodic task cannot set{hint}")
    kind = KINDS[name]
    if isinstance(value, timedelta) and kind in (SECONDS, MOMENT):
        seconds = value.total_seconds()
        value = int(seconds) if seconds.is_integer() else seconds
    if isinstance(value, datetime) and name in ("eta", "expires"):
        value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).isoformat()
    if value is not None and not kind.fits(value):
        raise InvalidPeriodicTask(f"{where} is {in_short(value)}, not {kind.words}")
    if value is not None and name in ROUTES:
        routable(where, value)
    elif value is not None and name in ONE_LINE:
        printable(where, value)
    if name == "headers" and value is not None and RESERVED_HEADER in value:
        raise InvalidPeriodicTask(f"{where} has a header {RESERVED_HEADER!r}, which is ours: use another name")
    if name == "headers" and value is not None and (taken := sorted(map(str, CELERY_HEADERS & value.keys()))):
        raise InvalidPeriodicTask(f"{where} has a header {taken[0]!r}, which is Celery's own: use another name")
    return value
