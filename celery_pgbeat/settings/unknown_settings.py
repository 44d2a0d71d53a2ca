"""Names in a configuration that are written like settings of ours, and that nothing reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from celery_pgbeat.settings.environment import OURS, own_variables

ALIKE = 0.8  # of two names, from 0 to 1: above it one is a misspelling of the other


def unknown_settings(configuration: Mapping[str, Any], known: Collection[str]) -> dict[str, str | None]:
    """Return the unknown names, each with the one that was probably meant, written as this configuration reads it.

    Under a namespace, as Django projects have it, Celery reads `CELERY_PGBEAT_URL`; otherwise `pgbeat_url`.

    Example:
        >>> unknown_settings({"pgbeat_leese": 5, "PGBEAT_POLL": 1}, ["pgbeat_lease", "pgbeat_poll"])
        {'PGBEAT_POLL': 'pgbeat_poll', 'pgbeat_leese': 'pgbeat_lease'}
    """
    # Celery's `app.conf` may still be the object that loads the configuration, which it then has as `data`.
    prefix = str(getattr(getattr(configuration, "data", configuration), "prefix", None) or "")
    written = {name: (prefix + name).upper() if prefix.isupper() else prefix + name for name in known}
    unknown: dict[str, str | None] = {}
    for key in sorted(str(key) for key in configuration):
        name = key.lower().removeprefix(prefix.lower())
        if name.startswith(OURS) and key not in written.values() and key not in known:
            near = get_close_matches(name, known, n=1, cutoff=ALIKE)
            unknown[key] = written[near[0]] if near else None
    return unknown


def misspelt_variables(known: Collection[str]) -> dict[str, str]:
    """Return the environment variables that are misspelt names of settings, each with the one that was meant.

    Others that begin with PGBEAT_ may be of another program, so only what is close to a setting counts.
    """
    variables = {name.upper() for name in known}
    ours = sorted(name for name in own_variables() if name not in variables)
    near = {name: get_close_matches(name.upper(), variables, n=1, cutoff=ALIKE) for name in ours}
    return {name: meant[0] for name, meant in near.items() if meant}
