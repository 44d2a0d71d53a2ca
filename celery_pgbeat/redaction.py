"""Hides secrets: the arguments of sensitive rows, texts that may quote them, and passwords in settings.

The beat hides arguments in messages, the worker in errors, the API and the CLI in what they print.
"""

from __future__ import annotations

import re
import sys

MASK = "<sensitive>"
ARGUMENTS = frozenset(("args", "kwargs"))  # the columns of a row
MASKED = {"argsrepr": MASK, "kwargsrepr": MASK}  # options of `apply_async`: what Celery shows of the arguments

HIDDEN_SETTINGS = "PGBEAT_URL|PGBEAT_ALERT_WEBHOOK"  # their names, as a pattern


def error_text(error: BaseException | None, sensitive: bool = False) -> str:
    """Return an exception's class and text, never its traceback; for a sensitive row only the class.

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


def hide_secret_settings() -> None:
    """Make Celery hide our secret settings in `celery report` and in a worker's reply to `celery inspect conf`.

    Celery recognises secrets by the names of settings, and has no hook to add names. If Celery's module is not loaded,
    nothing can show the settings, and nothing is done.
    """
    utils = sys.modules.get("celery.app.utils")
    if utils is not None and not utils.HIDDEN_SETTINGS.search("pgbeat_url"):
        known: re.Pattern[str] = utils.HIDDEN_SETTINGS
        utils.__dict__["HIDDEN_SETTINGS"] = re.compile(f"{known.pattern}|{HIDDEN_SETTINGS}", known.flags)
