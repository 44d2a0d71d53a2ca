"""Wheel and sdist: built twice from the last commit, compared with it, installed far from it.

Both builds start from a checkout of their own, in folders of different names, at different times. They must have the
same hashes: then any person can build the release again and see that nothing else is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from release import version
from release.failure import Failure, run

PACKAGE = "celery_pgbeat"
MADE = {"PKG-INFO"}  # in the sdist, and in no commit

# What a user does first. It runs outside of the repository, so everything that it reads comes out of the wheel.
FIRST_STEPS = """
import importlib, importlib.metadata, pkgutil, sys
import celery_pgbeat

assert celery_pgbeat.__file__.startswith(sys.prefix), celery_pgbeat.__file__
assert celery_pgbeat.__version__ == importlib.metadata.version("celery-pgbeat")
for group in ("celery.beat_schedulers", "celery.commands", "console_scripts"):
    for point in importlib.metadata.entry_points(group=group):
        if point.dist.name == "celery-pgbeat":
            point.load()
for name in ("api", "beat", "cli", "declare", "planning", "postgres", "schedules", "testing", "worker"):
    found = importlib.import_module(f"celery_pgbeat.{name}")
    for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
        if not module.name.startswith("celery_pgbeat.cli.demo"):  # needs the extra
            importlib.import_module(module.name)
"""


def check(root: Path, *, tests: bool) -> None:
    """Build the last commit into dist/, and fail if anything about the two files is not as it has to be."""
    with tempfile.TemporaryDirectory(prefix="celery-pgbeat-release-") as here:
        first = _build(root, Path(here) / "one")
        second = _build(root, Path(here) / "another-folder", touch=True)
        compare(first, second)
        wheel, sdist = _only(first, "*.whl"), _only(first, "*.tar.gz")
        _check_names(root, wheel, sdist)
        check_wheel(root, wheel)
        check_sdist(root, sdist)
        _try(root, wheel, Path(here) / "installed")
        if tests:
            _run_tests(sdist, Path(here) / "sdist")
        dist = root / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        shutil.copytree(first, dist)
    for path in sorted(dist.iterdir()):
        print(f"{_hash(path)}  {path.relative_to(root)}")


def write_bill_of_materials(root: Path) -> None:
    """Write dist/….cdx.json: what an installation of the wheel consists of, in the format of CycloneDX."""
    wheel = _only(root / "dist", "*.whl")
    target = root / "dist" / f"celery_pgbeat-{version.of_package(root)}.cdx.json"
    with tempfile.TemporaryDirectory(prefix="celery-pgbeat-release-") as here:
        python = _environment(Path(here) / "installed")
        exactly = f"celery-pgbeat=={version.of_package(root)}"  # by its name, so the file's path is not recorded
        run(python, "-m", "pip", "install", "--quiet", "--find-links", wheel.parent, exactly, folder=Path(here))
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools", folder=Path(here))
        run(
            *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--mc-type", "library"),
            *("--pyproject", root / "pyproject.toml", "--output-file", target, python),
            folder=Path(here),
            environment={"SOURCE_DATE_EPOCH": _committed_at(root)},
        )
    document = json.loads(target.read_text(encoding="utf-8"))
    document["metadata"]["component"]["version"] = version.of_package(root)  # cyclonedx-py reads no dynamic version
    target.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(target.relative_to(root))


def compare(first: Path, second: Path) -> None:
    """Fail if two folders have not the same files."""
    hashes = [{path.name: _hash(path) for path in folder.iterdir()} for folder in (first, second)]
    if hashes[0] != hashes[1]:
        raise Failure(f"two builds of one commit differ: {hashes[0]} and {hashes[1]}")


def check_wheel(root: Path, wheel: Path) -> None:
    """Fail if the wheel has not just the files of the package in the last commit, and the license."""
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    about = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    _check_equal("the wheel", names - about, _committed(root, PACKAGE))
    if not any(name.endswith("/licenses/LICENSE") for name in about):
        raise Failure("the wheel has no LICENSE")


def check_sdist(root: Path, sdist: Path) -> None:
    """Fail if the sdist has not just the files of the last commit."""
    with tarfile.open(sdist) as files:
        names = {one.name.partition("/")[2] for one in files.getmembers() if one.isfile()}
    _check_equal("the sdist", names - MADE, _committed(root))


def _build(root: Path, folder: Path, *, touch: bool = False) -> Path:
    """Check the last commit out into a folder, build it there, and return the folder of the results."""
    source, results = folder / "source", folder / "dist"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    run("git", "archive", "--output", archive, "HEAD", folder=root)
    with tarfile.open(archive) as files:
        files.extractall(source)
    if touch:
        for path in source.rglob("*"):
            path.touch()
    epoch = {"SOURCE_DATE_EPOCH": _committed_at(root)}
    run(sys.executable, "-m", "build", "--outdir", results, source, folder=folder, environment=epoch)
    return results


def _committed_at(root: Path) -> str:
    return run("git", "log", "-1", "--format=%ct", folder=root).strip()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Failure(f"{folder} has {len(found)} files {pattern}, not one: run `tox -e package`")
    return found[0]


def _check_names(root: Path, wheel: Path, sdist: Path) -> None:
    release = f"{PACKAGE}-{version.of_package(root)}"
    expected = (f"{release}-py3-none-any.whl", f"{release}.tar.gz")
    if (wheel.name, sdist.name) != expected:
        raise Failure(f"built {wheel.name} and {sdist.name}, not {' and '.join(expected)}")


def _committed(root: Path, *folders: str) -> set[str]:
    listed = run("git", "ls-tree", "-r", "-z", "--name-only", "HEAD", *folders, folder=root)
    return set(listed.rstrip("\0").split("\0"))


def _check_equal(what: str, names: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - names):
        raise Failure(f"{what} lacks {', '.join(missing)}")
    if strange := sorted(names - expected):
        raise Failure(f"{what} has what no commit has: {', '.join(strange)}")


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def _try(root: Path, wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment, import all of it, and run the command."""
    python = _environment(folder)
    run(python, "-m", "pip", "install", "--quiet", wheel, folder=folder)
    run(python, "-W", "error", "-c", FIRST_STEPS, folder=folder)
    said = run(python.with_name("celery-pgbeat"), "--version", folder=folder)
    if said != f"celery-pgbeat, version {version.of_package(root)}\n":
        raise Failure(f"celery-pgbeat --version of the wheel prints {said!r}")
    run(python.with_name("celery-pgbeat"), "validate", "0 3 * * *", folder=folder)


def _run_tests(sdist: Path, folder: Path) -> None:
    """Install the sdist with what its tests need, and run those that need no server, in its own folder."""
    python = _environment(folder / "environment")
    with tarfile.open(sdist) as files:
        files.extractall(folder)
    (source,) = folder.glob(f"{PACKAGE}-*")
    path = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    run(python, "-m", "pip", "install", "--quiet", f"{sdist}[test]", folder=folder)
    run(python, "-m", "pytest", "tests/unit", "-n", "1", folder=source, environment=path)
