"""A message as Celery itself would send it, caught where it is handed to the channel.

Nothing is sent and no queue is declared: everything above the channel is Celery's and kombu's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kombu.messaging import Producer


class NotRenderable(Exception):
    """These messages cannot be rendered so that they equal Celery's own; says why."""


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """What the channel was given, and what it was made of.

    Attributes:
        message: what the channel's `prepare_message` made.
        target: exchange, routing key and flags of `basic_publish`.
        body: the message's body before it was serialised.
        options: what `Producer.publish` was called with.
        declared: the queues and exchanges that must exist.
    """

    message: Any
    target: Mapping[str, Any]
    body: Any
    options: Mapping[str, Any]
    declared: tuple[Any, ...]


def capture(send: Callable[[Producer], Any], channel: Any) -> CapturedMessage:
    """Have one message sent to a producer that keeps it.

    Raises:
        NotRenderable: it was none, or more than one, or the first try does not end it.
    """
    producer = _RecordingProducer(channel)
    send(producer)
    if len(producer.asked) != 1 or len(producer.caught) != 1:
        raise NotRenderable(f"one job makes {len(producer.asked)} messages")
    (body, options), (message, target) = producer.asked[0], producer.caught[0]
    if options.get("retry"):
        raise NotRenderable("its sending is tried again by kombu")
    return CapturedMessage(message, target, body, options, tuple(producer.declared))


class _RecordingProducer(Producer):
    def __init__(self, channel: Any) -> None:
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        self.caught: list[tuple[Any, dict[str, Any]]] = []
        self.declared: list[Any] = []
        super().__init__(_RecordingChannel(channel, self.caught), auto_declare=False)

    def publish(self, body: Any, *args: Any, **options: Any) -> Any:
        self.asked.append((body, options))
        return super().publish(body, *args, **options)

    def maybe_declare(self, entity: Any, *_args: Any, **_policy: Any) -> None:
        self.declared.append(entity)


class _RecordingChannel:
    """A channel that keeps what it should publish, and is the real one in everything else."""

    def __init__(self, channel: Any, caught: list[tuple[Any, dict[str, Any]]]) -> None:
        self._channel = channel
        self._caught = caught

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def basic_publish(self, message: Any, **target: Any) -> None:
        self._caught.append((message, target))
