"""A worker survives any headers of a message."""

from __future__ import annotations

import random
import uuid
from typing import Any

from kombu import Connection

from celery_pgbeat.worker.start.message import HEADER, PROPERTIES, assigned_start, copy_of, is_sensitive
from tests.fuzz.fuzzing import MARKS, attack, quickly
from tests.harness.broker import depth
from tests.harness.processes import Cluster
from tests.harness.sending import sender, worker
from tests.harness.values import odd
from tests.harness.wait import eventually

pytestmark = MARKS

JOB = str(uuid.UUID(int=7))


def fields_of(numbers: random.Random) -> dict[str, Any]:
    """Return the fields of a message as a request or a task's context has them."""

    def some(value: Any) -> Any:
        return value if numbers.random() < 0.7 else odd(numbers)

    header = some({"job": some(JOB), "run": some(0), "periodic_task": some("row"), "sensitive": some(True)})
    given = {
        HEADER: header,
        "id": some(JOB),
        "task": some("app.probe"),
        "retries": some(0),
        "replaced_task_nesting": some(None),
        "headers": numbers.choice((None, {}, {HEADER: header})),
    }
    return {name: given[name] for name in numbers.sample(list(given), numbers.randint(2, len(given)))}


def test_the_header_of_a_message_is_read_completely_or_ignored() -> None:
    attack(check_fields)


def check_fields(numbers: random.Random) -> None:
    given = fields_of(numbers)
    copy = quickly(lambda: copy_of(given))
    assert copy is None or (str(copy.job) == given["id"] and 0 <= copy.run < 2**31 and 0 <= copy.attempt < 2**31)
    assert quickly(lambda: is_sensitive(given)) in (True, False)
    if copy is not None:
        assert assigned_start({**given, PROPERTIES: {}}, copy) is None


MOST_WAITING = 2_000  # messages
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**40,
    1e300,
    float("inf"),
    "",
    "x" * 5_000,
    "\0",
    "\x1b[31m\n",
    [],
    {},
    [[]],
)


def forged(numbers: random.Random, job: str) -> dict[str, Any]:
    """Return the headers of a foreign message, parts of which look like a beat's."""

    def or_odd(value: Any) -> Any:
        return numbers.choice(ODD) if numbers.random() < 0.15 else value

    pgbeat = {
        "job": or_odd(job),
        "run": or_odd(0),
        "periodic_task": or_odd("row"),
        "origin": or_odd("schedule"),
        "scheduled_for": or_odd("2026-12-07T12:00:00+00:00"),
        "sensitive": or_odd(False),
        "min_gap": or_odd(None),
    }
    made = {
        "lang": "py",
        "id": job,  # any other kind of value ends every worker of Celery, with us or without
        "task": numbers.choice(("app.quiet", "app.quiet", "app.nobody_has_it", "celery.map", "no\x1b[31m\nsuch")),
        "retries": numbers.choice((0, 0, 0, 1, 2**31, -1)),
        "timelimit": [None, None],
        "argsrepr": or_odd("()"),
        "kwargsrepr": or_odd("{}"),
        "origin": "stranger",
        HEADER: or_odd(pgbeat),
        "headers": numbers.choice((None, {}, {HEADER: or_odd(pgbeat)})),
    }
    for key in list(made):
        if numbers.random() < 0.03 and key not in ("task", "id"):
            del made[key]
    return made


def test_a_worker_survives_any_header(cluster: Cluster) -> None:
    cluster.settings["pgbeat_allowed_tasks"] = ["app.*"]
    running = worker(cluster, app="tests.fuzz.quiet_app")
    with sender(cluster) as sending, Connection(cluster.broker) as connection:
        known = [str(sending.job(task="app.quiet")) for _ in range(50)]
        producer = connection.Producer()

        def publish(numbers: random.Random) -> None:
            if numbers.random() < 0.002:
                eventually(lambda: depth(cluster.broker) < MOST_WAITING or not running.is_running(), 120, "it keeps up")
            job = numbers.choice(known) if numbers.random() < 0.2 else str(uuid.UUID(int=numbers.getrandbits(128)))
            producer.publish(
                '[["forged"], {}, {}]',
                routing_key="celery",
                headers=forged(numbers, job),
                content_type="application/json",
                content_encoding="utf-8",
                correlation_id=job,
                delivery_mode=1,
            )

        attack(publish)
        eventually(lambda: depth(cluster.broker) == 0 or not running.is_running(), 120, "all messages taken", every=0.5)
        assert running.is_running(), running.log[-5_000:]
        honest = sending.send_job("app.quiet", "honest")
        sending.wait_for(honest, "succeeded", 60)

    assert running.is_running()
    assert "celery_pgbeat/" not in running.log, "the frame of an error of ours"
    assert "Unrecoverable error" not in running.log
