"""Messages for Redis: the JSON text that kombu pushes, with placeholders, and one LPUSH for each queue and batch.

An LPUSH of many values is one command: Redis takes all of them or none. Without hiredis, redis-py writes it in pieces
of 6 kB, and lets go of Python's lock at each of them. To write it at once costs the beat a fifth of that.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from operator import itemgetter
from typing import Any

from kombu.utils.json import dumps

from celery_pgbeat.beat.send.rendering.capture import CapturedMessage, NotRenderable
from celery_pgbeat.beat.send.rendering.eligibility import comes_from
from celery_pgbeat.beat.send.rendering.message_fields import (
    OUR_HEADER,
    PROPERTIES,
    EncodedArguments,
    MessageFields,
    fields_in,
    headers_in,
    placeholder,
)

_REDIS, _VIRTUAL = "kombu.transport.redis", "kombu.transport.virtual.base"
# The methods that decide the text and its key.
_METHODS = {
    "basic_publish": _VIRTUAL,
    "prepare_message": _VIRTUAL,
    "encode_body": _VIRTUAL,
    "_inplace_augment_message": _VIRTUAL,
    "_next_delivery_tag": _VIRTUAL,
    "_get_message_priority": _VIRTUAL,
    "_put": _REDIS,
    "_q_for_pri": _REDIS,
}
# With one of these, redis-py writes a command again if it has not received the answer.
_REPLAYING = ("retry_on_timeout", "retry_on_error", "retry")
_AT_ONCE = 1 << 20  # characters of a batch that is written at once: a socket's time-out is that of one write


@dataclass(frozen=True, slots=True)
class RedisTemplate:
    """A message's text, and the list it belongs to.

    Attributes:
        place: the key of the list.
        pieces: the text in pieces; every second one is the place of a field.
        in_order: returns the values of the fields, by name, in the order of their places.
    """

    place: str
    pieces: list[str]
    in_order: Callable[[Mapping[str, str]], tuple[str, ...]]
    channel: Any
    delivery_tags: Iterator[str]

    def prepare(self, arguments: EncodedArguments) -> dict[str, str]:
        """Return the fields of the arguments as JSON."""
        body, _ = self.channel.encode_body(arguments.body, self.channel.body_encoding)
        return {
            "body": quoted(body),
            "argsrepr": quoted(arguments.argsrepr),
            "kwargsrepr": quoted(arguments.kwargsrepr),
        }

    def render(self, prepared: Mapping[str, str], fields: MessageFields) -> str:
        """Fill in all fields."""
        return self.with_tag(prepared, fields, next(self.delivery_tags))

    def with_tag(self, prepared: Mapping[str, str], fields: MessageFields, delivery_tag: str) -> str:
        """Fill in all fields, and this delivery tag."""
        pieces = self.pieces.copy()
        pieces[1::2] = self.in_order(_values_of(prepared, fields, delivery_tag))
        return "".join(pieces)


class RedisWriter:
    """Writes to Redis through kombu's own client."""

    def __init__(self, connection: Any) -> None:
        self.channel = connection.default_channel
        self._delivery_tags = _random_uuids()

    @staticmethod
    def fits(connection: Any) -> bool:
        """Return whether this is kombu's own Redis transport, unpatched, and no command is ever sent twice."""
        channel = connection.default_channel
        return (
            f"{type(channel).__module__}.{type(channel).__qualname__}" == f"{_REDIS}.Channel"
            and all(comes_from(getattr(channel, name), module) for name, module in _METHODS.items())
            and not any(channel.pool.connection_kwargs.get(name) for name in _REPLAYING)
        )

    def template(self, captured: CapturedMessage, fields: MessageFields) -> RedisTemplate:
        """Make a template of a message."""
        if captured.target["exchange"]:
            raise NotRenderable("Redis routes its exchange anew for each message")
        key, text = self._pushed(captured)
        message = json.loads(text)
        headers, properties = message["headers"], message["properties"]
        _put_sentinels(headers, headers_in(headers, fields))
        if isinstance(ours := headers.get("pgbeat"), dict):
            _put_sentinels(ours, fields_in(ours, OUR_HEADER, fields))
        _put_sentinels(properties, {**fields_in(properties, PROPERTIES, fields), "delivery_tag": "delivery_tag"})
        _put_sentinels(message, {"body": "body"})
        pieces = _SENTINELS.split(dumps(message))  # every second one is the name of a field
        return RedisTemplate(key, pieces, itemgetter(*pieces[1::2]), self.channel, self._delivery_tags)

    def differs(self, template: Any, captured: CapturedMessage, fields: MessageFields) -> bool:
        """Return whether key or text differs in any byte from what kombu pushes, except the random delivery tag."""
        key, text = self._pushed(captured)
        tag = json.loads(text)["properties"]["delivery_tag"]
        rendered = template.with_tag(template.prepare(fields.arguments), fields, tag)
        return bool((key, text) != (template.place, rendered))

    def write(self, place: str, messages: Sequence[str], taken: list[bool | None]) -> None:
        """Push a batch."""
        with self.channel.conn_or_acquire() as client:
            if sum(map(len, messages)) <= _AT_ONCE and _is_plain(client):
                _push_at_once(client.connection_pool, place, messages)
            else:
                client.lpush(place, *messages)
        taken[:] = [True] * len(messages)

    def _pushed(self, captured: CapturedMessage) -> tuple[str, str]:
        """Return what kombu would push, and onto which key."""
        pushed: list[tuple[str, str]] = []
        with _catching(self.channel, pushed):
            self.channel.basic_publish(copy.deepcopy(captured.message), **captured.target)
        if len(pushed) != 1:
            raise NotRenderable(f"Redis takes it by {len(pushed)} pushes")
        return pushed[0]


def _is_plain(client: Any) -> bool:
    """Return whether a push reaches the server as it is, and no tool has wrapped it to see it.

    kombu's client may put a prefix before each key.
    """
    import redis

    return (
        comes_from(client.execute_command, "redis.client")
        and comes_from(client.lpush, "redis.commands.core")
        and redis.VERSION >= (5, 3)  # before that, a pool wants to know the command
        and not _is_counted()
    )


def _is_counted() -> bool:
    """Return whether redis-py's own metrics are on, which count the commands that it writes itself."""
    try:
        from redis.observability import get_observability_instance
    except ImportError:  # an older redis-py
        return False
    return bool(get_observability_instance().is_enabled())


def _push_at_once(pool: Any, key: str, texts: Sequence[str]) -> None:
    """Write one LPUSH, and read the answer.

    Raises:
        redis.RedisError: as `lpush` does.
    """
    words = [b"LPUSH", key.encode(), *(text.encode() for text in texts)]
    command = b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)])
    connection = pool.get_connection()
    try:
        connection.send_packed_command([command])
        connection.read_response()
    finally:
        pool.release(connection)


class _CatchingClient:
    def __init__(self, pushed: list[tuple[str, str]]) -> None:
        self._pushed = pushed

    def lpush(self, key: str, text: str) -> None:
        self._pushed.append((key, text))

    def pipeline(self) -> Any:
        raise NotRenderable("its queue has a time to live that each message renews")


@contextmanager
def _catching(channel: Any, pushed: list[tuple[str, str]]) -> Iterator[None]:
    """Make the channel, which no other thread uses, push to a list for a moment."""

    @contextmanager
    def client(_client: Any = None) -> Iterator[_CatchingClient]:
        yield _CatchingClient(pushed)

    channel.conn_or_acquire = client
    try:
        yield
    finally:
        del channel.conn_or_acquire


def _random_uuids() -> Iterator[str]:
    """Yield unique texts of the form of `uuid4` at a tenth of its cost: 72 random bits, and a number."""
    random = os.urandom(9).hex()
    begins = f"{random[:8]}-{random[8:12]}-4{random[12:15]}-a{random[15:]}-"
    return (f"{begins}{number:012x}" for number in itertools.count())


def _sentinel(field: str) -> str:
    """Return a text that no message contains, to find the place of a field in the JSON text."""
    return f"\0{field}\0"


_SENTINELS = re.compile(re.escape(quoted(_sentinel("*"))).replace(r"\*", "([^\\\\]*)"))  # in JSON, with its quotes


def _put_sentinels(table: dict[str, Any], places: Mapping[str, str]) -> None:
    table.update({key: _sentinel(field) for key, field in places.items()})


def _values_of(prepared: Mapping[str, str], fields: MessageFields, delivery_tag: str) -> dict[str, str]:
    """Return the fields that a message has as JSON; `prepared` are those of the arguments."""
    values = {
        **prepared,
        "id": f'"{fields.id}"',
        "periodic_task": quoted(fields.periodic_task),
        "scheduled_for": f'"{fields.scheduled_for}"',
        "delivery_tag": f'"{delivery_tag}"',
    }
    if fields.eta is not None:
        values["eta"] = f'"{fields.eta}"'
    if fields.expires is not None:
        values.update(expires=f'"{fields.expires}"', expiration=f'"{fields.expiration}"')
    if fields.trace:
        values.update((placeholder(place), quoted(value)) for place, value in enumerate(fields.trace.values()))
    return values
