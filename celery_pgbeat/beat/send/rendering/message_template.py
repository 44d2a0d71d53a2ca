"""Makes and proves the template of messages, from one of Celery's own messages.

A template is made from the message that Celery makes of one job, and proven with a second job that has only the key in
common with the first. If what we render is not equal to both of Celery's messages, the template is not used.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from celery_pgbeat.beat.send.messages import JobEntry, OutgoingJob, options_of
from celery_pgbeat.beat.send.rendering.body import Body, Clocks, encoded, is_plain_json
from celery_pgbeat.beat.send.rendering.capture import CapturedMessage, NotRenderable, capture
from celery_pgbeat.beat.send.rendering.eligibility import SendPath, is_plain_task
from celery_pgbeat.beat.send.rendering.message_fields import MessageFields, ReprLimits
from celery_pgbeat.beat.send.rendering.writer import Template, Writer

if TYPE_CHECKING:
    from celery_pgbeat.beat.send.broker import Sender

# For the second job: characters that each writer treats differently, and more arguments than are shown.
ODD = "Ünïque \"name\" of 'a' \\ row, 100%, %(id)s"
ARGS = [ODD, 1.5, None, True, -1, [[[[1]]], {}]]
KWARGS = {"k'ey": {"deep": {"deeper": {"deepest": ODD}}}, "long": ODD * 99}


class RenderMismatch(Exception):
    """What was rendered differs from Celery's own message."""


# Arguments as they are written: a row has the same for each of its occurrences. 0.7 kB for a number, 1.3 kB for the
# longest text, 3.7 kB if it has no ASCII character: usually 11 to 21 MB when full.
REMEMBERED = 16_384
REMEMBERED_UP_TO = 200  # characters of their JSON


@dataclass(frozen=True, slots=True, eq=False)
class MessageTemplate:
    """How to make the messages of all jobs that have `template_key` in common.

    Attributes:
        task: the registered task; None if the app knows only its name.
        declared: the queues and exchanges that must exist.
    """

    task: Any
    body: Body
    template: Template
    declared: tuple[Any, ...]

    def render(self, job: OutgoingJob, clocks: Clocks) -> Any:
        """Return a job's message in the form that its writer writes.

        Raises:
            Exception: whatever `apply_async` would raise or log.
        """
        short = len(job.args) + len(job.kwargs) <= REMEMBERED_UP_TO
        prepared = (_remembered if short else MessageTemplate.prepare)(self, job.args, job.kwargs)
        return self.template.render(prepared, self.body.fields(job, clocks))

    def prepare(self, args_text: str, kwargs_text: str) -> Any:
        """Return arguments as the writer writes them: that depends only on their JSON."""
        return self.template.prepare(self.body.encode(args_text, kwargs_text))


_remembered = lru_cache(maxsize=REMEMBERED)(MessageTemplate.prepare)


def template_key(job: OutgoingJob) -> Hashable:
    """Return what jobs of one template have in common."""
    options = repr(job.options) if job.options else ""
    trace = tuple(job.trace) if job.trace else ()
    return (
        job.task,
        job.queue,
        job.priority,
        job.origin,
        job.run,
        job.max_run_time,
        job.sensitive,
        job.tracking,
        options,
        trace,
    )


def build_template(sender: Sender, writer: Writer, path: SendPath, job: OutgoingJob, clocks: Clocks) -> MessageTemplate:
    """Make the template for a job, and prove it.

    Raises:
        NotRenderable: messages of this kind cannot be rendered.
        RenderMismatch: what was rendered differs from Celery's own message.
    """
    task = sender.app.tasks.get(job.task)
    if task is not None and not is_plain_task(task):
        raise NotRenderable("its task is sent in a way of its own")
    captured = _captured(sender, writer, job, clocks)
    body = _body(task, captured, path, job, clocks)
    fields = _with_expiration(_fields(body, job, clocks), captured, clocks, sender.app)
    template = writer.template(captured, fields)
    _prove(writer, template, captured, fields)

    other, later = _other(job), clocks._replace(database=clocks.database + timedelta(hours=25, microseconds=1))
    captured = _captured(sender if task is None else _unchecking(sender, job.task, task), writer, other, later)
    fields = _with_expiration(_fields(replace(body, check=None), other, later), captured, later, sender.app)
    _prove(writer, template, captured, fields)
    return MessageTemplate(task, body, template, captured.declared)


def _captured(sender: Sender, writer: Writer, job: OutgoingJob, clocks: Clocks) -> CapturedMessage:
    entry = JobEntry(job, sender.app, clocks.database)
    return capture(lambda producer: sender.apply_async(entry, producer=producer), writer.channel)


def _fields(body: Body, job: OutgoingJob, clocks: Clocks) -> MessageFields:
    return body.fields(job, clocks, body.encode(job.args, job.kwargs))


def _prove(writer: Writer, template: Template, captured: CapturedMessage, fields: MessageFields) -> None:
    if writer.differs(template, captured, fields):
        raise RenderMismatch("what was rendered differs from Celery's own message")


def _body(task: Any, captured: CapturedMessage, path: SendPath, job: OutgoingJob, clocks: Clocks) -> Body:
    raw, headers = captured.body, captured.options.get("headers") or {}
    if not (isinstance(raw, tuple) and len(raw) == 3):
        raise NotRenderable("its body is not that of Celery's protocol 2")
    if not (headers.get("ignore_result") or path.idle_backend):
        raise NotRenderable("the result backend takes part in its sending")
    if not all(entity.can_cache_declaration for entity in captured.declared):
        raise NotRenderable("its queue is declared anew for each message")
    countdown, expires = job.options.get("countdown"), job.options.get("expires")
    if isinstance(expires, str) or (expires is None and headers.get("expires") is not None):
        raise NotRenderable("it expires at an instant that is not counted from its making")
    serializer = captured.options.get("serializer")
    return Body(
        check=getattr(task, "__header__", None) if getattr(task, "typing", False) else None,
        embed=raw[2],
        embed_text=encoded(raw[2]) if is_plain_json(serializer) else "",
        serializer=serializer,
        compression=captured.options.get("compression"),
        countdown=timedelta(seconds=float(countdown)) if countdown else None,
        expires_after=None if expires is None else timedelta(seconds=float(expires)),
        eta=options_of(job, clocks.database).get("eta"),
        show_args=ReprLimits(path.args_shown, path.levels_shown),
        show_kwargs=ReprLimits(path.kwargs_shown, path.levels_shown),
    )


def _with_expiration(fields: MessageFields, captured: CapturedMessage, clocks: Clocks, app: Any) -> MessageFields:
    """Take the expiration, which counts from the moment of sending, from the captured message, if it is possible."""
    if fields.expiration is None:
        return fields
    expiration, longest = int(captured.options["expiration"] * 1000), int(fields.expiration)
    passed = (app.now() - clocks.app) / timedelta(milliseconds=1)
    if not longest - passed - 1 <= expiration <= longest:
        raise RenderMismatch("its expiration is not counted as Celery counts it")
    return fields._replace(expiration=str(expiration))


def _other(job: OutgoingJob) -> OutgoingJob:
    """Return a job that has only the key in common with this one."""
    return replace(
        job,
        id=uuid.uuid4(),
        periodic_task=ODD,
        scheduled_for=datetime.fromtimestamp(1, timezone.utc),
        args=json.dumps(ARGS),
        kwargs=json.dumps(KWARGS),
        trace=dict.fromkeys(job.trace, ODD) if job.trace else None,
    )


def _unchecking(sender: Sender, name: str, task: Any) -> Any:
    """Return a copy of the scheduler, for which this task takes any arguments."""
    unchecked = object.__new__(type(task))  # `copy.copy` would give the registered task itself
    vars(unchecked).update(vars(task), typing=False)
    scheduler = object.__new__(type(sender))
    vars(scheduler).update(vars(sender), app=_AppWith(sender.app, {name: unchecked}))
    return scheduler


class _AppWith:
    """An app with other tasks."""

    def __init__(self, app: Any, tasks: dict[str, Any]) -> None:
        self._app = app
        self.tasks = tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)
