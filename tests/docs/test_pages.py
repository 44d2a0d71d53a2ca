"""The code blocks of the pages run, and their links have targets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import celery_pgbeat
from celery_pgbeat.postgres.database import Database
from tests.docs import python_page, settings_page, shell_page, sql_page
from tests.docs.pages import EXAMPLES, PAGES, ROOT, blocks, name_of, noted

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
KNOWN_LANGUAGES = {"python", "sql", "sh", ""}  # the last: drawings, and what programs print


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_runs_from_top_to_bottom(page: Path, migrated_database: str, redis_url: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.run_page", str(page)],
        cwd=ROOT,
        env={**clean, "PGBEAT_URL": migrated_database, "CELERY_BROKER_URL": redis_url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=name_of)
def test_every_block_is_in_a_language_that_is_run(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= KNOWN_LANGUAGES


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=name_of)
def test_every_link_points_to_something(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if not link.startswith(("http://", "https://", "#"))]

    assert [] == [link for link in links if not (page.parent / unquote(link.partition("#")[0])).exists()]


def test_the_quickstart_defines_each_task_of_its_schedule() -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")

    in_schedule, defined = (set(re.findall(rf'{before}"(.*?)"', text)) for before in ('"task": ', r"@app\.task\(name="))

    assert in_schedule
    assert in_schedule <= defined


def test_a_page_that_does_not_run_fails_the_test(tmp_path: Path, migrated_database: str, redis_url: str) -> None:
    faults = {
        "python": "assert 1 == 2",
        "sql": "select nothing from nowhere;",
        "sh": "celery-pgbeat show nobody",
    }
    for language, text in faults.items():
        page = tmp_path / f"{language}.md"
        page.write_text(f"# Wrong\n\n```{language}\n{text}\n```\n")
        done = subprocess.run(
            [sys.executable, "-m", "tests.docs.run_page", str(page)],
            cwd=ROOT,
            env={**os.environ, "PGBEAT_URL": migrated_database, "CELERY_BROKER_URL": redis_url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode != 0, language


@pytest.mark.parametrize("made", [python_page, settings_page, shell_page, sql_page], ids=lambda made: made.PAGE.name)
def test_a_page_that_is_made_from_the_code_says_so_below_its_title(made: ModuleType) -> None:
    text = made.PAGE.read_text(encoding="utf-8")

    assert noted(text, made.NOTE) == text


def test_the_table_of_settings_is_that_of_the_code() -> None:
    text = settings_page.PAGE.read_text(encoding="utf-8")

    assert settings_page.rendered() in text, "run: python -m tests.docs.settings_page"


def test_the_page_of_python_equals_the_signatures_and_docstrings() -> None:
    text = python_page.PAGE.read_text(encoding="utf-8")

    assert python_page.rendered() in text, "run: python -m tests.docs.python_page"


def test_the_page_of_python_has_each_public_name() -> None:
    text = python_page.PAGE.read_text(encoding="utf-8")
    methods = [f"### beat.{name}" for name in dir(celery_pgbeat.PgBeat) if not name.startswith("_")]
    names = [name for name in celery_pgbeat.__all__ if name != "__version__"]

    assert [] == [title for title in methods if f"\n{title}\n" not in text]
    assert [] == [name for name in names if f"# {name}\n" not in text]


def test_the_page_of_the_shell_equals_the_help_of_the_commands() -> None:
    text = shell_page.PAGE.read_text(encoding="utf-8")

    # Lines break where this version of click breaks them.
    assert text.endswith("\n")
    assert " ".join(shell_page.rendered().split()) in " ".join(text.split()), "run: python -m tests.docs.shell_page"


def test_the_page_of_sql_equals_the_catalogue(migrated_database: str) -> None:
    text = sql_page.PAGE.read_text(encoding="utf-8")

    with closing(Database(migrated_database)) as database:
        assert sql_page.rendered(database) in text, "run: python -m tests.docs.sql_page"
