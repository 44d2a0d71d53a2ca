"""The demo: it proves what it shows, it reports what is wrong, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis
from celery import Celery

from celery_pgbeat.cli.demo.proof import Occurrence, Proof, Record, Row, count, due_between
from celery_pgbeat.cli.demo.servers import Servers
from celery_pgbeat.embedded.watchdog import descendants
from tests.harness.rows import sql
from tests.harness.usage import is_alive
from tests.harness.wait import eventually

SCRIPT = Path(sys.executable).with_name("celery-pgbeat")
NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
WINDOW = (NOON, NOON + 10 * SECOND)
ROW = Row("tick", "every 2s", "UTC", NOON, "default", "sql")
DUE = due_between([ROW], *WINDOW)


@contextmanager
def running(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
    process = subprocess.Popen(
        [SCRIPT, "demo", *words],
        env={**clean, "TERM": "dumb", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(*words: str, **environment: str) -> tuple[int, str, str]:
    with running(*words, **environment) as demo:
        out, err = demo.communicate(timeout=150)
        return demo.returncode, out, err


def test_the_demo_kills_a_beat_and_proves_that_nothing_is_lost_or_doubled_and_serves_the_dashboard_until_ctrl_c() -> (
    None
):
    with running("--seconds", "15", "--web", "--keep") as demo:
        assert demo.stdout is not None
        out = ""
        for line in demo.stdout:
            out += line
            if line.startswith("try ") and "until Ctrl-C" in out:
                break
        (address,) = re.findall(r"the dashboard is at (http://\S+)", out)
        page = httpx2.get(f"{address}tasks", timeout=30)
        below = descendants(demo.pid)
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=30)

    assert (0, "") == (demo.returncode, err), out + err
    for told in ("kill -9 beat-", "is frozen", "is started again", "continues (SIGCONT)"):
        assert told in out
    assert "insert into pgbeat.periodic_task" in out
    assert "@beat.periodic_task(" in out
    assert re.search(r"^psql +PGPASSFILE=\S+ \S*psql postgresql://postgres@", out, re.MULTILINE)
    proof, verdict, _ = re.split("^(Passed: .*)$", out, flags=re.MULTILINE)
    *_, last_frame = (line for line in proof.splitlines() if "; sent by beat-" in line)
    lines = [line.split() for line in proof.splitlines()[-7:-1]]
    assert ["due", "sent", "skipped", "started", "lost", "doubled"] == [line[0] for line in lines]
    due, sent, skipped, started, lost, doubled = (int(line[1]) for line in lines)
    assert (0, 0) == (lost, doubled)
    assert due == started + skipped
    assert sent == started
    assert sent == sum(map(int, re.findall(r"beat-\d (\d+)", proof.splitlines()[-6])))
    assert sent == sum(map(int, re.findall(r"beat-\d (\d+)", last_frame)))
    assert verdict.startswith(f"Passed: each of the {due} ")
    assert due >= 15 * 8  # eight rows are due each second, and some less often
    assert skipped > 0  # the slow one
    assert (200, True) == (page.status_code, "ship-orders" in page.text)
    assert "you may change things" in page.text
    eventually(lambda: not [pid for pid in below if is_alive(pid)], 30, "the end of all that it had started")
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(address)


def test_what_a_killed_worker_of_the_demo_has_received_is_removed_and_what_others_have_is_not(
    database: str, redis_url: str
) -> None:
    with Celery(broker=redis_url) as app, Servers(database, redis_url) as servers:
        for queue in (servers.queue, "another"):
            app.send_task("a.task", queue=queue)
        with app.connection() as connection:
            for queue in (servers.queue, "another"):
                assert connection.default_channel.basic_get(queue) is not None  # and never acknowledged
            connection.default_channel.qos.restore_at_shutdown = False  # as if killed

    with redis.Redis.from_url(redis_url) as client:
        (kept,) = client.hvals("unacked")
        assert "another" == json.loads(kept)[2]
        assert 1 == client.zcard("unacked_index")


def test_the_demo_on_given_servers_reports_what_is_lost_and_doubled_and_removes_its_schema_and_its_keys(
    database: str, redis_url: str
) -> None:
    with running("--seconds", "15", "--json", PGBEAT_URL=database, CELERY_BROKER_URL=redis_url) as demo:
        assert demo.stderr is not None
        for line in demo.stderr:
            if "counting for" in line:
                (begun,) = sql(database, "select clock_timestamp() as at")
            if "kill -9 beat-" in line:
                break
        (schema,) = sql(database, "select nspname as name from pg_namespace where nspname like 'pgbeat_demo%%'")
        table = f'"{schema["name"]}".demo_start'
        counted = f"select distinct periodic_task as name from {table} where scheduled_for > %(since)s"
        tampered = {"shop-1", "ship-orders"}
        eventually(
            lambda: tampered <= {row["name"] for row in sql(database, counted, since=begun["at"])},
            30,
            "both have a start that counts",
        )
        newest = f"select ctid from {table} where periodic_task = %(name)s order by scheduled_for desc limit 1"
        sql(database, f"delete from {table} where ctid = ({newest})", name="shop-1")
        sql(database, f"insert into {table} select * from {table} where ctid = ({newest})", name="ship-orders")
        out, err = demo.communicate(timeout=90)

    assert demo.returncode == 1
    proof = json.loads(out)
    assert (False, 1, 1, 0) == (proof["holds"], proof["lost"], proof["doubled"], proof["stray"])
    assert proof["due"] == proof["started"] + sum(proof["skipped"].values()), "one start too few, and one too many"
    assert ": 1 lost, 1 started twice." in err
    assert "neither started nor skipped: shop-1 " in err
    assert "started more than once: ship-orders " in err
    assert [] == sql(database, "select nspname from pg_namespace where nspname like 'pgbeat%%'")
    with redis.Redis.from_url(redis_url) as client:
        assert [] == client.keys("*")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_a_demo_that_is_ended_leaves_no_process_behind(number: signal.Signals) -> None:
    with running("--seconds", "30") as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "counting for" in line:
                break
        below = descendants(demo.pid)
        demo.send_signal(number)
        status = demo.wait(30)

        assert len(below) > 10  # servers, beats, a worker with its pool, and a watchdog for each
        eventually(lambda: not [pid for pid in below if is_alive(pid)], 30, "the end of all that it had started")
        assert status == (-number if number == signal.SIGKILL else 128 + number)


@pytest.mark.parametrize(
    ("words", "environment", "status", "error"),
    [
        (["--broker", "redis://:hush@127.0.0.1:1/0"], {}, 1, "cannot be used: OperationalError: Error 111"),
        ([], {"PGBEAT_URL": "postgresql://u:hush@127.0.0.1:1/none"}, 3, "is not usable"),
        (["--seconds", "1"], {}, 2, "--seconds"),
    ],
)
def test_a_demo_that_cannot_begin_says_why_on_one_line(
    words: list[str], environment: dict[str, str], status: int, error: str
) -> None:
    found, out, err = finished(*words, **environment)

    assert (status, "") == (found, out)
    assert error in err
    assert "hush" not in err
    assert "Traceback" not in err


def record(occurrence: Occurrence, **changes: Any) -> Record:
    name, instant = occurrence
    return replace(Record(name, instant, instant, None, sent=True, sends=1), **changes)


def judged(records: list[Record], starts: list[Occurrence]) -> Proof:
    return count(DUE, records, starts, WINDOW)


def test_the_due_instants_are_those_after_the_start_up_to_the_end() -> None:
    assert [("tick", NOON + number * 2 * SECOND) for number in range(1, 6)] == sorted(DUE)


def test_a_perfect_run_is_proven() -> None:
    proof = judged([record(each) for each in DUE], list(DUE))

    assert proof.holds
    assert (5, 5, 0, 5) == (proof.due, proof.sent, proof.sent_again, proof.started)


def test_a_start_that_is_missing_is_lost() -> None:
    gone = max(DUE)
    proof = judged([record(each) for each in DUE], [each for each in DUE if each != gone])

    assert [gone] == proof.lost
    assert not proof.holds


def test_an_occurrence_recorded_with_a_reason_is_skipped_and_not_lost() -> None:
    first, *rest = sorted(DUE)
    proof = judged([record(first, reason="overlap", sent=False)], rest)

    assert {"overlap": 1} == proof.skipped
    assert (4, [], True) == (proof.started, proof.lost, proof.holds)


def test_a_record_of_several_occurrences_counts_for_each_of_them() -> None:
    first, *rest, last = sorted(DUE)
    counted = record(first, last_scheduled_for=rest[-1][1], reason="too_late", sent=False)
    proof = judged([counted], [last])

    assert {"too_late": 4} == proof.skipped
    assert proof.holds


def test_the_beats_that_sent_are_counted_each() -> None:
    first, *rest = (record(each, beat="beat-2") for each in DUE)
    proof = judged([replace(first, beat="beat-1"), *rest], list(DUE))

    assert {"beat-1": 1, "beat-2": 4} == proof.sent_by
    assert "  sent 5        handed to the broker (beat-1 1, beat-2 4)" in proof.lines()


def test_the_verdict_says_in_words_whether_the_proof_holds() -> None:
    _, *others = sorted(DUE)
    well = judged([record(each) for each in DUE], list(DUE))
    ill = judged([record(each) for each in DUE], [*others, others[0], ("tick", NOON + SECOND)])

    assert well.verdict == well.lines()[-1]
    assert well.verdict.startswith("Passed: each of the 5 ticks that were due was started once or skipped")
    assert ill.verdict.endswith(": 1 lost, 1 started twice, 1 started without being due.")
    assert "Failed: nothing was due, so nothing is proven." == count(set(), [], [], WINDOW).verdict


def test_a_second_start_is_doubled() -> None:
    twice = min(DUE)
    proof = judged([record(each) for each in DUE], [*DUE, twice])

    assert [twice] == proof.doubled
    assert not proof.holds
    assert "doubled 1" in "\n".join(proof.lines())


def test_a_start_that_was_not_due_is_stray() -> None:
    proof = judged([record(each) for each in DUE], [*DUE, ("tick", NOON + SECOND)])

    assert not proof.holds
    assert "stray 1" in "\n".join(proof.lines())


def test_nothing_due_proves_nothing() -> None:
    assert not count(set(), [], [], WINDOW).holds
