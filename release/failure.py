"""What is wrong with a release, and commands whose failure is that."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Failure(Exception):
    """A release is not ready; the text says why, and the way out."""


def run(*words: Any, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder and return what it prints; the last lines of one that fails are the failure.

    It sees no PYTHONPATH: what it imports is what is installed.
    """
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise Failure(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{last}")
    return done.stdout


def run_aloud(*words: str, folder: Path) -> None:
    """Run a long command in a folder; it prints by itself."""
    code = subprocess.run(words, cwd=folder, check=False).returncode
    if code:
        raise Failure(f"{' '.join(words)}: exit code {code}")
