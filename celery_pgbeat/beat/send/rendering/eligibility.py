"""Checks whether Celery's send path, from `apply_entry` to the channel, is unpatched.

A function on this path that is wrapped (by Sentry, a tracer, a subclass, a test's fault) must be called for each
message, and so must a handler of a signal. Then no message is rendered. A function is recognised by the module of its
globals, which `functools.wraps` cannot copy. The wrappers of wrapt show those of what they wrap, but are no functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import kombu.serialization
from celery import Celery, signals
from celery.app.routes import MapRoute
from celery.beat import Scheduler
from kombu.messaging import Producer

from celery_pgbeat.beat.send.messages import OutgoingJob

OUR_SCHEDULER = "celery_pgbeat.beat.scheduler"
# Celery calls the result backend for each message. For these backends the call is not needed: Redis' backend would
# subscribe to a result that a beat never reads, and unsubscribe when the result object is freed. (The RPC backend
# declares the queue for the results: its call is needed.)
IDLE_BACKENDS = frozenset({"celery.backends.base", "celery.backends.redis"})

BEFORE = ("before_task_publish",)
AFTER = ("after_task_publish", "task_sent")  # the second exists for old code only


class SendPath(NamedTuple):
    """What a rendered message depends on besides its key; if any of these changes, templates are made anew."""

    process: int
    reply_to: str
    router: Any
    sender: Any
    default_queue: Any
    args_shown: int | None
    kwargs_shown: int | None
    levels_shown: int
    idle_backend: bool


def is_untouched(scheduler: Any) -> bool:
    """Return whether every function on the path is unpatched, and no running task would be the parent of the call."""
    app = scheduler.app
    return (
        all(comes_from(function, module) for function, module in _functions(scheduler, app, app.amqp))
        and not app.conf.task_always_eager
        and app.current_worker_task is None
    )


def send_path(scheduler: Any) -> SendPath | None:
    """Return the send path of this scheduler's messages, None if a message depends on more than its job."""
    app = scheduler.app
    amqp, conf = app.amqp, app.conf
    if not is_untouched(scheduler) or conf.task_send_sent_event:
        return None
    if not all(type(route) is MapRoute for route in amqp.router.routes):  # others look at the arguments
        return None
    return SendPath(
        process=os.getpid(),
        reply_to=app.thread_oid,
        router=amqp.router,
        sender=amqp.send_task_message,
        default_queue=conf.task_default_queue,
        args_shown=amqp.argsrepr_maxsize,
        kwargs_shown=amqp.kwargsrepr_maxsize,
        levels_shown=conf.get("task_repr_maxlevels", 3),
        idle_backend=_module_of(app.backend.on_task_call) in IDLE_BACKENDS,
    )


def _functions(scheduler: Any, app: Celery, amqp: Any) -> Iterable[tuple[Any, str]]:
    yield scheduler.apply_entry, "celery.beat"
    yield scheduler.apply_async, OUR_SCHEDULER
    yield Scheduler.apply_async, "celery.beat"
    yield scheduler.send_task, "celery.beat"
    yield app.send_task, "celery.app.base"
    yield app.producer_or_acquire, "celery.app.base"
    yield app.AsyncResult.__init__, "celery.result"
    yield amqp.create_task_message, "celery.app.amqp"
    yield amqp.send_task_message, "celery.app.amqp"
    for name in ("route", "expand_destination", "lookup_route", "query_router"):
        yield getattr(amqp.router, name), "celery.app.routes"
    yield scheduler.Producer.__init__, "kombu.messaging"
    for name in ("publish", "_publish", "_prepare", "maybe_declare"):
        yield getattr(scheduler.Producer, name), "kombu.messaging"
        yield getattr(Producer, name), "kombu.messaging"
    yield kombu.serialization.dumps, "kombu.serialization"


def is_plain_task(task: Any) -> bool:
    """Return whether a registered task is sent by Celery's own `apply_async`, and overrides nothing of it."""
    return (
        all(
            comes_from(getattr(task, name), "celery.app.task")
            for name in ("apply_async", "shadow_name", "AsyncResult", "_get_exec_options", "_get_app")
        )
        and not getattr(task, "__v2_compat__", False)
        and getattr(task, "_dump_pydantic_arguments", None) is None
    )


def is_listened_to(task: str, names: Iterable[str] = BEFORE + AFTER) -> bool:
    """Return whether a signal handler is called for each message of this task."""
    sent_signals = (getattr(signals, name, None) for name in names)
    return any(signal is not None and signal.receivers and signal.has_listeners(task) for signal in sent_signals)


def split_by_batchable(scheduler: Any, jobs: Iterable[OutgoingJob]) -> tuple[list[OutgoingJob], list[OutgoingJob]]:
    """Split jobs into those that may be written in a batch, a moment after Celery has sent them, and the others.

    A job may be written in a batch if no function on the path is wrapped, no signal handler runs after a message was
    sent, and its row has not set `retry`.
    """
    batchable: list[OutgoingJob] = []
    others: list[OutgoingJob] = []
    untouched, tasks = is_untouched(scheduler), scheduler.app.tasks
    for job in jobs:
        task = tasks.get(job.task)
        plain = task is None or is_plain_task(task)
        fits = untouched and plain and not job.options.get("retry") and not is_listened_to(job.task, AFTER)
        (batchable if fits else others).append(job)
    return batchable, others


def comes_from(function: Any, module: str) -> bool:
    return bool(_module_of(function) == module)


def _module_of(function: Any) -> Any:
    if type(function) is MethodType:
        function = function.__func__
    return function.__globals__.get("__name__") if type(function) is FunctionType else None
