"""Runs the blocks of one page from top to bottom, as a reader would: Python in one session, SQL, and our commands.

A page about a project in examples/ runs in that project; what it quotes from a file must be in the file.

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

from tests.docs.pages import PROJECTS, Block, blocks

WRITTEN = {"postgresql://localhost/shop": "PGBEAT_URL", "redis://localhost": "CELERY_BROKER_URL"}
OURS = ("celery-pgbeat ",)
OF_A_PROJECT = ("celery -A shop pgbeat ", "python manage.py ")
LEFT_OUT = ("celery-pgbeat demo", "celery-pgbeat web")  # they have tests of their own
ALLOWED = {"celery-pgbeat health": 3, "celery-pgbeat doctor": 1}  # no beat runs here


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


def run_shell(block: Block, page: str, ours: tuple[str, ...]) -> None:
    """Run the lines that call our command; the others start what a page cannot, and the examples do."""
    for number, line in enumerate(block.text.splitlines(), block.line):
        command = line.partition(" #")[0].strip()
        if not command.startswith(ours) or command.startswith(LEFT_OUT):
            continue
        words = shlex.split(command)
        script = Path(sys.executable).with_name(words[0])
        done = subprocess.run([script, *words[1:]], capture_output=True, text=True, check=False)
        if done.returncode not in (0, ALLOWED.get(command)):
            raise SystemExit(f"{page}:{number}: {command}\n{done.stdout}{done.stderr}")


def enter(project: Path) -> types.ModuleType:
    """Go to a project of the examples, and return a session in it."""
    os.chdir(project)
    sys.path.insert(0, str(project))
    os.environ["DATABASE_URL"] = os.environ["PGBEAT_URL"]
    if (project / "manage.py").exists():
        import django

        os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
        django.setup()
    return types.ModuleType("session")


def check_excerpt(block: Block, project: Path, page: str) -> None:
    """Fail if the project's file does not have the block's text."""
    text = (project / str(block.file)).read_text(encoding="utf-8")
    if block.excerpt not in text:
        raise SystemExit(f"{page}:{block.line}: {block.file} of {project} does not say this")


def main(page: Path) -> None:
    """Run a page."""
    project = PROJECTS.get(page)
    session = types.ModuleType("shop") if project is None else enter(project)
    sys.modules[session.__name__] = session
    for block in blocks(page):
        if project is not None and block.file is not None:
            check_excerpt(block, project, str(page))
        elif block.language == "python":
            run_python(block, str(page), session)
        elif block.language == "sql":
            run_sql(block)
        elif block.language == "sh":
            run_shell(block, str(page), OURS if project is None else OURS + OF_A_PROJECT)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
