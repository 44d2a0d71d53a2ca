"""A page as a person in a browser without script sees it."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

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
        fields: what the fields of the form have that it would send as it is.
    """

    status: int
    headers: Any
    html: str
    text: str
    links: list[str]
    tags: list[tuple[str, dict[str, str | None]]]
    fields: dict[str, str]

    def link(self, words: str) -> str:
        """Return the address of the first link whose address contains these words."""
        return next(address for address in self.links if words in address)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.fields: dict[str, str] = {}
        self._posts = False
        self._area: str | None = None
        self._choice = ""
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self.links += [str(given[name]) for name in ("href", "action", "src") if name in given]
        if tag in UNSEEN:
            self._within.append(tag)
        self._posts = given.get("method") == "post" if tag == "form" else self._posts
        if self._posts:
            self._field(tag, given)

    def _field(self, tag: str, given: dict[str, str | None]) -> None:
        name, value = str(given.get("name")), given.get("value") or ""
        if tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.fields[name] = value
        elif tag == "textarea":
            self.fields[name], self._area = "", name
        elif tag == "select":
            self._choice = name
        elif tag == "option" and ("selected" in given or self._choice not in self.fields):
            self.fields[self._choice] = value

    def handle_endtag(self, tag: str) -> None:
        if tag in self._within:
            self._within.remove(tag)
        if tag == "textarea" and self._area is not None:
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")
            self._area = None
        self._posts = self._posts and tag != "form"

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.fields[self._area] += data
        if not self._within:
            self.words.append(data)


def seen(status: int, headers: Any, html: str) -> Seen:
    """Return an answer as it is seen."""
    reader = _Reader()
    reader.feed(html)
    text = " ".join(" ".join(reader.words).split())
    return Seen(status, headers, html, text, reader.links, reader.tags, reader.fields)
