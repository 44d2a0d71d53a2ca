"""The next version of the package: a copy of it whose schema has one more migration, the example of docs/recipes.md."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

from celery_pgbeat.postgres.migrate import latest
from tests.harness.processes import ROOT

NEXT = "next"  # the version of the copy

DEFINITION = """
comment on column {schema}.periodic_task.note is 'What people should know.';
"""


def next_version(folder: Path, min_compatible: int) -> dict[str, str]:
    """Make a copy of the package with the next version of the schema; return the environment of nodes that run it."""
    package = with_one_more_migration(folder)
    with (package / "postgres" / "definitions" / "public" / "comments.sql").open("a") as comments:
        comments.write(DEFINITION)
    assign(package / "postgres" / "migrate.py", "MIN_COMPATIBLE", min_compatible)
    assign(package / "__init__.py", "__version__", NEXT)
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


def with_one_more_migration(folder: Path, begins: str = "-- A note on") -> Path:
    """Copy the package into a folder, add the migration of an example that begins so, and return the copy."""
    package = folder / "celery_pgbeat"
    shutil.copytree(ROOT / "celery_pgbeat", package, ignore=shutil.ignore_patterns("__pycache__"))
    recipe = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    (migration,) = re.findall(rf"```sql\n( *{begins} .*?)```", recipe, re.DOTALL)
    (package / "postgres" / "migrations" / f"{latest() + 1:04}_example.sql").write_text(dedent(migration))
    return package


def assign(module: Path, name: str, value: Any) -> None:
    """Give a module's constant another value."""
    text, times = re.subn(rf"^{name} = .*", f"{name} = {value!r}", module.read_text(), flags=re.MULTILINE)
    assert 1 == times
    module.write_text(text)
