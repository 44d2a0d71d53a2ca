"""The checklist of a release sees what is missing, in a repository of its own. `tox -e package` builds the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from celery_pgbeat import __version__
from release import package
from release.failure import Failure

ROOT = Path(__file__).parents[2]
READY = {
    "celery_pgbeat/__init__.py": '__version__ = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0 (2026-11-25)\n\n- A thing.\n\n## 1.1.0 (2026-10-01)\n",
    "docs/page.md": "# A page\n",
    "LICENSE": "All may use it.\n",
    "pyproject.toml": "[project.urls]\n",
}


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "A change")


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
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


def test_a_ready_repository_gets_the_commands_to_tag_and_upload(repository: Path) -> None:
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
        ("docs/page.md", "pip install './celery-pgbeat[web]'\n", "docs/page.md says './celery-pgbeat['"),
        ("examples/x/Dockerfile", "# There is no release yet: copy\n", "Dockerfile says 'There is no release yet'"),
        ("pyproject.toml", "[project]\n", "pyproject.toml has no [project.urls]"),
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


def archived(repository: Path, *left_out: str, extra: tuple[str, ...] = ()) -> Path:
    """Make an sdist of the repository, without some files and with others."""
    path = repository.parent / "made.tar.gz"
    with tarfile.open(path, "w:gz") as files:
        for name in (*(name for name in READY if name not in left_out), "PKG-INFO", *extra):
            files.addfile(tarfile.TarInfo(f"celery_pgbeat-1.2.0/{name}"))
    return path


def test_an_sdist_has_each_file_of_the_commit_and_no_other(repository: Path) -> None:
    package.check_sdist(repository, archived(repository))

    with pytest.raises(Failure, match=r"the sdist lacks docs/page\.md"):
        package.check_sdist(repository, archived(repository, "docs/page.md"))
    with pytest.raises(Failure, match=r"the sdist has what no commit has: secret\.env"):
        package.check_sdist(repository, archived(repository, extra=("secret.env",)))


def zipped(repository: Path, *names: str) -> Path:
    path = repository.parent / "made.whl"
    with zipfile.ZipFile(path, "w") as files:
        for name in names:
            files.writestr(name, "")
    return path


def test_a_wheel_has_each_file_of_the_package_and_the_license(repository: Path) -> None:
    code, license_ = "celery_pgbeat/__init__.py", "celery_pgbeat-1.2.0.dist-info/licenses/LICENSE"
    package.check_wheel(repository, zipped(repository, code, license_))

    with pytest.raises(Failure, match=r"the wheel lacks celery_pgbeat/__init__\.py"):
        package.check_wheel(repository, zipped(repository, license_))
    with pytest.raises(Failure, match=r"the wheel has what no commit has: docs/page\.md"):
        package.check_wheel(repository, zipped(repository, code, license_, "docs/page.md"))
    with pytest.raises(Failure, match="the wheel has no LICENSE"):
        package.check_wheel(repository, zipped(repository, code))


def test_two_builds_that_differ_are_no_release(tmp_path: Path) -> None:
    for folder, text in (("one", "1"), ("same", "1"), ("other", "2")):
        write(tmp_path, f"{folder}/it.whl", text)
    package.compare(tmp_path / "one", tmp_path / "same")

    with pytest.raises(Failure, match="two builds of one commit differ"):
        package.compare(tmp_path / "one", tmp_path / "other")


def test_the_changelog_of_this_repository_begins_with_its_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert __version__ == re.findall(r"^## (\S+) \(", text, re.MULTILINE)[0]


def test_the_version_is_written_in_one_place() -> None:
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_each_action_of_a_workflow_is_pinned_by_the_hash_of_a_commit() -> None:
    workflows = [path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    used = [line for text in workflows for line in re.findall(r"uses: (.+)", text)]

    assert 5 <= len(used)
    assert [] == [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", line)]
