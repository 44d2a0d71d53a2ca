"""What real processes say of themselves: who they are, where they work, what they refuse, what they may not do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest
from psycopg2 import sql as psql
from sqlalchemy.engine import make_url

from tests.harness.processes import Cluster
from tests.harness.rows import sql

NO_GRANT = "may not create the schema 'pgbeat'"


@pytest.fixture
def stranger(database: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of an empty database for a user who may only connect."""
    name = unique_name()
    execute(database, "create role {} login password 's3cr3t'", name)
    yield make_url(database).set(username=name, password="s3cr3t").render_as_string(hide_password=False)
    execute(database, "drop owned by {}", name)
    execute(database, "drop role {}", name)


def execute(url: str, text: str, *names: str) -> None:
    """Run a statement as the owner of the database."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(psql.SQL(text).format(*map(psql.Identifier, names)))


def test_a_beat_and_a_worker_say_who_they_are_and_where_they_work(cluster: Cluster) -> None:
    beat, worker = cluster.beat(), cluster.worker()
    beat.wait_for_log("works on", 20)
    worker.wait_for_log("guards and tracks", 20)

    (line,) = [line for line in beat.log.splitlines() if "works on" in line]
    assert f"Beat {socket.gethostname()} (process {beat.pid}) works on the schema 'pgbeat' at postgresql" in line
    (line,) = [line for line in worker.log.splitlines() if "guards and tracks" in line]
    assert "This worker guards and tracks the jobs of periodic tasks, in the schema 'pgbeat' at postgresql" in line
    (node,) = sql(cluster.database, "select id from pgbeat.node where role = 'beat'")
    assert node["id"] not in beat.log


def test_a_beat_whose_user_may_not_migrate_names_the_grant_in_one_line_and_works_once_it_has_it(
    cluster: Cluster, database: str, stranger: str
) -> None:
    user, name = make_url(stranger).username, make_url(stranger).database
    assert user is not None
    assert name is not None
    beat = cluster.beat(environment={"PGBEAT_URL": stranger})
    beat.wait_for_log(NO_GRANT, 20)

    (line,) = [line for line in beat.log.splitlines() if NO_GRANT in line]
    assert f"grant create on database {name} to {user}." in line
    assert "celery-pgbeat migrate" in line
    assert "celery-pgbeat sql" in line
    assert "Traceback" not in beat.log
    assert "s3cr3t" not in beat.log

    execute(database, "grant create on database {} to {}", name, user)

    beat.wait_for_log("works on", 20)
    assert 1 == beat.log.count(NO_GRANT)
