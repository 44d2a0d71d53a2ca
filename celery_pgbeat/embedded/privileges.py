"""Runs, as root, a program that refuses to run as root."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from celery_pgbeat.embedded.errors import ServerUnavailable

_NOBODY = 65534
_UNSHARE = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
_SETPRIV = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--")


def unprivileged(binary: Path, folder: Path) -> list[str]:
    """Return the words to put before a command that refuses to run as root; none for an ordinary user.

    In a user namespace the server sees itself as user 1000, but is still root outside: no file needs another owner, and
    binaries in a private home folder work. If namespaces are forbidden (as in a container without extra rights), the
    server runs as `nobody`: that user then owns the folder, and all users must be able to read the binaries.

    Raises:
        ServerUnavailable: neither works here.
    """
    if os.geteuid() != 0:
        return []
    if _succeeds((*_UNSHARE, "true")):
        return list(_UNSHARE)
    if _succeeds((*_SETPRIV, str(binary), "--version")):
        os.chown(folder, _NOBODY, _NOBODY)
        return list(_SETPRIV)
    raise ServerUnavailable(
        f"Postgres refuses to run as root, and {binary} cannot be run as another user here (neither by unshare --user "
        "nor by setpriv): run this as an ordinary user, or give the URL of a running server (PGBEAT_URL)"
    )


@functools.cache
def _succeeds(command: tuple[str, ...]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
