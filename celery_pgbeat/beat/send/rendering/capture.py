"""Captures a message as Celery itself would send it, where kombu hands it to the channel.

Nothing is sent and no queue is declared. Everything above the channel is Celery's and kombu's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kombu.messaging import Producer


class NotRenderable(Exception):
    """These messages cannot be rendered equal to Celery's own; the text has the reason."""


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """What the channel was given, and what that was made of.

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
    """Send one message to a producer that keeps it.

    Raises:
        NotRenderable: the task sends no message, several, or retries its publish.
    """
    producer = _RecordingProducer(channel)
    send(producer)
    if len(producer.published) != 1 or len(producer.caught) != 1:
        raise NotRenderable(f"one job makes {len(producer.published)} messages")
    (body, options), (message, target) = producer.published[0], producer.caught[0]
    if options.get("retry"):
        raise NotRenderable("its sending is tried again by kombu")
    return CapturedMessage(message, target, body, options, tuple(producer.declared))


class _RecordingProducer(Producer):
    def __init__(self, channel: Any) -> None:
        self.published: list[tuple[Any, dict[str, Any]]] = []
        self.caught: list[tuple[Any, dict[str, Any]]] = []
        self.declared: list[Any] = []
        super().__init__(_RecordingChannel(channel, self.caught), auto_declare=False)

    def publish(self, body: Any, *args: Any, **options: Any) -> Any:
        self.published.append((body, options))
        return super().publish(body, *args, **options)

    def maybe_declare(self, entity: Any, *_args: Any, **_policy: Any) -> None:
        self.declared.append(entity)


class _RecordingChannel:
    """A channel that keeps what it should publish, and passes everything else on to the real one."""

    def __init__(self, channel: Any, caught: list[tuple[Any, dict[str, Any]]]) -> None:
        self._channel = channel
        self._caught = caught

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def basic_publish(self, message: Any, **target: Any) -> None:
        self._caught.append((message, target))
