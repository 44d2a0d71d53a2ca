"""Who may open the dashboard, and what a browser may do with its pages.

Without a password and an `authorize` only this host may: the connection must come from a loopback address, and ask for
this host by a name of its own, so that no page of another site can read the dashboard by a name that it makes point
here. A request that a proxy has passed on comes from somewhere else, wherever its connection comes from.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeAlias

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.password import EarlyReceive, Password

Authorize: TypeAlias = Callable[[HTTPConnection], "bool | Awaitable[bool]"]
MayChange: TypeAlias = Callable[[HTTPConnection], "bool | str | Awaitable[bool | str]"]

LONGEST_NAME = 200  # characters of a person's name
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
FORWARDED = (  # headers that proxies add; a proxy that adds none of them cannot be told from a browser of this host
    *("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"),
    *("x-forwarded-server", "x-forwarded-prefix", "x-original-forwarded-for", "x-real-ip", "x-client-ip"),
    *("x-cluster-client-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip", "cdn-loop"),
    *("x-envoy-external-address", "x-azure-clientip", "tailscale-user-login"),
)
HOW_TO_ALLOW = (
    "Set pgbeat_web_password (PGBEAT_WEB_PASSWORD in the environment), or mount the dashboard with "
    "dashboard(..., authorize=...)."
)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: browsers then send `Origin: null` with the dashboard's own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Tell whether a host is this one, by its address or as `localhost`.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.com")]
        [True, True, True, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Person:
    """A user who may change something.

    Attributes:
        name: None if it is not known.
    """

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """The rule of one dashboard.

    Attributes:
        password: what Basic authentication must give; None for none.
        authorize: whether a request may be answered; None for no such function.
        hosts: the names by which it may be asked for, as patterns; None for any, and for those of this host if there is
            neither password nor `authorize`.
        may_change: whether a request may change something, and by which name; None: no request may.
    """

    password: Password | None = None
    authorize: Authorize | None = None
    hosts: tuple[str, ...] | None = None
    may_change: MayChange | None = None

    async def refusal(self, request: HTTPConnection, gone: Callable[[], Awaitable[None]]) -> Response | None:
        """Return the answer to a request that is refused; None for one that may go on.

        Args:
            request: it.
            gone: waits until its client has closed the connection.
        """
        is_open = self.password is None and self.authorize is None
        hosts = LOOPBACK_NAMES if self.hosts is None and is_open else self.hosts
        if hosts is not None and not _names(request, hosts):
            return _refused(400, "The dashboard does not answer to this host name: see the argument hosts.")
        if is_open:
            client = request.client
            if client is None or not is_loopback(client.host) or _comes_by_proxy(request):
                return _refused(403, f"Only this host itself may open the dashboard. {HOW_TO_ALLOW}")
            return None
        found = "right" if self.password is None else await self.password.check(request, gone)
        if found != "right":
            return _WITHOUT_PASSWORD[found]()
        if self.authorize is not None:
            allowed = self.authorize(request)
            if inspect.isawaitable(allowed):
                allowed = await allowed
            if allowed is not True:
                return _refused(403, "You may not open this dashboard: ask those who run it.")
        return None

    async def person(self, request: HTTPConnection) -> Person | None:
        """Return the user who may change something by a request that was not refused; None if they may only look."""
        if self.may_change is None:
            return None
        found = self.may_change(request)
        if inspect.isawaitable(found):
            found = await found
        if found is True:
            return Person()
        return Person(one_line(found, LONGEST_NAME)) if isinstance(found, str) and found.strip() else None


def _refused(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{sentence}\n", status, headers)


_WITHOUT_PASSWORD = {
    "wrong": partial(
        _refused,
        401,
        "The dashboard's password is required.",
        {"WWW-Authenticate": 'Basic realm="celery-pgbeat", charset="UTF-8"'},
    ),
    "not compared": partial(
        _refused,
        429,
        "Too many passwords are being tried, and this one was not checked. Try again in 5 seconds.",
        {"Retry-After": "5"},
    ),
}


def _names(request: HTTPConnection, hosts: Iterable[str]) -> bool:
    given = request.headers.get("host", "")
    name, bracket, _ = given[1:].partition("]") if given.startswith("[") else (given.partition(":")[0], "]", "")
    return bool(bracket) and any(fnmatchcase(name.lower(), pattern.lower()) for pattern in hosts)


def _comes_by_proxy(request: HTTPConnection) -> bool:
    """Tell whether a request was passed on. No browser speaks HTTP/1.0; nginx does, if it is not told otherwise."""
    return request.scope.get("http_version") == "1.0" or any(name in request.headers for name in FORWARDED)


class Guarded:
    """An ASGI application behind an `Access`; its answers have the headers that keep a browser from harm."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it; there are no websockets."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        early = EarlyReceive(receive)
        refusal = await self._access.refusal(HTTPConnection(scope), early.gone)
        await (refusal or self._app)(scope, early, with_headers)


def access_of(password: Any, authorize: Any, hosts: Any, may_change: Any = None) -> Access:
    """Return the rule that these arguments of `dashboard` make.

    Raises:
        TypeError: one of them is of a wrong type; names it.
    """
    if password is not None and (not isinstance(password, str) or not password):
        raise TypeError("password is neither None nor a text that is not empty")
    if authorize is not None and not callable(authorize):
        raise TypeError("authorize is neither None nor a function")
    if may_change is not None and not callable(may_change):
        raise TypeError("may_change is neither None nor a function")
    if isinstance(hosts, str):
        raise TypeError("hosts is a text, not a list of host names")
    return Access(
        None if password is None else Password(password), authorize, None if hosts is None else tuple(hosts), may_change
    )
