"""What a renderer asks of the part that knows one kind of broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from celery_pgbeat.beat.send.rendering.capture import CapturedMessage
from celery_pgbeat.beat.send.rendering.message_fields import MessageFields


class Template(Protocol):
    """A message with gaps where the fields belong."""

    @property
    def place(self) -> str:
        """Return where it is written to: what goes to one place is written at once."""

    def render(self, fields: MessageFields) -> Any:
        """Fill the gaps."""


class Writer(Protocol):
    """Makes templates in the form in which its broker takes messages, and writes what was made of them."""

    channel: Any

    def template(self, captured: CapturedMessage, fields: MessageFields) -> Template:
        """Make a template of a message; raises `NotRenderable` where this broker needs more than a template."""

    def differs(self, template: Template, captured: CapturedMessage, fields: MessageFields) -> bool:
        """Tell whether the template renders anything else than kombu itself would write."""

    def write(self, place: str, messages: Sequence[Any], taken: list[bool | None]) -> None:
        """Write messages at once; note of each whether the broker took it, as soon as that is known."""
