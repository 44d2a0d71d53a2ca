"""Hides secrets: the arguments of sensitive rows, texts that may quote them, and passwords in settings.

The beat hides arguments in messages, the worker in errors, the API and the CLI in what they print.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

MASK = "<sensitive>"
ARGUMENTS = frozenset(("args", "kwargs"))  # the columns of a row
MASKED = {"argsrepr": MASK, "kwargsrepr": MASK}  # options of `apply_async`: what Celery shows of the arguments

HIDDEN_SETTINGS = "PGBEAT_URL|PGBEAT_ALERT_WEBHOOK"  # their names, as a pattern

ENCODED = "in a user name or a password write @ as %40, / as %2F, ? as %3F and # as %23"


def masked_broker(urls: str) -> str:
    """Return a broker's URL, or several with `;` between them, without user and password: up to the last @ of each.

    Example:
        >>> masked_broker("amqp://shop:s3cret@one//;amqp://shop:s3cret@Part@two//")
        'amqp://***@one//;amqp://***@two//'
    """
    return ";".join(re.sub("(?<=://).*@", "***@", url, flags=re.DOTALL) for url in _each(urls))


def broker_error(error: Exception, urls: str | Iterable[str]) -> str:
    """Return why a broker cannot be used. An error may quote what was taken for the host and is part of a password."""
    return f"its URL cannot be read: {ENCODED}" if is_misread(urls) else error_text(error)


def is_misread(urls: str | Iterable[str]) -> bool:
    """Return whether the password of a broker's URL probably ends too early, at one of its own characters.

    Example:
        >>> is_misread("redis://:s3/cret@localhost"), is_misread("redis://:s3%2Fcret@localhost")
        (True, False)
    """
    for url in _each(urls):
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            return True
        if "@" in f"{parts.path}{parts.query}{parts.fragment}":
            return True
    return False


def _each(urls: str | Iterable[str]) -> list[str]:
    return re.split(r";(?=[\w+]+://)", urls) if isinstance(urls, str) else list(urls)


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
