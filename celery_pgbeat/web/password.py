"""The password of the dashboard: which requests have it, and how fast others may guess it.

Passwords are compared one at a time, and a wrong one costs `GUESS`, also if its client does not wait for the answer.
The right one takes its turn as the others do: if it were answered at once, an attacker would try many at the same time
and read only the quick answer. A person who has given it once does not wait again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import anyio
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive

GUESS = 0.2  # seconds that a wrong password costs, one after the other: at most five can be tried in a second
MOST_WAITING = 20  # passwords that wait for their turn: up to 4 s; further ones are not compared
MOST_KNOWN = 1000  # clients that have given the right one; of more, the first are compared again

Found: TypeAlias = Literal["right", "wrong", "not compared"]


class Password:
    """A password that each user must give by Basic authentication, under any name."""

    def __init__(self, text: str) -> None:
        self._expected = text.encode()
        self._turn = anyio.Lock()
        self._waiting = 0
        self._salt = secrets.token_bytes(32)
        self._known: dict[bytes, None] = {}

    async def check(self, request: HTTPConnection, gone: Callable[[], Awaitable[None]]) -> Found:
        """Tell whether a request has the password; one whose client is `gone` is not compared any more."""
        given = _given(request)
        if given is None:
            return "wrong"
        client = self._client(request)
        if client in self._known:
            return "right"
        if self._waiting >= MOST_WAITING:
            return "not compared"
        found: Found = "not compared"
        self._waiting += 1
        try:
            async with anyio.create_task_group() as group:

                async def leave() -> None:
                    await gone()
                    group.cancel_scope.cancel()

                group.start_soon(leave)
                async with self._turn:
                    with anyio.CancelScope(shield=True):
                        found = await self._compare(given)
                group.cancel_scope.cancel()
        finally:
            self._waiting -= 1
        if found == "right":
            self._known[client] = None
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return found

    async def _compare(self, given: str) -> Found:
        if hmac.compare_digest(given.encode(), self._expected):
            return "right"
        await anyio.sleep(GUESS)
        return "wrong"

    def _client(self, request: HTTPConnection) -> bytes:
        """Return what tells one client from another: its address and what it gives, neither of them readable."""
        host = request.client.host if request.client else ""
        given = f"{host}\0{request.headers['authorization']}"
        return hashlib.blake2b(given.encode(), key=self._salt, digest_size=32).digest()


class EarlyReceive:
    """What a client sends: up to the first part of a body, it is received while the request waits, and kept."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._early: list[Message] = []

    async def __call__(self) -> Message:
        """Return the next message of the client."""
        return self._early.pop(0) if self._early else await self._receive()

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        while True:
            message = await self._receive()
            self._early.append(message)
            if message["type"] == "http.disconnect":
                return
            if message.get("more_body", False):
                await anyio.sleep_forever()  # no more is read before the password is known


def _given(request: HTTPConnection) -> str | None:
    """Return the password that a request gives; None if it gives none."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        return base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
