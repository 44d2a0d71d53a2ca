"""Arguments that Celery computes at the moment of sending: `BeatLazyFunc`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PLACEHOLDER = "<BeatLazyFunc>"  # in the row; the beat that declares the entry sends the real value


def is_lazy(value: Any) -> bool:
    """Return whether an argument is one of Celery's `BeatLazyFunc`, recognised by its name."""
    return any(f"{kind.__module__}.{kind.__qualname__}" == "celery.beat.BeatLazyFunc" for kind in type(value).__mro__)


def has_lazy(args: Any, kwargs: Any) -> bool:
    """Return whether any argument is computed at the moment of sending."""
    positional = args if isinstance(args, Sequence) else ()  # what is neither is refused when the row is checked
    keywords = kwargs.values() if isinstance(kwargs, Mapping) else ()
    return any(is_lazy(value) for value in [*positional, *keywords])


def storable_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments for a row: a placeholder for each that is computed at the moment of sending."""
    return (
        [PLACEHOLDER if is_lazy(value) else value for value in args],
        {name: PLACEHOLDER if is_lazy(value) else value for name, value in kwargs.items()},
    )
