"""A browser without script: opens pages, and reads what a person would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from tests.harness.html import Seen, seen

__all__ = ["Seen", "Visitor", "gone_to"]


class Visitor:
    """Somebody on this host who looks at a dashboard."""

    def __init__(self, app: ASGIApp, host: str = "localhost", address: str = "127.0.0.1") -> None:
        self.client = TestClient(app, base_url=f"http://{host}", client=(address, 50_000))

    def __enter__(self) -> Visitor:
        self.client.__enter__()
        return self

    def __exit__(self, *told: object) -> None:
        self.client.__exit__(*told)

    def open(self, path: str, **parameters: Any) -> Seen:
        """Open an address, or a page with parameters."""
        return self._seen(self.client.get(path, params=parameters or None, follow_redirects=False))

    def send(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Seen:
        """Send a form, as a browser does from a page of the same site."""
        here = {"Origin": str(self.client.base_url).rstrip("/")} if headers is None else headers
        return self._seen(self.client.post(path, data=dict(fields), headers=here, follow_redirects=False))

    def act(self, path: str, *, step: str = "do", **typed: str) -> Seen:
        """Open the form of an action, type into it, and send it."""
        seen = self.open(path)
        assert 200 == seen.status, seen.text
        return self.send(path, {**seen.fields, **typed, "step": step})

    @staticmethod
    def _seen(answer: Response) -> Seen:
        return seen(answer.status_code, answer.headers, answer.text)


def gone_to(seen: Seen, address: str) -> None:
    """Assert that an action was done, and that the browser is sent to this address."""
    assert (303, address) == (seen.status, seen.headers.get("location")), seen.text
