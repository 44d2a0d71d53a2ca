"""What waits: an idle beat, and workers that finish other jobs, beside what waits and without it.

Beside them stand jobs that wait for other tasks (`after`), groups of which each has a job under way and one that waits
for its turn, and tasks for people that no person has picked up.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.ground import Ground, cpu_of, execute
from benchmarks.idle import SETTLING
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert
from benchmarks.worker import finished_alone

JOB = (
    "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, on_lost,"
    " tracking, pickup_deadline, busy_until, check_at, group_name, slot, started_at, wait_reason)"
    " select gen_random_uuid(), {task}, pgbeat.now(), 'schedule', {state}, true, 'app.probe', '{{}}', 'give_up',"
    " 'full', '1 hour', 'infinity', 'infinity', {group}, {slot}, pgbeat.now(), {wait_reason}"
    " from generate_series(1, %s) n"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--window", type=float, default=30.0, help="seconds that each round counts of an idle beat")
    parser.add_argument("--rounds", type=int, default=5)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure both, with and without, in turn."""
    finished: dict[bool, list[float]] = {False: [], True: []}
    beats: dict[bool, list[float]] = {False: [], True: []}
    servers: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(options.rounds):
        for beside in (False, True):
            add_beside = (lambda database: fill(database, options)) if beside else None
            finished[beside].append(finished_alone(ground, options.tasks, options.connections, add_beside))
            beat, postgres = _idle(ground, options, beside)
            beats[beside].append(beat)
            servers[beside].append(postgres)
    case = f"{options.waiting:,} waiting jobs, {options.groups:,} groups, {options.people:,} tasks for people"
    figures = []
    for name, unit, values in (
        ("starts and finishes", "jobs/s", finished),
        ("processor of an idle beat", "% of a core", beats),
        ("processor of Postgres at rest", "% of a core", servers),
    ):
        without = Figure(f"{name}, nothing else", unit, values[False])
        figures += [Figure(f"{name}, {case}", unit, values[True]).beside("nothing else", without), without]
    return figures


def fill(database: str, options: argparse.Namespace) -> None:
    """Add what waits."""
    rows = "insert into pgbeat.periodic_task (name, task, schedule, timezone, overlap, group_name, kind, after) select "
    yearly = "'0 0 1 1 *', 'UTC', 'skip'"
    execute(database, f"{rows} 'first', 'app.probe', {yearly}, null, 'task', null")
    execute(
        database,
        f"{rows} 'then-' || n, 'app.probe', {yearly}, null, 'task', array['first'] from generate_series(1, %s) n",
        [options.waiting],
    )
    execute(
        database,
        "select pgbeat.define_group('group-' || n, ordered => true) from generate_series(1, %s) n",
        [options.groups],
    )
    execute(
        database,
        f"{rows} 'member-' || n || '-' || m, 'app.probe', {yearly}, 'group-' || n, 'task', null"
        " from generate_series(1, %s) n cross join generate_series(1, 2) m",
        [options.groups],
    )
    execute(
        database,
        f"{rows} 'person-' || n, null, {yearly}, null, 'human', null from generate_series(1, 1000) n",
    )
    running = {"state": "'running'", "wait_reason": "null"}
    nothing = {"group": "null", "slot": "null"}
    execute(database, JOB.format(task="'first'", **running, **nothing), [1])
    execute(
        database,
        JOB.format(task="'then-' || n", state="'waiting'", wait_reason="'upstream'", **nothing),
        [options.waiting],
    )
    group = {"group": "'group-' || n"}
    execute(database, JOB.format(task="'member-' || n || '-1'", **running, **group, slot="0"), [options.groups])
    execute(
        database,
        JOB.format(task="'member-' || n || '-2'", state="'buffered'", wait_reason="'slot'", **group, slot="null"),
        [options.groups],
    )
    execute(
        database,
        "select count(*) from pgbeat.trigger_many((select jsonb_agg(jsonb_build_object("
        "'name', 'person-' || 1 + mod(n, 1000))) from generate_series(1, %s) n), force => true)",
        [options.people],
    )
    execute(database, "vacuum analyze")


def _idle(ground: Ground, options: argparse.Namespace, beside: bool) -> tuple[float, float]:
    """Return the processor time of a beat at rest and of its Postgres, in percent of a core."""
    with ground.database() as database:
        announce_worker(database)
        insert(database, 1000, "0 0 1 1 *", far(60))
        if beside:
            fill(database, options)
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster:
            beat = cluster.beat()
            _wait_until_seen(database)
            execute(database, "vacuum analyze")  # or Postgres does it meanwhile
            execute(database, "checkpoint")
            time.sleep(SETTLING)
            begun, before = time.monotonic(), (cpu_of(beat.pid), cpu_of(ground.postgres.pid))
            time.sleep(options.window)
            duration, after = time.monotonic() - begun, (cpu_of(beat.pid), cpu_of(ground.postgres.pid))
    return tuple((late - early) / duration * 100 for early, late in zip(before, after, strict=True))


def _wait_until_seen(database: str) -> None:
    """Wait until a beat has looked at all that is new."""
    until = time.monotonic() + 120
    while execute(
        database,
        "select 1 from pgbeat.dependency_to_check union all select 1 from pgbeat.group_to_check where not seen"
        " union all select 1 from pgbeat.periodic_task where planned_revision <> revision limit 1",
    ):
        assert time.monotonic() < until, "the beat does not come to rest"
        time.sleep(0.1)
