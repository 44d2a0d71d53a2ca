"""What a renderer asks of the part that knows one kind of broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from celery_pgbeat.beat.rendering.fields import Fields
from celery_pgbeat.beat.rendering.recording import Reference


class Template(Protocol):
    """A message with gaps where the fields belong."""

    @property
    def place(self) -> str:
        """Return where it is written to: what goes to one place is written at once."""

    def render(self, fields: Fields) -> Any:
        """Fill the gaps."""


class Press(Protocol):
    """Makes templates in the form in which its broker takes messages, and writes what was made of them."""

    channel: Any

    def template(self, reference: Reference, fields: Fields) -> Template:
        """Make a template of a message; raises `Inexact` where this broker needs more than a template."""

    def differs(self, template: Template, reference: Reference, fields: Fields) -> bool:
        """Tell whether the template renders anything else than kombu itself would write."""

    def write(self, place: str, messages: Sequence[Any], taken: list[bool | None]) -> None:
        """Write messages at once; note of each whether the broker took it, as soon as that is known."""
