"""Where Celery shows its configuration, our secrets are hidden like its own: `pgbeat_url` may hold a password."""

from __future__ import annotations

import re
import sys

SECRETS = "PGBEAT_URL|PGBEAT_ALERT_WEBHOOK"  # names of settings, as a pattern


def hide_secrets() -> None:
    """Have Celery hide our secrets in `celery report` and in what a worker answers to `celery inspect conf`.

    Celery knows secrets by the names of settings alone and has no door for further ones. Where it is not loaded, there
    is nothing that could show them.
    """
    utils = sys.modules.get("celery.app.utils")
    if utils is not None and not utils.HIDDEN_SETTINGS.search("pgbeat_url"):
        known: re.Pattern[str] = utils.HIDDEN_SETTINGS
        utils.__dict__["HIDDEN_SETTINGS"] = re.compile(f"{known.pattern}|{SECRETS}", known.flags)
