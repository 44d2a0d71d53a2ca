"""P1, P2, P3, P10: if the answer of a statement is lost, its outcome is unknown, and that must do no harm."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy.engine import make_url

from celery_pgbeat.postgres.statements import files, statement
from tests.acceptance.decisions import decided, gaps, left_from
from tests.harness import checker
from tests.harness.processes import Cluster
from tests.harness.proxy import Proxy, proxy
from tests.harness.rows import insert, insert_many, jobs, sql
from tests.harness.sending import Sender, sender
from tests.harness.wait import eventually

LEASE, POLL = 2.0, 0.5  # seconds
MARGIN = 3.0  # seconds that a busy machine may add to them
SECOND = timedelta(seconds=1)
ROWS = 6
UNHEARD, UNANSWERED = "unheard", "unanswered"  # the connection breaks before the server has read it, or when it is done
BEATS = ["plan", "mark_or_submit", "submit", "confirm", "recover"]
WORKERS = ["start", "finish_many", "retry"]


@pytest.fixture(params=["psycopg2", "psycopg"])
def door(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Proxy]:
    """The way to Postgres for the processes that the test is about, with either driver."""
    url = make_url(cluster.database).set(drivername=f"postgresql+{request.param}")
    with proxy(url.render_as_string(hide_password=False)) as made:
        yield made


def first_words(name: str) -> bytes:
    """Return how a statement begins on the line, whichever driver fills in its parameters."""
    return statement(name, "pgbeat").partition("%(")[0].encode()


def set_trap(door: Proxy, name: str, manner: str) -> int:
    """Have the next such statement unheard or unanswered; return how many cuts there have been."""
    if manner == UNHEARD:
        door.cut_at = first_words(name)
    else:
        door.unanswered_at = first_words(name)
    return door.cuts


def struck(door: Proxy, before: int) -> bool:
    """Tell whether a connection was cut since the trap was set; then it is taken away."""
    if door.cuts == before:
        return False
    door.cut_at = door.unanswered_at = None
    return True


def test_each_statement_can_be_recognised_by_its_first_words() -> None:
    names = set(files())
    not_run = {"end_unstarted", "requeue", "skip"}  # they begin like others, and no test here runs them
    texts = {name: statement(name, "pgbeat").encode() for name in names - not_run}

    for name in (*BEATS, *WORKERS):
        assert [name] == [other for other, text in texts.items() if first_words(name) in text]


def test_p1_p2_a_beat_that_loses_the_answer_of_any_statement_loses_and_doubles_nothing(
    cluster: Cluster, door: Proxy
) -> None:
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_poll": POLL}
    insert_many(cluster.database, ROWS)
    sql(cluster.database, "update pgbeat.periodic_task set catchup = 'all'")
    insert(cluster.database, "blocked", args=["blocked", 1.2])
    worker = cluster.worker()
    beat = cluster.beat(environment={"PGBEAT_URL": door.url})
    eventually(lambda: len(cluster.probe.runs()) >= ROWS, 20, "a round")

    for name in BEATS:
        for manner in (UNHEARD, UNANSWERED):
            if name == "confirm":
                worker.freeze()  # else it has started the jobs before a beat can send them again
            before = set_trap(door, name, manner)
            eventually(
                lambda name=name, before=before: struck(door, before) or make_necessary(cluster.database, name),
                20,
                f"{name} is {manner}",
                every=0.3,
            )
            (cut,) = sql(cluster.database, "select clock_timestamp() as at")
            eventually(
                lambda at=cut["at"]: not left_from(cluster.database, at),
                LEASE + POLL + MARGIN,
                f"what was due when {name} was {manner} is dealt with",
            )
            worker.resume()
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 20, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert beat.is_running()
    assert {1} == set(decided(cluster.database, SECOND).values())
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)
    assert [] == checker.early(runs)
    # Only messages whose confirm got no answer may be sent again, under the same ids.
    assert worker.log.count("second message of job") <= ROWS + 1


def make_necessary(url: str, statement: str) -> None:
    """Make a statement necessary that no beat would send otherwise."""
    name = f"{statement}-{uuid.uuid4()}"
    if statement == "plan":
        insert(url, name, "2030-01-01")
    elif statement == "submit":
        insert(url, name, None)
        sql(url, "update pgbeat.periodic_task set next_run_at = now() where name = %(name)s", name=name)
    elif statement == "recover":
        insert(url, name, None)
        sql(url, "select pgbeat.trigger(%(name)s)", name=name)


@pytest.fixture
def sending(cluster: Cluster) -> Iterator[Sender]:
    with sender(cluster) as made:
        yield made


def test_p3_a_worker_that_loses_the_answer_of_any_statement_starts_each_attempt_once_and_reports_its_end(
    cluster: Cluster, sending: Sender, door: Proxy
) -> None:
    worker = cluster.worker(environment={"PGBEAT_URL": door.url})
    for name in WORKERS:
        task, attempts = ("app.flaky", 2) if name == "retry" else ("app.probe", 1)
        for manner in (UNHEARD, UNANSWERED):
            label = f"{name} {manner}"
            before = set_trap(door, name, manner)
            job = sending.job(task=task)
            sending.send(job, task, label, *((1,) if name == "retry" else ()))
            eventually(lambda before=before: struck(door, before), 20, label)
            sending.wait_for(job, "succeeded")
            assert list(range(attempts)) == [run.attempt for run in cluster.probe.runs(label)]
    assert worker.is_running()
    assert "second message of job" not in worker.log
    assert "unguarded" not in worker.log
