"""Keeps other sites from sending forms in the name of a user of the dashboard.

Two walls, each of which is enough by itself. A browser says which site a form comes from; a form of another one is
refused. And each form carries a token that only a page of this dashboard could have: it is computed from a random
cookie and from the person, by a key that never leaves the server. Another site can send the cookie, but not read it,
and a cookie that an attacker has planted in another person's browser fits only the attacker's own tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from celery_pgbeat.web.access import Person

SHORTEST_SECRET = 32  # characters


class Tokens:
    """The tokens of one dashboard's forms.

    Args:
        secret: what the key is made of, the same in all processes that serve it; None for a random key.
    """

    def __init__(self, secret: str | None) -> None:
        given = secrets.token_bytes(32) if secret is None else secret.encode()
        self._key = hashlib.sha256(b"celery-pgbeat dashboard\0" + given).digest()
        # By the key, because cookies know no ports: two dashboards of one host must not replace each other's.
        self._cookie = f"pgbeat_{self._signed('name', '')[:8]}"

    def session(self, request: HTTPConnection) -> str | None:
        """Return the session of a request's cookie; None if it has none, or one that is not from here."""
        session, _, signature = request.cookies.get(self._cookie, "").partition(".")
        right = hmac.compare_digest(signature.encode(), self._signed("session", session).encode())
        return session if session and right else None

    def issue(self, request: HTTPConnection, person: Person) -> tuple[str, str | None]:
        """Return the token for a form, and the session that is to be set as a cookie; None if there is one already."""
        known = self.session(request)
        session = known or secrets.token_urlsafe(32)
        return self._token(session, person), None if known else session

    def keep(self, response: Response, session: str, request: HTTPConnection) -> None:
        """Set the cookie of a new session. It ends with the browser."""
        response.set_cookie(
            self._cookie,
            f"{session}.{self._signed('session', session)}",
            path=request.scope.get("root_path", "") or "/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def is_right(self, request: HTTPConnection, person: Person, given: str) -> bool:
        """Tell whether a form carries the token of this browser's session and of this person."""
        session = self.session(request)
        return session is not None and hmac.compare_digest(given.encode(), self._token(session, person).encode())

    def _token(self, session: str, person: Person) -> str:
        return self._signed("form", f"{session}\0{person.name or ''}")

    def _signed(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()


def comes_from_here(request: HTTPConnection) -> bool | None:
    """Tell whether a page of this dashboard has sent a form; None if the browser does not say.

    `Sec-Fetch-Site` comes only by HTTPS and from this host, `Origin` with every form of a browser of today.
    """
    sites, origins = request.headers.getlist("sec-fetch-site"), request.headers.getlist("origin")
    if not sites and not origins:
        return None
    return all(site == "same-origin" for site in sites) and all(_is_own(origin, request) for origin in origins)


def _is_own(origin: str, request: HTTPConnection) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    port = {"http": ":80", "https": ":443"}.get(parts.scheme)
    if port is None:
        return False
    host = request.headers.get("host", "").lower()
    return bool(host) and parts.netloc.lower().removesuffix(port) == host.removesuffix(port)
