"""What jobs have in common: one shape of message, learnt from Celery's own.

A shape is learnt from one message that Celery made of a job, and proven by a second one, of a job that has nothing in
common with the first but the shape. If what we render is not equal to both, the shape is not used.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from celery_pgbeat.beat.messages import Job, JobEntry, options_of
from celery_pgbeat.beat.rendering.content import Content, Moment
from celery_pgbeat.beat.rendering.fields import Fields, Shown
from celery_pgbeat.beat.rendering.genuine import Way, is_plain_task
from celery_pgbeat.beat.rendering.press import Press, Template
from celery_pgbeat.beat.rendering.recording import Inexact, Reference, record

if TYPE_CHECKING:
    from celery_pgbeat.beat.broker import Sender

# Of the other job: characters that each writer treats in a way of its own, and more arguments than are shown.
ODD = "Ünïque \"name\" of 'a' \\ row, 100%, %(id)s"
ARGS = [ODD, 1.5, None, True, -1, [[[[1]]], {}]]
KWARGS = {"k'ey": {"deep": {"deeper": {"deepest": ODD}}}, "long": ODD * 99}


class Unlike(Exception):
    """What was rendered differs from Celery's own message."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How to make the messages of all jobs that have `key_of` in common.

    Attributes:
        task: the registered task; None where the app knows it by its name only.
        declared: the queues and exchanges that must exist.
    """

    task: Any
    content: Content
    template: Template
    declared: tuple[Any, ...]

    def render(self, job: Job, moment: Moment) -> Any:
        """Return a job's message as its press writes it."""
        return self.template.render(self.content.fields(job, moment))


def key_of(job: Job) -> Hashable:
    """Return what jobs of one shape have in common."""
    options = repr(job.options) if job.options else ""
    trace = tuple(job.trace) if job.trace else ()
    return (job.task, job.queue, job.priority, job.origin, job.run, job.max_run_time, job.sensitive, options, trace)


def learn(sender: Sender, press: Press, way: Way, job: Job, moment: Moment) -> Shape:
    """Make the shape of a job, and prove it.

    Raises:
        Inexact: messages of this shape cannot be rendered.
        Unlike: what was rendered differs from Celery's own message.
    """
    task = sender.app.tasks.get(job.task)
    if task is not None and not is_plain_task(task):
        raise Inexact("its task is sent in a way of its own")
    reference = _recorded(sender, press, job, moment)
    content = _content(task, reference, way, job, moment)
    fields = _drawn(content.fields(job, moment), reference, moment, sender.app)
    template = press.template(reference, fields)
    _prove(press, template, reference, fields)

    other, later = _other(job), moment._replace(database=moment.database + timedelta(hours=25, microseconds=1))
    reference = _recorded(sender if task is None else _unchecking(sender, job.task, task), press, other, later)
    fields = _drawn(replace(content, check=None).fields(other, later), reference, later, sender.app)
    _prove(press, template, reference, fields)
    return Shape(task, content, template, reference.declared)


def _recorded(sender: Sender, press: Press, job: Job, moment: Moment) -> Reference:
    entry = JobEntry(job, sender.app, moment.database)
    return record(lambda producer: sender.apply_async(entry, producer=producer), press.channel)


def _prove(press: Press, template: Template, reference: Reference, fields: Fields) -> None:
    if press.differs(template, reference, fields):
        raise Unlike("what was rendered differs from Celery's own message")


def _content(task: Any, reference: Reference, way: Way, job: Job, moment: Moment) -> Content:
    body, headers = reference.body, reference.options.get("headers") or {}
    if not (isinstance(body, tuple) and len(body) == 3):
        raise Inexact("its body is not that of Celery's protocol 2")
    if not (headers.get("ignore_result") or way.idle_backend):
        raise Inexact("the result backend takes part in its sending")
    if not all(entity.can_cache_declaration for entity in reference.declared):
        raise Inexact("its queue is declared anew for each message")
    countdown, expires = job.options.get("countdown"), job.options.get("expires")
    if isinstance(expires, str) or (expires is None and headers.get("expires") is not None):
        raise Inexact("it expires at an instant that is not counted from its making")
    return Content(
        check=getattr(task, "__header__", None) if getattr(task, "typing", False) else None,
        embed=body[2],
        serializer=reference.options.get("serializer"),
        compression=reference.options.get("compression"),
        countdown=timedelta(seconds=float(countdown)) if countdown else None,
        expires_after=None if expires is None else timedelta(seconds=float(expires)),
        eta=options_of(job, moment.database).get("eta"),
        show_args=Shown(way.args_shown, way.levels_shown),
        show_kwargs=Shown(way.kwargs_shown, way.levels_shown),
    )


def _drawn(fields: Fields, reference: Reference, moment: Moment, app: Any) -> Fields:
    """Take the expiration, which counts from the very moment of sending, from the reference, if it can be that."""
    if fields.expiration is None:
        return fields
    drawn, longest = int(reference.options["expiration"] * 1000), int(fields.expiration)
    passed = (app.now() - moment.app) / timedelta(milliseconds=1)
    if not longest - passed - 1 <= drawn <= longest:
        raise Unlike("its expiration is not counted as Celery counts it")
    return fields._replace(expiration=str(drawn))


def _other(job: Job) -> Job:
    """Return a job that has nothing in common with this one but the shape."""
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
