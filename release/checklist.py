"""The checklist of a release: what a person forgets, in the order in which it is needed.

Facts are read; commands are run. The first that is not as it has to be ends the walk, and its line says what to do.
What is left for a person is printed at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

from release import version
from release.failure import Failure, run, run_aloud

VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
# Sentences that are true only before the first release, or before the project has an address.
PLACEHOLDERS = (
    *("There is no release yet", "there is no release yet", "There is no release of celery-pgbeat yet"),
    *("your-name/", "@your-name.", "./celery-pgbeat["),
)
PAGES = ("*.md", "docs/*.md", "examples/*/README.md", "examples/*/Dockerfile", "examples/*/*.yaml")

COMMANDS = (
    "tox -e lint,types,layers,docs",
    "bash .ci/run",
    "tox -e faults",
    "tox -e fuzz",
    "tox -e package -- --tests",
    "tox -e sbom",
)


def walk(root: Path, *, commands: bool) -> None:
    """Go through the checklist, and print each line that holds."""
    for fact in FACTS:
        fact(root)
        print(f"ok  {(fact.__doc__ or '').splitlines()[0]}")
    for command in COMMANDS if commands else ():
        print(f"…   {command}", flush=True)
        run_aloud(*command.split(), folder=root)
        print(f"ok  {command}")
    tag = _tag(root)
    print("Left for you:")
    print(f"    git tag -a {tag} -m {tag}")
    print(f"    git push origin main {tag}")
    print("The push starts .github/workflows/release.yml, which uploads the package; approve its environment pypi.")


def version_is_one_of_a_release(root: Path) -> None:
    """The version is one of a release."""
    found = version.of_package(root)
    if not VERSION.fullmatch(found):
        raise Failure(f"__version__ is {found!r}: write one like 1.2.0 or 1.2.0rc1 into celery_pgbeat/__init__.py")


def all_is_committed_on_main(root: Path) -> None:
    """Everything is committed, on main."""
    if changed := run("git", "status", "--porcelain", folder=root).splitlines():
        raise Failure(f"not committed: {', '.join(line[3:] for line in changed[:5])}")
    branch = run("git", "rev-parse", "--abbrev-ref", "HEAD", folder=root).strip()
    if branch != "main":
        raise Failure(f"the branch is {branch!r}: release from main")


def version_is_new(root: Path) -> None:
    """No tag has this version."""
    if run("git", "tag", "--list", _tag(root), folder=root).strip():
        raise Failure(f"the tag {_tag(root)} exists: raise __version__ in celery_pgbeat/__init__.py")


def changelog_names_the_version(root: Path) -> None:
    """The changelog begins with this version, and with a date."""
    found = HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found is None or found.group(1) != version.of_package(root):
        raise Failure(f"CHANGELOG.md does not begin with ## {version.of_package(root)} (YYYY-MM-DD)")
    try:
        date.fromisoformat(found.group(2))
    except ValueError:
        raise Failure(f"CHANGELOG.md says {found.group(2)!r} for the date of {found.group(1)}") from None


def pages_are_of_a_release(root: Path) -> None:
    """No page has a placeholder, or says that there is no release."""
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        text = " ".join(path.read_text(encoding="utf-8").split())
        if found := [placeholder for placeholder in PLACEHOLDERS if placeholder in text]:
            raise Failure(f"{path.relative_to(root)} says {found[0]!r}")


def project_has_an_address(root: Path) -> None:
    """The package names the project's address."""
    if "[project.urls]" not in (root / "pyproject.toml").read_text(encoding="utf-8"):
        raise Failure("pyproject.toml has no [project.urls]: the index would show no way to the source")


FACTS: tuple[Callable[[Path], None], ...] = (
    version_is_one_of_a_release,
    all_is_committed_on_main,
    version_is_new,
    changelog_names_the_version,
    pages_are_of_a_release,
    project_has_an_address,
)


def _tag(root: Path) -> str:
    return f"v{version.of_package(root)}"
