"""What is shown where nobody should see something of a sensitive row: its arguments, and texts that may quote them.

Pure, and known to all rooms: the beat masks the message, the worker the errors, the doors what they print.
"""

from __future__ import annotations

MASK = "<sensitive>"
ARGUMENTS = frozenset(("args", "kwargs"))  # the columns of a row
MASKED = {"argsrepr": MASK, "kwargsrepr": MASK}  # options of `apply_async`: what Celery shows of the arguments


def error_text(error: BaseException | None, sensitive: bool = False) -> str:
    """Return an exception's class and text, never its traceback; of a sensitive row's only the class.

    Example:
        >>> error_text(ValueError("no patient 4711"), sensitive=True)
        'ValueError: <sensitive>'
    """
    if sensitive:
        return f"{type(error).__name__}: {MASK}"
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - it is the user's own __str__ that failed
        message = "<its message cannot be shown>"
    return f"{type(error).__name__}: {message}"
