"""The ASGI application: the pages, the stream of live updates and the files, behind the rule of who may open them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from celery_pgbeat.api import PgBeat
from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.operations import offered
from celery_pgbeat.web import words
from celery_pgbeat.web.access import Access, Guarded, Person, access_of
from celery_pgbeat.web.acting import Acting
from celery_pgbeat.web.actions import ACTIONS, DONE
from celery_pgbeat.web.actions.edit import LOOKED_AT, look_ahead
from celery_pgbeat.web.failures import page_of_error, page_of_fault, said_of_change, said_to_viewers
from celery_pgbeat.web.forgery import SHORTEST_SECRET, Tokens
from celery_pgbeat.web.form import Form, Wrong
from celery_pgbeat.web.page import Address, Page, Query
from celery_pgbeat.web.pages import PAGES
from celery_pgbeat.web.pages.hour import MINUTES
from celery_pgbeat.web.pages.now import Now, read_now, read_slow
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.shared import Pace, Shared, events
from celery_pgbeat.web.writing import Writer

if TYPE_CHECKING:
    from celery import Celery

    from celery_pgbeat.web.access import Authorize, MayChange

AT_ONCE = 8  # pages that are read at the same time; the pool has ten connections
AGAIN = 5  # seconds after which a page that could not be read is asked for again
SLOWLY = 20.0  # seconds between two reads of what changes slowly: the charts show minutes that are over
MENU = (
    ("", "Now"),
    ("tasks", "Tasks"),
    ("jobs", "Jobs"),
    ("timeline", "Timeline"),
    ("groups", "Groups"),
    ("work", "Work"),
    ("nodes", "Nodes"),
    ("problems", "Problems"),
)
JUMPS = "ntjirwdp"  # for each page of the menu the letter that goes there, after g
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
PARTS = ("verdict", "figures", "charts", "late", "next", "running", "ended")  # of Now
UPDATED = (*PARTS, "asof")


def dashboard(
    source: PgBeat | Celery | str | None = None,
    *,
    password: str | None = None,
    authorize: Authorize | None = None,
    hosts: Iterable[str] | None = None,
    may_change: MayChange | None = None,
    secret: str | None = None,
    title: str = "pgbeat",
    pace: Pace | None = None,
) -> Dashboard:
    """Return the dashboard as an ASGI application, which you serve or mount. Without `may_change` it only reads.

    Without a password and without `authorize` it answers only requests from this host itself. Nothing connects to the
    database before the first request.

    Args:
        source: a `PgBeat`, a Celery app, the URL of the database, or None for PGBEAT_URL.
        password: what a browser must give, with any user name; None for `pgbeat_web_password`, unless `authorize` is
            given.
        authorize: a function, which may be async, that gets Starlette's connection (with its `session`, `headers` and
            `user`) and returns True if the request may be answered. With a password, both must agree.
        hosts: the names of this server that a request may ask for, as patterns such as `*.example.com`; None for any,
            and for those of this host if there is neither password nor `authorize`.
        may_change: a function, which may be async, that gets the same connection, and returns the name of a person who
            may change something, True for one without a name, or False. It is asked for each page. None: no user may.
        secret: a text of at least 32 characters from which the tokens of forms are made. Give it if several processes
            serve the dashboard, the same to all; None for a random one.
        title: what the pages are headed with, such as the name of your app.
        pace: how often an open page is updated.

    Raises:
        TypeError: an argument is of a wrong type.
        InvalidSetting: a setting is wrong; names it and its value.

    Example:
        >>> from starlette.applications import Starlette
        >>> from starlette.routing import Mount
        >>> from celery_pgbeat.web import dashboard
        >>> pages = dashboard("postgresql://localhost/shop", authorize=lambda request: "staff" in request.scope)
        >>> app = Starlette(routes=[Mount("/beat", app=pages)])
    """
    if secret is not None and (not isinstance(secret, str) or len(secret) < SHORTEST_SECRET):
        raise TypeError(f"secret is neither None nor a text of at least {SHORTEST_SECRET} characters")
    beat = source if isinstance(source, PgBeat) else PgBeat(source)
    if password is None and authorize is None:
        password = beat.settings.web_password
    access = access_of(password, authorize, hosts, may_change)
    writer = Writer(beat, is_own=not isinstance(source, PgBeat))
    return Dashboard(Site(Reader(beat), writer, access, Tokens(secret), title, pace or Pace()), access)


class Dashboard(Guarded):
    """What `dashboard` returns: an ASGI application."""

    def __init__(self, site: Site, access: Access) -> None:
        super().__init__(site.app, access)
        self._site = site

    def end_streams(self) -> None:
        """End the live updates of all who look, within half a second, because the server is about to stop."""
        self._site.over = True


class Site:
    """What all pages of one dashboard share."""

    def __init__(self, reader: Reader, writer: Writer, access: Access, tokens: Tokens, title: str, pace: Pace) -> None:
        self._reader = reader
        self._writer = writer
        self._access = access
        self._pace = pace
        self.over = False
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._files = dict(_files())
        self._now = Shared(partial(read_now, reader), pace.every, self._limiter)
        self._slow = Shared(partial(read_slow, reader), SLOWLY, self._limiter)
        self._templates = _templates()
        acting = Acting(reader, writer, access, tokens, self._limiter, self._drawn)
        self._templates.globals.update(
            site=title,
            menu=MENU,
            jumps=[(letter, *page) for letter, page in zip(JUMPS, MENU, strict=True)],
            version=_version(self._files),
            again=AGAIN,
        )
        self.app = Starlette(
            routes=[
                Route("/", self._answering(self._front)),
                *(Route(f"/{name}", self._answering(partial(self._read, read))) for name, read in PAGES.items()),
                *(
                    Route(f"/{name}", partial(acting.answer, action), methods=["GET", "POST"])
                    for name, action in ACTIONS.items()
                ),
                Route("/check-schedule", self._check_schedule),
                Route("/events", self._events),
                Route("/static/{name}", self._file),
            ],
            exception_handlers={404: self._not_found},
            lifespan=self._closing,
        )
        self.app.router.redirect_slashes = False  # it would answer with whatever host the request has named

    def is_over(self) -> bool:
        """Tell whether the server is about to stop."""
        return self.over

    @asynccontextmanager
    async def _closing(self, _app: Starlette) -> AsyncIterator[None]:
        """Close the connections when the server ends; a mounted application is not told of it, and need not be."""
        yield
        self._reader.close()
        self._writer.close()

    def _answering(self, read: Callable[[Request], Awaitable[Page]]) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that draws a page, or a page that says what is wrong."""

        async def answer(request: Request) -> Response:
            person = None
            try:
                person = await self._access.person(request)
                page = await read(request)
                return await anyio.to_thread.run_sync(self._drawn, page, request, person, limiter=self._limiter)
            except PgBeatError as error:
                page = page_of_error(error)
            except Exception:  # noqa: BLE001 - the top of a request: what is wrong with one page is in the log
                page = page_of_fault()
            return self._drawn(page, request, person)

        return answer

    async def _read(self, read: Callable[[Reader, Query], Page], request: Request) -> Page:
        return await anyio.to_thread.run_sync(self._in_one_transaction, read, request, limiter=self._limiter)

    def _in_one_transaction(self, read: Callable[[Reader, Query], Page], request: Request) -> Page:
        with self._reader.database.reading():
            query = Query(request.query_params)
            return replace(read(self._reader, query), notes=query.notes)

    async def _front(self, _request: Request) -> Page:
        return Page("now", "Now", self._values_of(await self._snapshot()))

    async def _snapshot(self) -> Now:
        return replace(await self._now.get(), **(await self._slow.get())._asdict())

    @staticmethod
    def _values_of(snapshot: Now) -> dict[str, Any]:
        return {"it": snapshot, "now": snapshot.now, "parts": PARTS, "minutes": MINUTES}

    def _drawn(self, page: Page, request: Request, person: Person | None) -> Response:
        address = Address(request.scope.get("root_path", ""))
        html = self._templates.get_template(f"{page.template}.html").render(
            url=address,
            title=page.title,
            here=request.url.path.rpartition("/")[2],
            person=person,
            done=DONE.get(request.query_params.get("done", "")),
            notes=page.notes,
            **page.values,
        )
        headers = {"Retry-After": str(AGAIN)} if page.status == 503 else None
        return HTMLResponse(html, page.status, headers)

    def _parts(self, address: Address, snapshot: Now) -> dict[str, str]:
        values = {"url": address, **self._values_of(snapshot)}
        return {part: self._templates.get_template(f"parts/{part}.html").render(values) for part in UPDATED}

    async def _check_schedule(self, request: Request) -> Response:
        """Answer what a schedule means that the user is typing, as a part of the page."""
        if await self._access.person(request) is None:
            return PlainTextResponse("You may look, not change.\n", 403)
        html = await anyio.to_thread.run_sync(self._checked, Query(request.query_params), limiter=self._limiter)
        return HTMLResponse(html)

    def _checked(self, query: Query) -> str:
        values: dict[str, Any] = {"look": None, "wrong": None}
        try:
            with self._reader.database.reading():
                typed = {name: query.long_text(name) for name in (*LOOKED_AT, "zone") if query.has(name)}
                values["look"] = look_ahead(self._reader, query, Form(typed))
        except Wrong as wrong:
            values["wrong"] = wrong.sentence
        except PgBeatError as error:
            values["wrong"] = said_of_change(error)
        return self._templates.get_template("parts/look-schedule.html").render(values)

    async def _events(self, request: Request) -> Response:
        address = Address(request.scope.get("root_path", ""))
        stream = events(self._snapshot, partial(self._parts, address), said_to_viewers, self._pace, self.is_over)
        headers = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(
            self._files[name],
            media_type=TYPES[name.rpartition(".")[2]],
            headers={"Cache-Control": "private, max-age=31536000, immutable"},
        )

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        return self._drawn(Page("unknown", "There is no such page", {"sentence": None}, 404), request, None)


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("celery_pgbeat.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=words.safe,
    )
    environment.filters.update(
        {
            name: getattr(words, name)
            for name in ("duration", "clock", "from_now", "sentence", "mark", "task_mark", "node")
        }
    )
    environment.globals.update(number=words.number, offered=offered)
    return environment


def _files() -> Iterable[tuple[str, bytes]]:
    for file in (resources.files("celery_pgbeat.web") / "static").iterdir():
        yield file.name, file.read_bytes()


def _version(files: Mapping[str, bytes]) -> str:
    """Return a text that changes with the files, for their addresses: browsers keep them for good."""
    return hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:12]
