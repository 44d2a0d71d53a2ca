"""What the renderer needs of a writer, which knows one kind of broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from celery_pgbeat.beat.send.rendering.capture import CapturedMessage
from celery_pgbeat.beat.send.rendering.message_fields import EncodedArguments, MessageFields


class Template(Protocol):
    """A message with placeholders for the fields."""

    @property
    def place(self) -> str:
        """Where it is written to; messages for one place are written at once."""

    def prepare(self, arguments: EncodedArguments) -> Any:
        """Write the arguments, which a row has in common with its next messages, in the broker's form."""

    def render(self, prepared: Any, fields: MessageFields) -> Any:
        """Fill in what `prepare` has returned, and the other fields."""


class Writer(Protocol):
    """Makes templates in the form that its broker takes, and writes the messages."""

    channel: Any

    def template(self, captured: CapturedMessage, fields: MessageFields) -> Template:
        """Make a template of a message; raises `NotRenderable` if this broker needs more than a template."""

    def differs(self, template: Template, captured: CapturedMessage, fields: MessageFields) -> bool:
        """Return whether the template renders anything else than kombu itself would write."""

    def write(self, place: str, messages: Sequence[Any], taken: list[bool | None]) -> None:
        """Write messages at once; note in `taken` whether the broker took each, as soon as that is known."""
