"""The dashboard behind Django's login, under WSGI and under ASGI."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from typing import Any

import django
import pytest

from tests.django.visitor import Visitor, person
from tests.harness.session import Session
from tests.harness.situations import NOON, Situation

HOME = "/ops/pgbeat/"
HERE = {"HTTP_ORIGIN": "http://testserver"}


def test_pages_are_shown_below_the_path_at_which_they_are_mounted(well: Situation, ben: Visitor) -> None:
    well.plan(name="a/b ?#%..")

    seen = ben.open(HOME)
    tasks = ben.open(f"{HOME}tasks")

    assert 200 == seen.status
    assert all(link.startswith((HOME, "#")) for link in seen.links)
    assert 200 == ben.open(tasks.link("task?name=")).status
    static = next(link for link in seen.links if "static" in link)
    assert (200, "default-src 'none'") == (ben.open(static).status, seen.headers["content-security-policy"][:18])
    assert 404 == ben.open(f"{HOME}no/such/page").status


def test_viewing_needs_a_login_and_the_right(well: Situation, carl: Visitor) -> None:
    from django.contrib.auth.models import User

    seen = Visitor().open(f"{HOME}tasks", q="x")
    assert (302, "/admin/login/?next=/ops/pgbeat/tasks%3Fq%3Dx") == (seen.status, seen.headers["location"])
    assert 403 == carl.open(HOME).status
    dora = person("dora", "view_periodictask")
    assert 200 == dora.open(HOME).status
    User.objects.filter(username="dora").update(is_active=False)
    assert 302 == dora.open(HOME).status


def test_a_user_who_may_change_something_acts_by_name(well: Situation, anna: Visitor) -> None:
    well.plan()

    form = anna.open(f"{HOME}pause?name=nightly")
    seen = anna.send(f"{HOME}pause?name=nightly", {**form.fields, "reason": "stock", "step": "do"}, **HERE)

    assert (303, f"{HOME}task?name=nightly&done=paused") == (seen.status, seen.headers["location"])
    assert (False, "anna") == (well.session.task("nightly")["enabled"], well.session.task("nightly")["paused_by"])
    assert "anna" == well.session.value("select who from pgbeat.change where action = 'paused'")


PAGES = (
    ("pause?name=nightly", "change_periodictask"),
    ("trigger?name=nightly", "change_periodictask"),
    ("edit?name=nightly", "change_periodictask"),
    ("backfill?name=nightly", "change_periodictask"),
    ("cancel-job?id=00000000-0000-0000-0000-000000000001", "change_job"),
    ("pause-group?name=reports", "change_taskgroup"),
)


@pytest.mark.parametrize(("page", "right"), PAGES)
def test_each_form_needs_the_right_to_what_it_changes(well: Situation, page: str, right: str) -> None:
    well.plan(group_name="reports")
    well.job("buffered")
    rights = {needed for _, needed in PAGES}
    may = person("may", "view_periodictask", right)
    may_not = person("maynot", "view_periodictask", *(rights - {right}))
    form = may.open(f"{HOME}{page}")

    assert 200 == form.status
    assert 403 == may_not.open(f"{HOME}{page}").status
    assert 403 == may_not.send(f"{HOME}{page}", {**form.fields, "step": "do"}, **HERE).status
    assert well.session.task("nightly")["enabled"]


def test_every_action_has_a_right() -> None:
    from celery_pgbeat.django.rights import NEEDED
    from celery_pgbeat.web.actions import ACTIONS

    assert set(NEEDED) == {*ACTIONS, "check-schedule"}


def test_a_form_of_another_site_of_another_user_or_without_a_token_does_nothing(well: Situation, anna: Visitor) -> None:
    well.plan()
    other = person("other", "view_periodictask", "change_periodictask")
    form = anna.open(f"{HOME}pause?name=nightly")
    fields = {**form.fields, "step": "do"}

    assert 403 == anna.send(f"{HOME}pause?name=nightly", fields, HTTP_ORIGIN="http://evil.example").status
    assert 403 == anna.send(f"{HOME}pause?name=nightly", {**fields, "token": ""}).status
    assert 403 == other.send(f"{HOME}pause?name=nightly", fields, **HERE).status
    assert 405 == anna.send(f"{HOME}tasks", fields, **HERE).status
    assert well.session.task("nightly")["enabled"]


def test_a_host_that_django_does_not_know_is_refused(well: Situation, ben: Visitor) -> None:
    assert 400 == ben.client.get(HOME, headers={"host": "evil.example"}).status_code


def test_under_wsgi_a_page_asks_again_instead_of_occupying_a_worker(well: Situation, ben: Visitor) -> None:
    well.plan()

    seen = ben.open(f"{HOME}events")

    assert "text/event-stream" == seen.headers["content-type"].partition(";")[0]
    assert 1 == seen.html.count("event: parts")
    assert seen.html.endswith("retry: 10000\n\n")
    parts = json.loads(seen.html.split("data: ")[1].split("\n")[0])
    assert {"verdict", "next"} <= set(parts)


def test_under_asgi_events_stream_until_the_browser_leaves(
    well: Situation, ben: Visitor, session: Session, project_database: str
) -> None:
    cookie = f"sessionid={ben.client.cookies['sessionid'].value}"
    well.plan()

    first, second = asyncio.run(_two_events(cookie, session))

    assert b"event: parts" in first
    assert b"event: parts" in second
    assert b"another" in second


async def _two_events(cookie: str, session: Session) -> tuple[bytes, bytes]:
    """Open the stream as a server does, change something after the first event, and leave after the second one."""
    from django.core.handlers.asgi import ASGIHandler

    from celery_pgbeat.django import views

    sent: asyncio.Queue[Any] = asyncio.Queue()
    left = asyncio.Event()
    asked = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if asked:
            return asked.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": f"{HOME}events",
        "raw_path": f"{HOME}events".encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 5),
        "server": ("testserver", 80),
    }
    handler = ASGIHandler()
    handler.load_middleware(is_async=True)
    answering = asyncio.ensure_future(handler(scope, receive, sent.put))

    async def event() -> bytes:
        while b"event:" not in (body := (await asyncio.wait_for(sent.get(), 20)).get("body", b"")):
            pass
        return body

    first = await event()
    session.insert("another", next_run_at=NOON + timedelta(hours=1))
    second = await event()
    left.set()
    await asyncio.wait([answering], timeout=5)
    assert answering.done() or django.VERSION < (5,)  # an older one does not notice that a browser has left
    views._dashboard(os.getpid()).end_streams()
    await asyncio.wait_for(answering, 10)
    views._dashboard.cache_clear()
    return first, second
