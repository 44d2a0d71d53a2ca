"""Looking into a broker's queue: the second truth beside the table `probe`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from kombu import Connection, Queue
from kombu.exceptions import ChannelError

# The brokers for which every promise is tested: a test marked with it gets the fixture `broker_url` of each in turn.
both_brokers = pytest.mark.parametrize(
    "broker_url", ["redis", pytest.param("amqp", marks=pytest.mark.amqp)], indirect=True
)


@dataclass(frozen=True, slots=True)
class Message:
    """One task message as a worker would get it."""

    id: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    headers: dict[str, Any]
    properties: dict[str, Any]


def depth(url: str, queue: str = "celery") -> int:
    """Count the messages that wait in a queue; one that does not exist holds none."""
    with Connection(url) as connection, connection.channel() as channel:
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except ChannelError:
            return 0


def drain(url: str, queue: str = "celery") -> list[Message]:
    """Take all messages out of a queue, in order."""
    if depth(url, queue) == 0:
        return []
    with Connection(url) as connection, connection.channel() as channel:
        waiting = Queue(queue, channel=channel)
        return [_read(message) for message in iter(lambda: waiting.get(no_ack=True), None)]


def _read(message: Any) -> Message:
    args, kwargs, _ = message.payload
    headers = dict(message.headers)
    return Message(headers["id"], headers["task"], args, kwargs, headers, dict(message.properties))
