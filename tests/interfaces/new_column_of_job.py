"""What a column of a job must be seen in: run with a copy of the package that has the column `subject`.

`python -m tests.interfaces.new_column_of_job` with the copy first on the path, and PGBEAT_URL for a database that the
package without the column has migrated. See `test_columns_of_job.py`.
"""

from __future__ import annotations

import json
import os
from contextlib import closing

from click.testing import CliRunner

from celery_pgbeat import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.pages.jobs import read_job
from celery_pgbeat.web.reading import Reader
from tests.docs import python_page, sql_page
from tests.harness.databases import migrate_database
from tests.harness.session import Session
from tests.harness.ticks import beat as store_of
from tests.harness.ticks import decided, make_due

URL = os.environ["PGBEAT_URL"]
SAID = "the night's report"


def in_sql(session: Session, job: str) -> None:
    assert session.value("select subject from pgbeat.job where id = %s", job) == SAID
    session.rows(roles_script("pgbeat"))
    for table in ("active_job", "finished_job"):
        assert session.value(f"select has_column_privilege('pgbeat_reader', 'pgbeat.{table}', 'subject', 'select')")


def for_people(beat: PgBeat, job: str) -> None:
    found = beat.job(job)
    assert found.subject == SAID
    shown = CliRunner().invoke(main, ["job", "show", job], catch_exceptions=False).output
    assert SAID in next(line for line in shown.splitlines() if line.startswith("subject"))
    listed = CliRunner().invoke(main, ["job", "show", job, "--json"], catch_exceptions=False).output
    assert json.loads(listed)["subject"] == SAID
    with closing(Reader(beat)) as reader, reader.database.reading():
        assert ("Subject", SAID) in read_job(reader, Query({"id": job})).values["others"]


def in_the_docs() -> None:
    with closing(Database(URL)) as database:
        page = sql_page.rendered(database)
    assert "| subject | text |  | The subject of its periodic task. |" in page
    assert "| subject | `str | None` | The subject of its periodic task. |" in python_page.rendered().replace(
        "\\|", "|"
    )


if __name__ == "__main__":
    migrate_database(URL)
    session, beat, store = Session(URL), PgBeat(url=URL), store_of(URL)
    make_due(store, "nightly", subject=SAID)
    store.submit([decided(row) for row in store.mark(1)], "UTC", True, True)
    (job,) = (str(row["id"]) for row in session.rows("select id from pgbeat.active_job"))
    in_sql(session, job)
    for_people(beat, job)
    lost = "select (pgbeat.lost(active_job)).restart_data ->> 'subject' from pgbeat.active_job"
    assert session.value(lost) == SAID
    beat.cancel_job(job)
    assert session.value("select subject from pgbeat.finished_job where id = %s", job) == SAID
    for_people(beat, job)
    in_the_docs()
