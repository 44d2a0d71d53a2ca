"""Notices jobs that wait with a Redis broker that has lost their messages, and notes them for `overdue`.

A beat never acts on what it finds here: a person has such a job sent again, or ends it. But a note raises an alert, so
each place is looked at where a message can be. The invariant: what cannot be known is not noted.

    the queue         a job is not looked for in a queue that has any message
    `unacked`         what kombu keeps of each message that a worker has fetched and not acknowledged
    the workers       they know each message from its arrival to the end of its task
    nowhere           a worker without the tracker may have run it, so all that consume the queue must have it

A message is in none of the first two for a moment while a worker fetches it, or while kombu restores it from `unacked`.
So the broker must lack it in two looks in a row, a heartbeat apart. Only then the workers are asked.

Each look has a thread of its own, because a broker may hang. A beat looks only if a job has waited for long, which a
statement of its heartbeat tells.
"""

from __future__ import annotations

import inspect
import logging
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from celery.app.routes import MapRoute
from celery.exceptions import QueueNotFound
from kombu.exceptions import ChannelError, OperationalError

from celery_pgbeat.beat.send.broker import CAUTION, CONNECT_TIMEOUT, Broker
from celery_pgbeat.beat.timed_call import TimedCall
from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.beat_results import WaitingJob

logger = logging.getLogger(__name__)

MOST = 500  # jobs that one look is about
MOST_UNACKED = 20_000  # messages; of more it is not known which they are
ANSWER_WITHIN = 1.0  # seconds that workers have for each question
ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Ids = set[uuid.UUID]


class LostMessages:
    """Looks for the messages of jobs that have waited for long.

    Args:
        app: the Celery app.
        queries: of the beat.
        broker: of the beat; only its kind is read.
    """

    def __init__(self, app: Any, queries: BeatQueries, broker: Broker) -> None:
        self._app = app
        self._queries = queries
        self._broker = broker
        self._thread = TimedCall("pgbeat-lost")
        self._missing: Ids = set()  # at the last look

    def look(self) -> None:
        """Begin to look, if the broker is a Redis; return at once."""
        if self._broker.driver == "redis" and self._app.conf.worker_enable_remote_control:
            self._thread.call(self._search, within=0.0)

    def _search(self) -> None:
        try:
            self.search()
        except DatabaseUnavailable:  # which the cycles log
            self._missing = set()

    def search(self) -> None:
        """Look once, and note what was missing in the last look too.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        jobs = self._jobs_by_queue()
        last, self._missing = self._missing, set()
        try:
            with self._app.connection_for_write(connect_timeout=CONNECT_TIMEOUT) as connection:
                connection.transport_options = {**CAUTION["redis"], **(connection.transport_options or {})}
                channel = connection.default_channel
                if len(connection.alt) > 1 and connection.transport_cls != "sentinel":
                    return  # it may be with another one of several brokers
                missing, there = _missing_in(channel, jobs)
                lost = self._unknown_to_workers(connection, jobs, missing & last) if missing & last else set()
        except (OperationalError, OSError, _redis_error()) as error:
            logger.debug("The broker could not be asked for messages: %s", error)
            return
        self._missing = missing
        noted = self._queries.note_lost_messages(sorted(lost), sorted(there))
        if noted:
            logger.error(
                "The broker has lost the message of job %s, which waits there, and of %d others: send each again "
                "(celery-pgbeat job resend ID) or end it (celery-pgbeat job cancel ID)",
                noted[0],
                len(noted) - 1,
                extra={"action": "lose"},
            )

    def _jobs_by_queue(self) -> dict[str, Ids]:
        found: dict[str, Ids] = defaultdict(set)
        for job in self._queries.waiting_with_broker(MOST):
            queue = queue_of(self._app, job)
            if queue is not None:
                found[queue].add(job.id)
        return found

    def _unknown_to_workers(self, connection: Any, jobs: Mapping[str, Ids], missing: Ids) -> Ids:
        """Return those of the jobs that no worker knows, and that none without the tracker can have run."""
        workers = self._app.control.inspect(timeout=ANSWER_WITHIN, connection=connection)
        consumed = workers.active_queues() or {}
        pids = {name: answer["pid"] for name, answer in (workers.stats() or {}).items()}
        asked = workers.query_task([str(job) for job in missing]) or {}
        # In containers many workers have the process id 1: none of those that answer may be one too many.
        untracked = Counter(pids.values()) - Counter(self._queries.tracking_workers())
        known = {id for answer in asked.values() for id in answer}
        unknown: Ids = set()
        for queue, waiting in jobs.items():
            consumers = {name for name, queues in consumed.items() if queue in {one["name"] for one in queues}}
            have_answered = consumers <= set(pids) & set(asked)
            if consumers and have_answered and not any(untracked[pids[name]] for name in consumers):
                unknown |= {job for job in waiting & missing if str(job) not in known}
        return unknown


def _redis_error() -> type[Exception]:
    from redis.exceptions import RedisError

    return RedisError


def queue_of(app: Any, job: WaitingJob) -> str | None:
    """Return the queue to which a job's message was sent; None if it may be another one, several, or none.

    The task's own `apply_async` and a function that routes may choose any queue. A broadcast is in no queue.
    """
    task = app.tasks.get(job.task)
    if task is not None and _module_of(type(task).apply_async) != "celery.app.task":
        return None
    names = ("queue", "exchange", "routing_key")
    options = {name: value for name in names if (value := job.options.get(name) or getattr(task, name, None))}
    if job.queue is not None:
        options["queue"] = job.queue
    if not all(type(route) is MapRoute for route in app.amqp.router.routes):
        return None
    try:
        route = app.amqp.router.route(options, job.task)
    except QueueNotFound:  # task_create_missing_queues is off
        return None
    queue = route.get("queue")
    if queue is None or route.get("exchange") or route.get("routing_key") or queue.exchange.type != "direct":
        return None
    return str(queue.name)


def _module_of(function: Any) -> str:
    """Return the module of a function; of one that a tool has wrapped, as tracers do, that of the wrapped one."""
    return str(inspect.unwrap(function).__module__)


def _missing_in(channel: Any, jobs: Mapping[str, Ids]) -> tuple[Ids, Ids]:
    """Return which jobs' messages the broker lacks, and which it has or may have."""
    missing = {job for queue, waiting in jobs.items() if not _depth(channel, queue) for job in waiting}
    if missing:
        missing -= _unacknowledged(channel, missing)
    # A message that went back to its queue meanwhile was in neither place.
    missing = {job for queue, waiting in jobs.items() if not _depth(channel, queue) for job in waiting & missing}
    return missing, {job for waiting in jobs.values() for job in waiting} - missing


def _depth(channel: Any, queue: str) -> int:
    """Return how many messages wait in a queue, of all priorities."""
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except ChannelError:  # Redis keeps no empty queue
        return 0


def _unacknowledged(channel: Any, jobs: Ids) -> Ids:
    """Return the jobs whose messages a worker has fetched and not acknowledged; all of them if that is not known."""
    client = channel.client
    number = client.hlen(channel.unacked_key)  # kombu puts its prefix before this key, not before that of a scan
    if number > MOST_UNACKED:
        return jobs
    messages = [value for _, value in client.hscan_iter(f"{channel.global_keyprefix}{channel.unacked_key}", count=500)]
    if number and not messages:
        return jobs
    return {uuid.UUID(id.decode()) for message in messages for id in ID.findall(message)} & jobs
