"""From a job to the fields of its message: what Celery does for each message between `apply_async` and the channel."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from kombu.compression import compress
from kombu.serialization import dumps, registry
from kombu.utils import json

from celery_pgbeat.beat.send.messages import OutgoingJob, decoded, delay_of, instant_text
from celery_pgbeat.beat.send.rendering.capture import NotRenderable
from celery_pgbeat.beat.send.rendering.message_fields import NO_ARGUMENTS, EncodedArguments, MessageFields, ReprLimits


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
        embed_text: the same as JSON; only read where the body is JSON of kombu's own encoder.
        eta: if the options name an instant.
    """

    check: Callable[..., Any] | None
    embed: Any
    embed_text: str
    serializer: str | None
    compression: str | None
    countdown: timedelta | None
    expires_after: timedelta | None
    eta: datetime | None
    show_args: ReprLimits
    show_kwargs: ReprLimits

    def fields(self, job: OutgoingJob, clocks: Clocks, arguments: EncodedArguments = NO_ARGUMENTS) -> MessageFields:
        """Return the fields of the message of this job; its arguments, which `encode` encodes, if they are given."""
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
            str(job.id), job.periodic_task, scheduled_for, eta, expires, expiration, job.trace, arguments
        )

    def encode(self, args_text: str, kwargs_text: str) -> EncodedArguments:
        """Encode arguments from their JSON: the result depends only on the texts.

        Raises:
            Exception: whatever `apply_async` would raise or log.
        """
        args = _read(args_text, tuple, self.show_args)
        kwargs = (_remembered if len(kwargs_text) <= REMEMBERED_UP_TO else _read)(kwargs_text, dict, self.show_kwargs)
        if self.check is not None:
            self.check(*args.value, **kwargs.value)
        if not is_plain_json(self.serializer):
            body: str | bytes = dumps((args.value, kwargs.value, self.embed), serializer=self.serializer)[2]
        elif args.is_as_encoded and kwargs.is_as_encoded:
            body = f"[{args_text}, {kwargs_text}, {self.embed_text}]"
        else:
            body = encoded((args.value, kwargs.value, self.embed))
        if self.compression:
            body, _ = compress(body, self.compression)
        return EncodedArguments(body, args.shown, kwargs.shown)

    def delay(self, clocks: Clocks) -> float:
        """Return the seconds until such a message may start."""
        if self.countdown is None and self.eta is None:
            return 0.0
        eta = self.eta if self.countdown is None else clocks.database + self.countdown
        return delay_of({"eta": eta}, clocks.database)


def is_plain_json(serializer: str | None) -> bool:
    """Return whether kombu serialises by its own JSON encoder, which `encoded` calls directly."""
    registered = registry._encoders.get(serializer)
    return registered is not None and registered.encoder is json.dumps


encoded = json.JSONEncoder().encode


class ReadText(NamedTuple):
    """What a JSON text of arguments has in it; `shown` is how Celery shows it to people."""

    value: Any
    is_as_encoded: bool
    shown: str


def _read(text: str, empty: Callable[[], Any], show: ReprLimits) -> ReadText:
    value = decoded(text) or empty()
    return ReadText(value, _is_as_encoded(text), show(text, value))


REMEMBERED_UP_TO = 1000  # characters; longer texts are read each time
_remembered = lru_cache(maxsize=256)(_read)  # many rows have the same few keyword arguments; nothing changes the values


def _is_as_encoded(text: str) -> bool:
    """Return whether a JSON text of Postgres is what `encoded` makes of its value.

    Both put one blank after each comma and colon. They differ in what they escape, and in numbers with a fraction; and
    Celery's JSON makes an object of what has a `__type__`.
    """
    return (
        text.isascii()
        and text.isprintable()
        and "\\" not in text
        and '"__type__"' not in text
        and not _NUMBER_WRITTEN_OTHERWISE(text)
        and text != "null"
    )


_NUMBER_WRITTEN_OTHERWISE = re.compile("[0-9][.eE]|-0").search
