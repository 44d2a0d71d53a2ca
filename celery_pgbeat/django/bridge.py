"""Answers a request of Django by an ASGI application, under WSGI and under ASGI.

The application runs in an event loop of its own, in one thread of the process: its locks belong to one loop, while
Django's own loops, if it has any, come and go with requests. The thread begins with the first request, so after a fork.

A stream is passed on under ASGI. Under WSGI it would hold a worker, so it ends after its first event there, and asks
the browser to come again: the page polls.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from http.cookies import SimpleCookie
from typing import Any, TypeVar

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from starlette.types import ASGIApp

POLL = b"retry: 10000\n\n"  # milliseconds after which a browser asks again
STREAM = b"text/event-stream"
OVER = {"type": "http.disconnect"}
Result = TypeVar("Result")


class Loop:
    """An event loop in a thread of its own, one for each process."""

    def __init__(self) -> None:
        self._loops: dict[int, asyncio.AbstractEventLoop] = {}
        self._starting = threading.Lock()

    def of_process(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs."""
        process = os.getpid()
        with self._starting:
            if process not in self._loops:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="pgbeat-dashboard", daemon=True).start()
                self._loops[process] = loop
        return self._loops[process]

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run something there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(call, self.of_process()).result()

    async def awaited(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run something there, and wait for it in another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self.of_process()))


LOOP = Loop()


class Exchange:
    """One request, as it is answered. All of it is in the loop of the application."""

    def __init__(self, app: ASGIApp, scope: Mapping[str, Any], body: bytes, keeps_streams: bool) -> None:
        self._app = app
        self._scope = dict(scope)
        self._body: bytes | None = body
        self._keeps_streams = keeps_streams
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(1)  # None: that was the last one
        self._begun: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._task = asyncio.ensure_future(self._answer())

    async def start(self) -> dict[str, Any]:
        """Return status and headers."""
        return await self._begun

    async def chunk(self) -> bytes | None:
        """Return the next part of the body; None after the last one."""
        return await self._chunks.get()

    async def whole(self) -> bytes:
        """Return the body."""
        parts = []
        while (part := await self.chunk()) is not None:
            parts.append(part)
        return b"".join(parts)

    async def leave(self) -> None:
        """Tell the application that the client has left."""
        self._gone.set()
        self._task.cancel()

    async def _answer(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
            if not self._begun.done():
                raise RuntimeError(f"{self._scope['path']} was not answered")
        except Exception as error:
            if self._begun.done():
                raise
            self._begun.set_exception(error)
        finally:
            if not self._gone.is_set():
                await self._chunks.put(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return OVER

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._begun.set_result(message)
            return
        part: bytes = message.get("body", b"")
        if part and not self._gone.is_set():
            await self._chunks.put(part)
        if part.startswith(b"event:") and not self._keeps_streams:
            await self._chunks.put(POLL)
            await self._chunks.put(None)
            self._gone.set()


def answer(app: ASGIApp, request: Any, scope: Mapping[str, Any]) -> HttpResponseBase:
    """Return the answer of an ASGI application to a request of Django.

    Args:
        app: the application.
        request: Django's request.
        scope: what is added to the scope: `path`, `root_path`, and whatever the application wants to know.
    """
    is_asgi = isinstance(request, ASGIRequest)
    asked, body = _scope(request) | dict(scope), request.body

    async def begin() -> Exchange:
        return Exchange(app, asked, body, keeps_streams=is_asgi)

    exchange = LOOP.run(begin())
    start = LOOP.run(exchange.start())
    headers = [(bytes(name).lower(), bytes(value)) for name, value in start["headers"]]
    is_stream = any(name == b"content-type" and value.startswith(STREAM) for name, value in headers)
    response: HttpResponseBase
    if is_stream and is_asgi:
        response = StreamingHttpResponse(_passed_on(exchange), status=start["status"])
        response.headers["Content-Encoding"] = "identity"  # or Django's compression would hold events back
    else:
        response = HttpResponse(LOOP.run(exchange.whole()), status=start["status"])
    for name, value in headers:
        if name == b"set-cookie":
            response.cookies.update(SimpleCookie(value.decode("latin-1")))
        elif name != b"content-length":
            response.headers[name.decode("latin-1")] = value.decode("latin-1")
    return response


async def _passed_on(exchange: Exchange) -> AsyncIterator[bytes]:
    try:
        while (part := await LOOP.awaited(exchange.chunk())) is not None:
            yield part
    finally:
        LOOP.of_process().call_soon_threadsafe(asyncio.ensure_future, exchange.leave())


def _scope(request: Any) -> dict[str, Any]:
    """Return a request as ASGI has it. Django has checked the name of the host."""
    own = {"host": request.get_host()}
    headers = {name.lower(): value for name, value in request.headers.items()} | own
    port = request.get_port()
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": [(name.encode("latin-1"), str(value).encode("latin-1")) for name, value in headers.items()],
        "client": (request.META.get("REMOTE_ADDR") or "", 0),
        "server": (request.get_host(), int(port) if str(port).isdigit() else None),
    }
