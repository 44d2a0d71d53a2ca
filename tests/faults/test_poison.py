"""P6: as many bad rows as good ones, of every kind: they do not delay the good ones, and each is logged once."""

from __future__ import annotations

import json
import random
import re
import socket
import string
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.faults.conftest import Proof
from tests.faults.lengths import MARKS, SECONDS, part, within
from tests.faults.load import INBOX, Load, beats, tapped
from tests.harness.account import Limits
from tests.harness.processes import Beat, Cluster, Node
from tests.harness.rows import JSON_COLUMNS, jobs, sql
from tests.harness.usage import memory
from tests.harness.wait import eventually

pytestmark = MARKS

ROWS = part(1000, least=100)
EACH_SECOND = {"schedule": "every 1s", "overlap": "allow"}

# Schedules that nothing can plan. SQL refuses most of them, so they come past its trigger, as a damaged dump would.
UNPLANNABLE: dict[str, dict[str, Any]] = {
    "cron-range": {"schedule": "0 25 * * *"},
    "cron-impossible-date": {"schedule": "0 0 30 2 *"},
    "cron-fields": {"schedule": "* * *"},
    "cron-zone": {"schedule": "CRON_TZ=Mars/Olympus * * * * *"},
    "crontab-fields": {"schedule": "crontab: * * * *"},
    "reboot": {"schedule": "@reboot"},
    "zone": {"schedule": "every 1s", "timezone": "Mars/Olympus"},
    "interval-zero": {"schedule": "every 0s"},
    "interval-negative": {"schedule": "every -20s"},
    "interval-fast": {"schedule": "every 0.05s"},
    "iso-date": {"schedule": "R/2024-13-01T00:00:00Z/PT1H"},
    "calendar-range": {"schedule": "Mon *-*-* 88:00"},
    "rrule-frequency": {"schedule": "RRULE:FREQ=SOMETIMES"},
    "solar-place": {"schedule": "solar: sunset 99 13.4"},
    "no-kind": {"schedule": "every now and then"},
    "blackout": {"schedule": "every 1s", "blackout": ["cron: not a window"]},
}
# Rows that come due, but their messages cannot be built or may not be sent.
UNSENDABLE: dict[str, dict[str, Any]] = {
    "arguments": {**EACH_SECOND, "args": ["too", 1, True, "many"]},
    "expires": {**EACH_SECOND, "options": {"expires": "the day after tomorrow"}},
    "compression": {**EACH_SECOND, "options": {"compression": "by hand"}},
    "not-allowed": {**EACH_SECOND, "task": "os.system"},
    "link": {**EACH_SECOND, "options": {"link": [{"task": "os.system", "args": [], "kwargs": {}}]}},
    "link-error": {**EACH_SECOND, "options": {"link_error": [{"task": "os.system", "args": [], "kwargs": {}}]}},
    "chain": {**EACH_SECOND, "options": {"chain": [{"task": "os.system", "args": [], "kwargs": {}}]}},
    "pickle": {**EACH_SECOND, "options": {"serializer": "pickle"}},
    "deep": {**EACH_SECOND, "args": "[" * 800 + "]" * 800},
    "deeper": {**EACH_SECOND, "kwargs": '{"a": ' + "[" * 3000 + "]" * 3000 + "}"},
    "digits": {**EACH_SECOND, "args": f"[{'9' * 60_000}]"},
    "time-limit": {**EACH_SECOND, "options": '{"time_limit": 1e400}'},
    "queue": {**EACH_SECOND, "queue": "unacked"},
    "exchange": {**EACH_SECOND, "options": {"exchange": "celery.pidbox"}},
}
KINDS = {**UNPLANNABLE, **UNSENDABLE}


def poison(url: str, rows: int = ROWS, **others: Any) -> list[str]:
    """Insert this many bad rows, of all kinds in turn, past the trigger that checks them, as a restored dump does."""
    kinds = list(KINDS)
    names = [f"{kinds[number % len(kinds)]}-{number}" for number in range(rows)]
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        for name in names:
            row = {"name": name, "task": "app.probe", "args": [name], **KINDS[name.rpartition("-")[0]]}
            row.update({column: others[column] for column in others if row.get(column) == EACH_SECOND.get(column)})
            values = [_stored(column, value) for column, value in row.items()]
            places = ", ".join(["%s"] * len(values))
            cursor.execute(f"insert into pgbeat.periodic_task ({', '.join(row)}) values ({places})", values)
    return names


def _stored(column: str, value: Any) -> Any:
    """Return a value as it is written; text for a column of JSON is JSON that Python cannot write."""
    return json.dumps(value) if column in JSON_COLUMNS and not isinstance(value, str) else value


def explained(url: str) -> set[str]:
    """Return the rows that have a reason why they do not run: in their own column, or on their jobs."""
    problems = sql(url, "select name from pgbeat.periodic_task where problem is not null")
    given_up = [job for job in jobs(url) if job["error"] or job["reason"] == "not_allowed"]
    return {row["name"] for row in problems} | {job["periodic_task"] for job in given_up}


NAMED = re.compile(rf"({'|'.join(KINDS)})-\d+")
BY_JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def lines(beat: Beat, url: str) -> Counter[tuple[str, str]]:
    """Count a beat's lines that are no routine, by bad row and minute."""
    rows = {job["id"]: job["periodic_task"] for job in jobs(url)}
    found: Counter[tuple[str, str]] = Counter()
    for line in beat.log.splitlines():
        if ": WARNING/" in line or ": ERROR/" in line:
            told = BY_JOB.sub(lambda job: rows.get(job.group(), ""), line)
            found.update({(name.group(), line[1:17]) for name in NAMED.finditer(told)})
    return found


def test_a_thousand_bad_rows_stop_only_themselves_and_are_logged_once(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": 3, "pgbeat_allowed_tasks": ["app.*"]}
    bad = poison(cluster.database)
    running = beats(cluster, 2)
    with tapped(cluster) as tap:
        load = Load(cluster, ROWS, name="good")
        load.runs_for(SECONDS)
        account = load.settle(tap)

    proven(account, Limits(late={99: within(0.5)}))
    eventually(lambda: not set(bad) - explained(cluster.database), within(10), "each has its reason", every=0.5)
    for beat in running:
        assert [] == [(row, count) for row, count in lines(beat, cluster.database).items() if count > 1]


RESTORED = part(10_000, least=500)
BAD_EVERY = part(20, least=8)  # seconds; a bad row that can be planned gets its reason only once it has come due
GROWTH = 40 * 1024  # kB by which a process may grow while the same goes on; all that it remembers has a bound


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_a_restored_table_full_of_bad_rows_harms_neither_beats_nor_workers_nor_good_rows(
    cluster: Cluster, proven: Proof, note: Callable[[str], None]
) -> None:
    cluster.settings = {"pgbeat_lease": 3, "pgbeat_allowed_tasks": ["app.*"]}
    bad = poison(cluster.database, RESTORED, schedule=f"every {BAD_EVERY}s")
    nodes: list[Node] = [*beats(cluster, 2), cluster.worker(concurrency=2)]
    eventually(lambda: not set(bad) - explained(cluster.database), 30 + within(20), "each has its reason", every=1)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, 200, name="good", every=timedelta(seconds=4), queue=f"'{INBOX}'")
        load.runs_for(SECONDS / 3)
        before = [memory(node.pid) for node in nodes]
        load.runs_for(SECONDS)
        after = [memory(node.pid) for node in nodes]
        account = load.settle(tap, started=True)

    proven(account, Limits(late={99: within(0.5)}))
    assert [True] * 3 == [node.is_running() for node in nodes]
    assert [] == [run for run in cluster.probe.runs() if run.label in bad]
    growths = [later - earlier for earlier, later in zip(before, after, strict=True)]
    note(f"{len(bad)} bad rows; beats and worker grew by {', '.join(str(kilobytes) for kilobytes in growths)} kB")
    assert max(growths) < GROWTH


# Values at the ends of the ranges that the constraints allow: each job of the test has one of them.
LONG = "".join(random.Random(0).choices(string.ascii_letters + string.digits, k=800))  # no index can compress it
EARLIEST, LATEST = "0001-01-02 00:00+00", "9999-12-30 00:00+00"
INSTANTS = ("scheduled_for", "due_at", "created_at", "sent_at", "started_at", "marked_at")
ENDS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("run", "attempt", "sends", "resends", "refusals"), (2_000_000_000,)),
    **dict.fromkeys(("mark_lease", "pickup_deadline", "max_run_time", "min_gap"), ("366 days", "0")),
    **dict.fromkeys(INSTANTS, (EARLIEST, LATEST)),
    "busy_until": (EARLIEST, LATEST, "infinity"),
    "check_at": ("-infinity", "infinity"),
    "message": ("null", "[]", "{}", '{"args": 1, "kwargs": [], "options": 5}', '"x"'),
    "queue": ("q" * 4000, "unacked"),
    "on_lost": ("whatever",),
    "tracking": ("result", "whatever"),
    "group_name": ("no such group", LONG),
    "periodic_task": (LONG,),
}
# What else a worker's role or a dump may write, past all triggers.
ODD = (
    "insert into pgbeat.node (id, role, hostname, pid, version) "
    "values (%(host)s || ':b:n:²:0:r', 'beat', %(host)s, 1, '')",
    "insert into pgbeat.periodic_task (name, task, schedule, blackout) "
    "values ('null', 'app.probe', 'every 1h', array[null]), "
    "('two-dimensional', 'app.probe', 'every 1h', array[array['a', 'b'], array['c', 'd']])",
    "insert into pgbeat.periodic_task (name, task, schedule, options, enabled) "
    "values ('digits', 'app.probe', 'every 1h', '{\"a\": 1e5000}', false), "
    "('counts', 'app.probe', 'every 1h', '{}', false)",
    "insert into pgbeat.backfill (periodic_task, since, until) values ('digits', now() - interval '1 day', now())",
    "insert into pgbeat.backfill (periodic_task, since, until, total, submitted, skipped, max_active) "
    "values ('counts', now() - interval '1 day', now(), %(most)s, %(most)s, %(most)s, 1000)",
)
STATES = ("pending", "sent", "running", "retrying", "buffered")


def test_jobs_with_values_at_the_ends_of_their_ranges_delay_no_other_row(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": 3, "pgbeat_allowed_tasks": ["app.*"], "pgbeat_allowed_queues": ["celery"]}
    columns = {
        "origin": "schedule",
        "exclusive": False,
        "task": "app.probe",
        "message": '{"args": [], "kwargs": {}, "options": {}, "priority": null, "schedule": null, "timezone": null}',
        "on_lost": "rerun",
        "tracking": "full",
        "pickup_deadline": "1 hour",
        "scheduled_for": "2026-01-01 00:00+00",
        "busy_until": "2026-01-01 00:00+00",
        "check_at": "2026-01-01 00:00+00",
    }
    with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        for statement in ODD:
            cursor.execute(statement, {"host": socket.gethostname(), "most": 2 * 10**18})
        for state in STATES:
            for column, values in (*ENDS.items(), ("periodic_task", ("null", "two-dimensional"))):
                for number, value in enumerate(values):
                    job = {**columns, "periodic_task": f"{state}-{column}-{number}", "state": state, column: value}
                    job["wait_reason"] = "predecessor" if state == "buffered" else None
                    names, places = ", ".join(job), ", ".join(["%s"] * len(job))
                    statement = f"insert into pgbeat.active_job (id, {names}) values (gen_random_uuid(), {places})"
                    cursor.execute(statement, list(job.values()))
    running = beats(cluster, 2)
    with tapped(cluster) as tap:
        load = Load(cluster, 200, name="good")
        load.runs_for(SECONDS)
        # Each is sent or given up, except the one that no beat will ever look at.
        unsent = (
            "select periodic_task from pgbeat.active_job where state = 'pending' and periodic_task not like 'good%%'"
        )
        never = [{"periodic_task": f"pending-check_at-{ENDS['check_at'].index('infinity')}"}]
        eventually(lambda: sql(cluster.database, unsent) == never, within(10), "nothing else unsent", every=0.5)
        account = load.settle(tap)

    proven(account, Limits(late={99: within(0.5)}))
    assert [] == [line for beat in running for line in beat.log.splitlines() if "A cycle failed" in line]
