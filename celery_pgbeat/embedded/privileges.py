"""Runs, as root, a program that refuses to run as root."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from pathlib import Path

from celery_pgbeat.embedded.errors import ServerUnavailable

_NOBODY = 65534
_UNSHARE = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
_SETPRIV = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--")
# It may still read what root may. Without the bit, access() would ignore the capability, and initdb asks it first.
_SETPRIV_READING = (
    *_SETPRIV[:-1],
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup", "--"),
)


def unprivileged(binary: Path, folder: Path) -> list[str]:
    """Return the words to put before a command that refuses to run as root; none for an ordinary user.

    In a user namespace the server sees itself as user 1000, but is still root outside: no file needs another owner, and
    binaries in a private home folder work. If namespaces are forbidden (as in a container without extra rights), the
    server runs as `nobody`, who then owns the folder. If binaries or folder are in a private home folder, it keeps the
    capability to pass through, which root has in a container.

    Raises:
        ServerUnavailable: neither works here.
    """
    if os.geteuid() != 0:
        return []
    if _succeeds((*_UNSHARE, "true")):
        return list(_UNSHARE)
    private = _private(binary) or _private(folder)
    prefix = _SETPRIV if private is None else _SETPRIV_READING
    if _succeeds((*prefix, str(binary), "--version")):
        os.chown(folder, _NOBODY, _NOBODY)
        return list(prefix)
    way_out = (
        "" if private is None else f"install it elsewhere than below {private}, which only its owner may enter, or "
    )
    raise ServerUnavailable(
        f"Postgres refuses to run as root, and {binary} cannot be run as another user here (neither by unshare --user "
        f"nor by setpriv): {way_out}run this as an ordinary user, or give the URL of a running server (PGBEAT_URL)"
    )


def _private(path: Path) -> Path | None:
    """Return the folder on the way to a path that other users may not enter; None if there is none."""
    return next((above for above in path.resolve().parents if not above.stat().st_mode & stat.S_IXOTH), None)


@functools.cache
def _succeeds(command: tuple[str, ...]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
