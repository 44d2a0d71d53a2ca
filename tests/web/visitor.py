"""A browser without script: opens pages, and reads what a person would."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from starlette.testclient import TestClient
from starlette.types import ASGIApp

UNSEEN = ("script", "style", "title")


@dataclass(frozen=True)
class Seen:
    """One answer.

    Attributes:
        status: of HTTP.
        headers: of HTTP.
        html: as it came.
        text: what a person reads, with single blanks.
        links: the addresses of all links and forms.
        tags: the name and the attributes of each element.
    """

    status: int
    headers: Any
    html: str
    text: str
    links: list[str]
    tags: list[tuple[str, dict[str, str | None]]]

    def link(self, words: str) -> str:
        """Return the address of the first link whose address contains these words."""
        return next(address for address in self.links if words in address)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self.links += [str(given[name]) for name in ("href", "action", "src") if name in given]
        if tag in UNSEEN:
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._within:
            self._within.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.words.append(data)


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
        answer = self.client.get(path, params=parameters or None, follow_redirects=False)
        reader = _Reader()
        reader.feed(answer.text)
        return Seen(
            answer.status_code,
            answer.headers,
            answer.text,
            " ".join(" ".join(reader.words).split()),
            reader.links,
            reader.tags,
        )
