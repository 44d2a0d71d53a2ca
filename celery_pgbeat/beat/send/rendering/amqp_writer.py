"""Messages for RabbitMQ: py-amqp's frames with placeholders, written at once; then it waits for the broker's answers.

The writer has a channel of its own for this alone: the broker counts what is published on it from 1, and its answers
contain the count.
"""

from __future__ import annotations

import contextlib
import copy
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack
from types import SimpleNamespace
from typing import Any, NamedTuple

from amqp import Message, spec
from amqp.exceptions import RecoverableConnectionError
from amqp.method_framing import frame_writer
from amqp.serialization import dumps

from celery_pgbeat.beat.database_clock import boottime
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

CONFIRMED_WITHIN = 10.0  # seconds for the answers to a batch, unless `read_timeout` is set

_METHODS = {
    "prepare_message": "kombu.transport.pyamqp",
    "basic_publish": "amqp.channel",
    "basic_publish_confirm": "amqp.channel",
    "_basic_publish": "amqp.channel",
    "send_method": "amqp.abstract_channel",
}
_CONTENT = (spec.Basic.CLASS_ID, 0)
_END = b"\xce"  # of a frame
_AROUND = 8  # bytes of a frame around its content


class PreparedArguments(NamedTuple):
    """The arguments as they are written.

    Attributes:
        start: how the content of the header's frame begins, with the size of the body.
        body: the frame of the body; empty if the body is.
    """

    argsrepr: bytes
    kwargsrepr: bytes
    start: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class AmqpTemplate:
    """The frames of a message: the method's is always the same, the header's has placeholders (`%`-formatted)."""

    channel: int
    frame_max: int
    encoding: str
    method: bytes
    before: bytes  # the properties in front of the headers
    headers: bytes
    ours: bytes
    after: bytes
    place: str = ""  # one channel for all

    def prepare(self, arguments: EncodedArguments) -> PreparedArguments:
        """Write the arguments, and their frame."""
        body = arguments.body.encode(self.encoding) if isinstance(arguments.body, str) else arguments.body
        if len(body) > self.frame_max - _AROUND:
            raise NotRenderable("it is larger than a frame")
        return PreparedArguments(
            _text(arguments.argsrepr),
            _text(arguments.kwargsrepr),
            pack(">HHQ", *_CONTENT, len(body)),
            _frame(3, self.channel, body) if body else b"",
        )

    def render(self, prepared: PreparedArguments, fields: MessageFields) -> bytes:
        """Fill in the placeholders."""
        values = {
            b"id": _text(fields.id),
            b"periodic_task": _text(fields.periodic_task),
            b"scheduled_for": _text(fields.scheduled_for),
            b"argsrepr": prepared.argsrepr,
            b"kwargsrepr": prepared.kwargsrepr,
            b"expires": _text(fields.expires or ""),
            b"correlation_id": _short(fields.id),
            b"expiration": _short(fields.expiration or ""),
        }
        if fields.trace:
            values.update(
                (placeholder(place).encode(), _text(value)) for place, value in enumerate(fields.trace.values())
            )
        ours = self.ours % values
        values[b"pgbeat"] = pack(">cI", b"F", len(ours)) + ours
        headers = self.headers % values
        content = b"".join((prepared.start, self.before, pack(">I", len(headers)), headers, self.after % values))
        if len(content) > self.frame_max - _AROUND:
            raise NotRenderable("it is larger than a frame")
        return self.method + _frame(2, self.channel, content) + prepared.body


class AmqpWriter:
    """Writes frames on a channel of its own, and waits for all confirms of a batch together."""

    def __init__(self, connection: Any) -> None:
        self._answer_timeout = connection.transport_options.get("read_timeout") or CONFIRMED_WITHIN
        self._published = 0
        self._waiting: dict[int, int] = {}  # the broker's number of a message -> its place in the batch
        self._taken: list[bool | None] = []
        self.channel = connection.channel()
        self.channel.confirm_select()
        self.channel.events["basic_ack"].add(self._on_ack)
        self.channel.events["basic_nack"].add(self._on_nack)

    @staticmethod
    def fits(connection: Any) -> bool:
        """Return whether this is kombu's own AMQP transport, unpatched, and confirms are wanted."""
        channel = connection.default_channel
        return (
            f"{type(channel).__module__}.{type(channel).__qualname__}" == "kombu.transport.pyamqp.Channel"
            and all(comes_from(getattr(channel, name), module) for name, module in _METHODS.items())
            and bool(channel.connection.confirm_publish)
        )

    def template(self, captured: CapturedMessage, fields: MessageFields) -> AmqpTemplate:
        """Make a template of a message."""
        target, properties = captured.target, captured.message.properties
        if target.get("mandatory") or target.get("immediate"):
            raise NotRenderable("the broker may hand it back")
        if not (target.get("timeout") is None and target.get("confirm_timeout") is None):
            raise NotRenderable("it has a time limit of its own")
        declared = {getattr(entity, "exchange", entity).name for entity in captured.declared if not entity.no_declare}
        if target["exchange"] not in {"", *declared}:
            raise NotRenderable("its exchange may not exist, for which RabbitMQ closes the channel")
        table = properties["application_headers"]
        if table.get("eta") is not None:
            raise NotRenderable("RabbitMQ may have to delay it")
        ours = table.get("pgbeat")
        headers = b"".join(
            _key(key) + b"%(pgbeat)b" if key == "pgbeat" and isinstance(ours, dict) else _item(key, value, places)
            for places in (headers_in(table, fields),)
            for key, value in table.items()
        )
        before, after = _around_headers(properties, fields_in(properties, PROPERTIES, fields))
        return AmqpTemplate(
            channel=self.channel.channel_id,
            frame_max=self.channel.connection.frame_max,
            encoding=properties.get("content_encoding") or "utf-8",
            method=_frame(1, self.channel.channel_id, pack(">HH", *spec.Basic.Publish) + _arguments(target)),
            before=before,
            headers=headers,
            ours=_table(ours, fields_in(ours, OUR_HEADER, fields)) if isinstance(ours, dict) else b"",
            after=after,
        )

    def differs(self, template: Any, captured: CapturedMessage, fields: MessageFields) -> bool:
        """Return whether the frames differ in any byte from those that py-amqp writes."""
        written = bytearray()
        connection = SimpleNamespace(frame_max=self.channel.connection.frame_max, bytes_sent=0)
        write = frame_writer(connection, SimpleNamespace(write=written.extend))
        arguments = _arguments(captured.target)
        write(1, self.channel.channel_id, spec.Basic.Publish, arguments, copy.copy(captured.message))
        return bool(bytes(written) != template.render(template.prepare(fields.arguments), fields))

    def write(self, place: str, messages: Sequence[bytes], taken: list[bool | None]) -> None:  # noqa: ARG002
        """Publish a batch and wait until the broker has answered for each message."""
        connection = self.channel.connection
        if connection is None:
            raise RecoverableConnectionError("the connection is closed")
        with contextlib.suppress(socket.timeout):
            connection.drain_events(timeout=0)  # if the broker has closed the connection, this raises
        self._taken = taken
        self._waiting = {self._published + place + 1: place for place in range(len(messages))}
        self._published += len(messages)
        connection.transport.write(b"".join(messages))
        connection.bytes_sent += len(messages)
        until = boottime() + self._answer_timeout
        while self._waiting:
            connection.drain_events(timeout=max(until - boottime(), 0.001))

    def _on_ack(self, number: int, multiple: bool) -> None:
        self._answered(number, multiple, took=True)

    def _on_nack(self, number: int, multiple: bool) -> None:
        self._answered(number, multiple, took=False)

    def _answered(self, number: int, multiple: bool, took: bool) -> None:
        answered = [waiting for waiting in self._waiting if waiting <= number] if multiple else [number]
        for waiting in answered:
            self._taken[self._waiting.pop(waiting)] = took


def _around_headers(properties: Mapping[str, Any], places: Mapping[str, str]) -> tuple[bytes, bytes]:
    """Return the properties before the headers, with the flags of all, and those behind the headers."""
    flags, before, after = 0, b"", b""
    for number, (name, kind) in enumerate(Message.PROPERTIES):
        value = properties.get(name)
        if value is None:
            continue
        flags |= 1 << (15 - number)
        if name == "application_headers":
            before, after = after, b""
        elif name in places:
            after += b"%%(%s)b" % name.encode()
        else:
            after += _escaped(dumps(kind, [value]))
    return pack(">H", flags) + before.replace(b"%%", b"%"), after


def _arguments(target: Mapping[str, Any]) -> bytes:
    flags = (target.get("mandatory", False), target.get("immediate", False))
    return bytes(dumps("Bssbb", (0, target["exchange"], target["routing_key"], *flags)))


def _table(table: Mapping[str, Any], places: Mapping[str, str]) -> bytes:
    return b"".join(_item(key, value, places) for key, value in table.items())


def _item(key: str, value: Any, places: Mapping[str, str]) -> bytes:
    if key in places:
        return _key(key) + b"%%(%s)b" % places[key].encode()
    return _escaped(dumps("F", [{key: value}])[4:])  # without the length of the table


def _key(key: str) -> bytes:
    return _escaped(_short(key))


def _escaped(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")


def _short(text: str) -> bytes:
    written = text.encode("utf-8", "surrogatepass")
    return pack("B", len(written)) + written


def _text(text: str) -> bytes:
    written = text.encode("utf-8", "surrogatepass")
    return pack(">cI", b"S", len(written)) + written


def _frame(kind: int, channel: int, content: bytes) -> bytes:
    return pack(">BHI", kind, channel, len(content)) + content + _END
