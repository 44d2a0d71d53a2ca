"""What a browser has sent by a form: short texts in UTF-8, each once, and not too many."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

import anyio
from starlette.requests import ClientDisconnect, Request

MOST_BYTES = 256 * 1024  # arguments have up to 64 kB, and a byte of theirs may be three in a form
MOST_FIELDS = 50
PATIENCE = 20  # seconds until the whole form must have come
TYPE = "application/x-www-form-urlencoded"


class FormRefused(Exception):
    """A form cannot be read.

    Attributes:
        status: of HTTP.
        sentence: what is wrong.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence


class Wrong(Exception):
    """A field of a form has a value that cannot be used.

    Attributes:
        field: its name.
        sentence: what is wrong with it.
        renewed: fields that are shown as they are stored now, not as they were sent.
    """

    def __init__(self, field: str, sentence: str, renewed: tuple[str, ...] = ()) -> None:
        super().__init__(field, sentence)
        self.field = field
        self.sentence = sentence
        self.renewed = renewed


class Form:
    """The values of a form, by the names of its fields."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def has(self, name: str) -> bool:
        """Return whether the form had this field."""
        return name in self._given

    def raw(self, name: str) -> str:
        """Return a value as it was typed; an empty text if there is none."""
        return self._given.get(name, "")

    def text(self, name: str) -> str | None:
        """Return a value without the blanks around it; None if it is empty.

        Raises:
            Wrong: it contains NUL, which Postgres refuses.
        """
        value = self.raw(name).replace("\r\n", "\n").strip()
        if "\0" in value:
            raise Wrong(name, "This contains the character NUL, which Postgres cannot store.")
        return value or None

    def required(self, name: str) -> str:
        """Return a value without the blanks around it.

        Raises:
            Wrong: it is empty, or contains NUL.
        """
        value = self.text(name)
        if value is None:
            raise Wrong(name, "This is needed.")
        return value

    def switch(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.has(name)


async def read_form(request: Request) -> Form:
    """Read the form that a request carries.

    Raises:
        FormRefused: it is too large, too slow, of another type, or malformed.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != TYPE:
        raise FormRefused(415, f"A form comes as {TYPE}.")
    try:
        with anyio.fail_after(PATIENCE):
            body = await _body(request)
    except TimeoutError:
        raise FormRefused(408, f"The form did not come within {PATIENCE} seconds.") from None
    except ClientDisconnect:
        raise FormRefused(400, "The connection ended before the form had come.") from None
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:  # UnicodeDecodeError is one
        raise FormRefused(400, "The form is malformed: see whether it is UTF-8, with few fields.") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise FormRefused(400, "The form has a field twice.")
    return Form(given)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise FormRefused(413, f"The form is larger than {MOST_BYTES // 1024} kB.")
    return bytes(body)
