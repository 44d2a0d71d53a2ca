"""A Python in which the peers can be imported: this one, or one that is made once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

MODULES = ("redbeat", "django_celery_beat", "sqlalchemy_celery_beat")
PACKAGES = (
    "celery[redis]>=5.4,<6",
    "celery-redbeat",
    "django-celery-beat",
    "sqlalchemy-celery-beat",
    "psycopg2-binary",
)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "celery-pgbeat"


def interpreter() -> Path:
    """Return the Python to run the peers with; install them if they are not."""
    if all(importlib.util.find_spec(module) for module in MODULES):
        return Path(sys.executable)
    wanted = "\n".join((sys.version, *PACKAGES))
    folder = CACHE / f"peers-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"
    python = folder / "bin" / "python"
    done = folder / "complete"  # the last thing that is written: an interrupted installation is begun anew
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PACKAGES], check=True)
        done.touch()
    return python


def versions(python: Path, packages: Sequence[str]) -> list[str]:
    """Return the versions of packages there."""
    program = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    return subprocess.run([python, "-c", program, *packages], capture_output=True, text=True, check=True).stdout.split()
