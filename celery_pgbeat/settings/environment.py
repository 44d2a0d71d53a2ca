"""Reads our environment variables, and knows those that Kubernetes sets under our names.

For each Service of its namespace a pod gets variables such as `PGBEAT_SERVICE_HOST`, `PGBEAT_PORT_9464_TCP_ADDR` and
`PGBEAT_METRICS_PORT=tcp://10.96.0.6:9464`, which are none of ours, though one may have the name of a setting.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator

from celery_pgbeat.errors import InvalidSetting

logger = logging.getLogger(__name__)

OURS = "pgbeat_"
OF_A_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$", re.ASCII)
ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")  # the value of `<SERVICE>_PORT`
QUOTES = "\"'"


def variable(name: str) -> str | None:
    """Return a variable without the white space around it; None if it is unset, empty, or set by Kubernetes.

    Files of secrets often end with a line break, which would become part of a password or of a database's name.

    Raises:
        InvalidSetting: quotes are around the value. They come from a file that no shell has read.
    """
    value = os.environ.get(name, "").strip()
    if is_of_a_service(name, value):
        service = name.removesuffix("_PORT").lower().replace("_", "-")
        logger.info("%s is %s, which Kubernetes sets for the Service %r: it is ignored", name, value, service)
        return None
    if len(value) > 1 and value[0] == value[-1] and value[0] in QUOTES:
        raise InvalidSetting(f"{name} has quotes around its value: write it without them")
    return value or None


def own_variables() -> Iterator[str]:
    """Iterate over the names of the variables that begin as ours do, in any case, without those of Kubernetes."""
    for name, value in os.environ.items():
        if name.lower().startswith(OURS) and not is_of_a_service(name, value.strip()):
            yield name


def is_of_a_service(name: str, value: str) -> bool:
    """Return whether Kubernetes sets such a variable for a Service.

    Example:
        >>> is_of_a_service("PGBEAT_METRICS_PORT", "tcp://10.96.0.6:9464"), is_of_a_service("PGBEAT_METRICS_PORT", "80")
        (True, False)
    """
    if name.endswith("_PORT") and ADDRESS.fullmatch(value):
        return True
    return OF_A_SERVICE.search(name) is not None
