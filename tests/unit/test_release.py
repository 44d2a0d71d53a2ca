"""The checklist of a release sees what is missing, in a repository of its own. `tox -e package` builds the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from celery_pgbeat import __version__

ROOT = Path(__file__).parents[2]
READY = {
    "celery_pgbeat/__init__.py": '__version__ = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0 (2026-11-25)\n\n- A thing.\n\n## 1.1.0 (2026-10-01)\n",
    "docs/page.md": "# A page\n",
}


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "A change")


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch", "main")
    for name, text in READY.items():
        write(tmp_path, name, text)
    commit(tmp_path)
    return tmp_path


def walked(repository: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "release", "--root", str(repository), "checklist", "--facts"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_repository_that_is_ready_is_told_how_to_tag_and_upload(repository: Path) -> None:
    done = walked(repository)

    assert (0, "") == (done.returncode, done.stderr)
    assert "git tag -a v1.2.0" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("celery_pgbeat/__init__.py", '__version__ = "1.2.0.dev1"\n', "__version__ is '1.2.0.dev1'"),
        ("celery_pgbeat/__init__.py", "__version__ = read()\n", "has no line"),
        ("celery_pgbeat/__init__.py", '__version__ = "1.3.0"\n', "does not begin with ## 1.3.0"),
        ("CHANGELOG.md", "# Changelog\n\n## 1.2.0 (unreleased)\n", "says 'unreleased' for the date"),
        ("docs/page.md", "# A page\n\nThere is no\nrelease yet.\n", "docs/page.md says 'There is no release yet'"),
        ("README.md", "git clone https://example.com/your-name/it\n", "README.md says 'your-name/'"),
    ],
)
def test_what_a_file_lacks_ends_the_walk(repository: Path, name: str, text: str, said: str) -> None:
    write(repository, name, text)
    commit(repository)

    done = walked(repository)

    assert 1 == done.returncode
    assert said in done.stderr


def test_what_is_not_committed_ends_the_walk(repository: Path) -> None:
    write(repository, "docs/page.md", "# Another page\n")

    assert "not committed: docs/page.md" in walked(repository).stderr


def test_another_branch_and_a_used_version_end_the_walk(repository: Path) -> None:
    git(repository, "tag", "v1.2.0")
    assert "the tag v1.2.0 exists" in walked(repository).stderr

    git(repository, "switch", "--create", "idea")
    assert "the branch is 'idea'" in walked(repository).stderr


def test_the_changelog_of_this_repository_begins_with_its_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert __version__ == re.findall(r"^## (\S+) \(", text, re.MULTILINE)[0]


def test_the_version_is_written_in_one_place() -> None:
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
