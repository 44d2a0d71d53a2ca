"""The question "Did you mean ...?" that ends an error message about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the question with the known name that is most like `word`; nothing if none is like it.

    Args:
        word: the unknown name.
        known: the names that exist.
        cutoff: how alike the two must be, from 0 to 1.

    Example:
        >>> did_you_mean("overlapp", ["overlap", "jitter"])
        ". Did you mean 'overlap'?"
        >>> did_you_mean("overlapp", ["jitter"])
        ''
    """
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return question(near[0]) if near else ""


def question(name: str) -> str:
    """Return the question with this name."""
    return f". Did you mean {name!r}?"
