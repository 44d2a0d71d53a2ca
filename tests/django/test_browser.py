"""The admin's form in a real browser: what its script does, and how large a field is.

They need what `tests/web/test_browser.py` needs.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from tests.django.visitor import TASKS, Visitor
from tests.harness.situations import Situation

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[browser]'")

CHROMIUM = os.environ.get("PGBEAT_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: PGBEAT_TEST_CHROMIUM")


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def site(situation: Situation) -> Iterator[str]:
    """The address of the project, with its static files."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.handlers.wsgi import WSGIHandler

    server = make_server("localhost", 0, StaticFilesHandler(WSGIHandler()), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("page", ["add/", "nightly/change/"])
def test_a_schedule_is_checked_while_it_is_typed_and_its_field_is_one_line_high(
    well: Situation, anna: Visitor, site: str, page: str
) -> None:
    well.plan(timezone="UTC")
    session = {"name": "sessionid", "value": anna.client.cookies["sessionid"].value, "url": site}

    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([session])
        seen = context.new_page()
        seen.goto(f"{site}{TASKS}{page}")
        height = seen.locator("#id_schedule").bounding_box()["height"]
        seen.locator("#id_schedule").fill("0 25 * * *")
        seen.get_by_text("hour 25 is not in 0-23").wait_for()
        seen.locator("#id_schedule").fill("0 7 * * *")
        seen.locator(".pgbeat-next li").nth(4).wait_for()
        browser.close()

    assert 50 > height
