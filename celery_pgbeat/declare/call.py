"""The call: the task's name, and its arguments as JSON, written as Celery does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.redaction import MASK
from celery_pgbeat.texts.safe_text import in_short, type_of

# What `add_periodic_task(60, chain(…))` becomes the call of. Celery has tasks of these names for old messages.
NO_TASKS = ("celery.chain", "celery.group")
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # JSON's writing of it; Postgres stores no such character


class Call(NamedTuple):
    """The call that a task, a name or a signature stands for."""

    task: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]


def task_of(task: Any) -> Call:
    """Return the call of a task.

    Args:
        task: a Celery task, the name of one, or a signature with its arguments and options.

    Raises:
        InvalidPeriodicTask: it is none of these, or a signature of several tasks.

    Example:
        >>> task_of("mail.poll")
        Call(task='mail.poll', args=(), kwargs={}, options={})
    """
    if isinstance(task, str):
        if task in NO_TASKS:
            raise _several(f"{task!r}, which is not a real task")
        return Call(task, (), {}, {})
    if isinstance(task, dict) and "task" in task:
        if task.get("subtask_type") is not None:
            raise _several(f"a {task['subtask_type']}")
        return Call(str(task["task"]), task.get("args") or (), task.get("kwargs") or {}, task.get("options") or {})
    name = getattr(task, "name", None)
    if isinstance(name, str) and hasattr(task, "apply_async"):
        return Call(name, (), {}, {})
    raise InvalidPeriodicTask(f"task is {in_short(task)}, neither a Celery task nor the name of one nor a signature")


def _several(what: str) -> InvalidPeriodicTask:
    return InvalidPeriodicTask(
        f"task is {what}; a row holds the call of one task: call a small task of your own that calls the others, with "
        f"chain(…).delay(), group(…).delay() or chord(…).delay()"
    )


def arguments_text(args: Any, sensitive: bool = False) -> str:
    """Return positional arguments as a JSON array; errors quote nothing of sensitive ones.

    Raises:
        InvalidPeriodicTask: an argument cannot be written as JSON; names it.
    """
    if isinstance(args, (str, bytes, Mapping)) or not isinstance(args, Sequence):
        raise InvalidPeriodicTask(f"args is {type_of(args)}, not a list or tuple")
    parts = [json_text(value, f"args[{position}]", sensitive) for position, value in enumerate(args)]
    return "[" + ", ".join(parts) + "]"


def keywords_text(kwargs: Any, sensitive: bool = False) -> str:
    """Return keyword arguments as a JSON object; errors quote nothing of sensitive ones, not even a name.

    Raises:
        InvalidPeriodicTask: an argument cannot be written as JSON; names it.
    """
    if not isinstance(kwargs, Mapping):
        raise InvalidPeriodicTask(f"kwargs is {type_of(kwargs)}, not a dict")
    parts = []
    for name, value in sorted(kwargs.items(), key=lambda item: str(item[0])):
        if not isinstance(name, str):
            raise InvalidPeriodicTask(
                f"kwargs has the key {MASK if sensitive else repr(name)}; the names of arguments are text"
            )
        place = f"kwargs[{MASK if sensitive else repr(name)}]"
        parts.append(f"{json_text(name, 'kwargs', sensitive)}: {json_text(value, place, sensitive)}")
    return "{" + ", ".join(parts) + "}"


def json_text(value: Any, field: str, sensitive: bool = False) -> str:
    """Return a value as JSON, as Celery's serializer writes it: datetime, UUID and Decimal included.

    Raises:
        InvalidPeriodicTask: it cannot be written, or Postgres could not store it.
    """
    from kombu.utils.json import dumps

    try:
        text: str = dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        why = MASK if sensitive else error
        raise InvalidPeriodicTask(
            f"{field} is {type_of(value)} that is not JSON ({why}): pass an id or plain data instead"
        ) from None
    if NUL.search(text):
        raise InvalidPeriodicTask(f"{field} holds the character NUL, which Postgres cannot store")
    return text


def plain(text: str) -> Any:
    """Return the Python value of JSON text, with Celery's own types; without them if the text does not fit them."""
    from kombu.utils.json import loads

    try:
        return loads(text)
    except (ValueError, TypeError, KeyError, AttributeError):
        return json.loads(text)
