"""Runs the blocks of one page from top to bottom, as a reader would: Python in one session, SQL, and our commands.

A program of its own: `python -m tests.docs.run_page PAGE`, with the URLs of a migrated database and of a broker in
PGBEAT_URL and CELERY_BROKER_URL. They take the place of those that the pages write.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import types
from contextlib import closing
from pathlib import Path

import psycopg2

from tests.docs.pages import Block, blocks

WRITTEN = {"postgresql://localhost/shop": "PGBEAT_URL", "redis://localhost": "CELERY_BROKER_URL"}
OURS = ("celery-pgbeat ",)
LEFT_OUT = ("celery-pgbeat demo",)  # it has a test of its own
ALLOWED = {"celery-pgbeat health": 3}  # no beat runs here


def run_python(block: Block, page: str, session: types.ModuleType) -> None:
    """Run a block in the page's session; a traceback names the line of the page."""
    text = block.text
    for url, variable in WRITTEN.items():
        text = text.replace(url, os.environ[variable])
    exec(compile("\n" * (block.line - 1) + text, page, "exec"), vars(session))


def run_sql(block: Block) -> None:
    """Run a block as psql does, one statement after the other."""
    with closing(psycopg2.connect(os.environ["PGBEAT_URL"])) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(block.text)


def run_shell(block: Block, page: str) -> None:
    """Run the lines that call our command; the others start what a page cannot, and the examples do."""
    for number, line in enumerate(block.text.splitlines(), block.line):
        command = line.partition(" #")[0].strip()
        if not command.startswith(OURS) or command.startswith(LEFT_OUT):
            continue
        words = shlex.split(command)
        script = Path(sys.executable).with_name(words[0])
        done = subprocess.run([script, *words[1:]], capture_output=True, text=True, check=False)
        if done.returncode not in (0, ALLOWED.get(command)):
            raise SystemExit(f"{page}:{number}: {command}\n{done.stdout}{done.stderr}")


def main(page: Path) -> None:
    """Run a page."""
    session = types.ModuleType("shop")
    sys.modules["shop"] = session
    for block in blocks(page):
        if block.language == "python":
            run_python(block, str(page), session)
        elif block.language == "sql":
            run_sql(block)
        elif block.language == "sh":
            run_shell(block, str(page))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
