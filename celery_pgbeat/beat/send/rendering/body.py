"""From a job to the fields of its message: what Celery does for each message between `apply_async` and the channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kombu.compression import compress
from kombu.serialization import dumps, registry
from kombu.utils import json

from celery_pgbeat.beat.send.messages import OutgoingJob, arguments_of, delay_of, instant_text
from celery_pgbeat.beat.send.rendering.capture import NotRenderable
from celery_pgbeat.beat.send.rendering.message_fields import EncodedArguments, MessageFields, ReprLimits


class Clocks(NamedTuple):
    """One instant, by the database's clock and by the app's."""

    database: datetime
    app: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """What the bodies of one template have in common.

    Attributes:
        check: raises for arguments that do not fit the task, as `apply_async` does.
        embed: the third part of the body.
        eta: if the options name an instant.
    """

    check: Callable[..., Any] | None
    embed: Any
    serializer: str | None
    compression: str | None
    countdown: timedelta | None
    expires_after: timedelta | None
    eta: datetime | None
    show_args: ReprLimits
    show_kwargs: ReprLimits

    def fields(self, job: OutgoingJob, clocks: Clocks, arguments: EncodedArguments) -> MessageFields:
        """Return the fields of the message of this job, whose arguments `encode` has encoded."""
        expires = expiration = None
        if self.expires_after is not None:
            expires_at = clocks.database + self.expires_after
            left = (expires_at - clocks.app).total_seconds()
            if left < 0:
                raise NotRenderable("it expires before it is sent")
            expires, expiration = expires_at.isoformat(), str(int(left * 1000))
        eta = None if self.countdown is None else (clocks.database + self.countdown).isoformat()
        scheduled_for = instant_text(job.scheduled_for)
        return MessageFields(
            str(job.id), job.periodic_task, scheduled_for, *arguments, eta, expires, expiration, job.trace
        )

    def encode(self, args_text: str, kwargs_text: str) -> EncodedArguments:
        """Encode arguments from their JSON: the result depends only on the texts.

        Raises:
            Exception: whatever `apply_async` would raise or log.
        """
        args, kwargs = arguments_of(args_text, kwargs_text)
        if self.check is not None:
            self.check(*args, **kwargs)
        args, kwargs = args or (), kwargs or {}
        body = _serialized((args, kwargs, self.embed), self.serializer)
        if self.compression:
            body, _ = compress(body, self.compression)
        return EncodedArguments(body, self.show_args(args_text, args), self.show_kwargs(kwargs_text, kwargs))

    def delay(self, clocks: Clocks) -> float:
        """Return the seconds until such a message may start."""
        if self.countdown is None and self.eta is None:
            return 0.0
        eta = self.eta if self.countdown is None else clocks.database + self.countdown
        return delay_of({"eta": eta}, clocks.database)


def _serialized(body: Any, serializer: str | None) -> str | bytes:
    """Serialize as kombu does; if its JSON encoder is not replaced, call that directly."""
    registered = registry._encoders.get(serializer)
    if registered is not None and registered.encoder is json.dumps:
        return _encode(body)
    text: str | bytes = dumps(body, serializer=serializer)[2]
    return text


_encode = json.JSONEncoder().encode
