"""Loads pickles of other schedulers. A pickle runs the code that it names, so the caller has to trust its source."""

from __future__ import annotations

import pickle
import shelve
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from celery_pgbeat.errors import InvalidSource


def refuse_untrusted(trusted: bool, what: str) -> None:
    """Refuse to load pickles unless the user has asked for it.

    Raises:
        InvalidSource: they are not trusted.
    """
    if not trusted:
        raise InvalidSource(
            f"{what} holds pickles, and to load one runs whatever code it names: give --trust-pickle if only you and "
            "the scheduler could write there"
        )


def unpickled(data: bytes) -> Any:
    """Return the value of a pickle that is trusted.

    Raises:
        ValueError: it cannot be loaded; names the reason.
    """
    try:
        return pickle.loads(data)  # noqa: S301  refuse_untrusted comes first
    except Exception as error:
        raise ValueError(f"its pickle cannot be loaded: {type(error).__name__}: {error}") from error


def shelf_entries(path: str) -> Mapping[str, Any]:
    """Return the entries in the schedule file of Celery's beat, which is trusted.

    Raises:
        InvalidSource: it is no such file.
    """
    try:
        with closing(shelve.open(path, flag="r")) as shelf:  # noqa: S301  likewise; closing closes it
            return dict(shelf["entries"])
    except Exception as error:
        raise InvalidSource(
            f"{path!r} is no schedule file of Celery's beat: {type(error).__name__}: {error}"
        ) from error
