"""What differs between two messages of one template: these fields, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from celery.utils.saferepr import saferepr


class EncodedArguments(NamedTuple):
    """The arguments in a message."""

    body: str | bytes
    argsrepr: str
    kwargsrepr: str


NO_ARGUMENTS = EncodedArguments("", "", "")


class MessageFields(NamedTuple):
    """The values of one message, as Celery writes them; the arguments only if they are not written already."""

    id: str
    periodic_task: str
    scheduled_for: str
    eta: str | None
    expires: str | None
    expiration: str | None  # milliseconds
    trace: Mapping[str, str] | None = None  # headers, whose names are part of the key
    arguments: EncodedArguments = NO_ARGUMENTS

    def value(self, name: str) -> Any:
        """Return a field, or one of the arguments'."""
        return getattr(self.arguments if name in EncodedArguments._fields else self, name)


# Where they are in a message. A place is rendered only if the captured message has the field's value there.
PROPERTIES = {"correlation_id": "id", "expiration": "expiration"}
HEADERS = {
    "id": "id",
    "root_id": "id",
    "argsrepr": "argsrepr",
    "kwargsrepr": "kwargsrepr",
    "eta": "eta",
    "expires": "expires",
    "periodic_task_name": "periodic_task",
}
OUR_HEADER = {"job": "id", "periodic_task": "periodic_task", "scheduled_for": "scheduled_for"}  # in "pgbeat"


def fields_in(table: dict[str, Any], places: dict[str, str], fields: MessageFields) -> dict[str, str]:
    """Return which keys of a table are to be rendered, and from which field."""
    return {
        key: field
        for key, field in places.items()
        if key in table and table[key] is not None and table[key] == fields.value(field)
    }


def headers_in(table: dict[str, Any], fields: MessageFields) -> dict[str, str]:
    """Return which headers of a message are to be rendered, and from which field or placeholder."""
    trace = enumerate((fields.trace or {}).items())
    ours = {name: placeholder(place) for place, (name, value) in trace if table.get(name) == value}
    return {**fields_in(table, HEADERS, fields), **ours}


def placeholder(place: int) -> str:
    """Return the name of the placeholder for a header of the trace, by its position among those."""
    return f"trace {place}"


class ReprLimits(NamedTuple):
    """The limits of an app for `saferepr`, by which Celery shows arguments to people."""

    longest: int | None
    levels: int

    def __call__(self, text: str, value: Any) -> str:
        """Return what `saferepr` returns for a value that was read from this JSON text.

        That takes 10 us even for `[1]`. If there is nothing to escape, to shorten or to leave out, `repr` returns the
        same: both show numbers, true, false and null alike, and put a string of printable characters without a quote or
        a backslash between two apostrophes.
        """
        if (
            text.isprintable()
            and "'" not in text
            and "\\" not in text
            and '"__type__"' not in text  # what Celery's JSON makes an object of
            and text.count("[") + text.count("{") <= self.levels
        ):
            shown = repr(value)
            if self.longest is None or len(shown) < self.longest:
                return shown
        return str(saferepr(value, self.longest, maxlevels=self.levels))
