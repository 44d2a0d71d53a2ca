"""The pages in a real browser: no fault, no request elsewhere, readable at both widths and in both themes.

They need `pip install -e '.[browser]'` and a Chromium (`PGBEAT_TEST_CHROMIUM`, or on PATH). What axe-core finds is
looked at if it is in `node_modules` (`npm install --no-save axe-core`) or `PGBEAT_TEST_AXE` names its file. With
`PGBEAT_TEST_SCREENSHOTS` each page is written to that folder as a picture.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from celery_pgbeat.api import PgBeat
from tests.harness.situations import JOB, NOON, Situation, ago
from tests.web.test_command import started

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[browser]'")

CHROMIUM = os.environ.get("PGBEAT_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(os.environ.get("PGBEAT_TEST_AXE") or Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js")
PICTURES = os.environ.get("PGBEAT_TEST_SCREENSHOTS")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
LOOKS = [(width, theme) for width in (1280, 390) for theme in ("light", "dark")]
WORK = "00000000-0000-0000-0000-000000000007"
PAGES = {
    "now": "",
    "tasks": "tasks",
    "task": "task?name=nightly",
    "paused-task": "task?name=poll-inbox",
    "jobs": "jobs",
    "job": f"job?id={JOB}",
    "timeline": "timeline",
    "groups": "groups",
    "work": "work",
    "nodes": "nodes",
    "problems": "problems",
    "unknown": "task?name=nigthly",
    "pause": "pause?name=nightly",
    "resume": "resume?name=poll-inbox",
    "trigger": "trigger?name=nightly",
    "edit": "edit?name=nightly",
    "edit-of-code": "edit?name=of-code",
    "backfill": "backfill?name=nightly",
    "fail-job": f"fail-job?id={JOB}",
    "pick-up": f"pick-up?id={WORK}",
    "limit-group": "limit-group?name=reports",
    "resume-group": "resume-group?name=reports",
}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium on PATH, or PGBEAT_TEST_CHROMIUM")


def fill(stage: Situation, beat: PgBeat) -> None:
    """Put something of each kind into the database."""
    stage.beat()
    stage.worker()
    stage.plan(schedule="0 3 * * *", timezone="Europe/Berlin", group_name="reports", max_run_time="30 min")
    stage.plan(name="poll-inbox", schedule="every 5m", group_name="reports", subject="the inbox of the shop")
    stage.plan(name="of-code", schedule="@hourly", managed_by="code:shop")
    stage.task(name="broken", schedule="0 3 * * *", problem="its zone Mars/Olympus is not known any more")
    stage.plan(name="a-task-with-a-name-as-long-as-names-of-services-in-large-companies-are", next_run_at=ago(hours=2))
    stage.task(name="sign off", schedule=None, kind="human", task=None, target=["finance"], subject="the month")
    states = ("succeeded", "succeeded", "failed", "succeeded", "lost", "succeeded", "skipped")
    for number, state in enumerate(states * 4):
        at = ago(minutes=10 * number + 5)
        more = (
            {"reason": "overlap"}
            if state == "skipped"
            else {"started_at": at, "finished_at": at + timedelta(seconds=number + 1)}
        )
        error = {"error": "TimeoutError: the mail server did not answer within 30 s"} if state == "failed" else {}
        stage.final(state, at, **more, **error)
    stage.job("error", id=str(JOB), on_error="ask", exclusive=False, error="FileNotFoundError: month.csv")
    stage.job("running", id="00000000-0000-0000-0000-000000000008", periodic_task="poll-inbox", exclusive=False)
    stage.session.rows("update pgbeat.active_job set on_error = 'ask' where state = 'error'")
    beat.limit_group("reports", 2)
    beat.pause_group("reports", "stocktaking until Monday")
    beat.pause("poll-inbox", "the mail server moves")
    made = beat.trigger("sign off")
    stage.session.rows("update pgbeat.active_job set id = %s where id = %s", WORK, str(made))
    stage.session.rows("update pgbeat.open_work set job = %s where job = %s", WORK, str(made))
    beat.backfill("nightly", NOON - timedelta(days=9), NOON - timedelta(days=1))


@pytest.fixture(scope="module")
def address(stage: Situation, shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the command, which serves a dashboard full of data to those who may change it."""
    beat = PgBeat(url=shared_database)
    fill(stage, beat)
    beat.close()
    process, found, _ = started(tmp_path_factory.mktemp("web"), shared_database, "--allow-changes")
    yield found
    process.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any, address: str) -> Opened:
    """Opens a page in a browser of its own; at the end nothing may have gone wrong in it."""

    @contextmanager
    def open_page(
        path: str, width: int = 1280, theme: str = "light", expected: str = "", **options: Any
    ) -> Iterator[Any]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, timezone_id="Europe/Berlin", **options
        )
        page, faults = context.new_page(), []
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(address) else faults.append(asked.url))
        page.on("requestfailed", lambda asked: faults.append(asked.url) if "events" not in asked.url else None)
        if options.get("java_script_enabled", True):
            page.add_init_script(
                "document.addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective))"
            )
        try:
            page.goto(f"{address}{path}", wait_until="load")
            yield page
            assert [] == [fault for fault in faults if not expected or expected not in fault]
        finally:
            context.close()

    return open_page


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_without_fault_and_fits(opened: Opened, name: str) -> None:
    with opened(PAGES[name], expected="404" if name == "unknown" else "") as page:
        assert page.title()
        for width, theme in LOOKS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            if PICTURES:
                page.screenshot(path=f"{PICTURES}/{name}-{width}-{theme}.png", full_page=True)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert 0 == over, f"{over} pixels stick out at {width}"
            assert [] == serious(page), (width, theme)


def serious(page: Any) -> list[str]:
    """Return what axe-core finds that keeps somebody from using a page; nothing without axe-core."""
    if not AXE.is_file():
        return []
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {[node['html'] for node in one['nodes']][:3]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm install --no-save axe-core, or PGBEAT_TEST_AXE")
def test_axe_finds_what_is_wrong(opened: Opened) -> None:
    """The control of the test above."""
    with opened("tasks") as page:
        page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=/static/icon.svg>')")
        assert "image-alt" in "".join(serious(page))


def test_the_keys_walk_the_rows_and_go_to_pages(opened: Opened) -> None:
    with opened("tasks") as page:
        names = page.locator("tbody tr a.name").all_text_contents()
        page.keyboard.press("j")
        assert names[0] == page.evaluate("document.activeElement.textContent")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        assert names[1] == page.evaluate("document.activeElement.textContent")
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()
        assert [] == serious(page)
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        page.keyboard.type("gj?")
        assert "gj?" == page.locator("#find").input_value()  # within a field they are letters
        page.locator("h1").click()
        page.keyboard.press("g")
        page.keyboard.press("r")
        page.wait_for_url("**/groups")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/tasks?group=reports")


def test_a_theme_that_was_chosen_stays(opened: Opened) -> None:
    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    with opened("tasks", theme="light") as page:
        light, button = ground(), page.locator("#theme")
        assert "theme: auto" == button.text_content()
        button.click()
        button.click()
        dark = ground()
        assert ("theme: dark", True) == (button.text_content(), dark != light)
        page.goto(page.url.replace("tasks", "jobs"))
        assert ("theme: dark", dark) == (page.locator("#theme").text_content(), ground())
        page.locator("#theme").click()
        assert ("theme: auto", light) == (page.locator("#theme").text_content(), ground())


def test_a_schedule_is_checked_while_it_is_typed(opened: Opened) -> None:
    with opened("edit?name=nightly") as page:
        page.locator("#schedule").fill("0 25 * * *")
        page.locator("#look .wrong").wait_for()
        assert "'0 25 * * *': hour 25 is not in 0-23" == page.locator("#look .wrong").text_content()
        assert [] == serious(page)
        page.locator("#schedule").fill("0 4 * * mon-fri")
        page.locator("#look li").first.wait_for()
        assert 10 == page.locator("#look li").count()
        assert "04:00" in page.locator("#look li").first.text_content()  # in the zone of the browser
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/edit-typed.png", full_page=True)


def test_a_wrong_form_says_so_beside_the_field(opened: Opened) -> None:
    with opened("trigger?name=nightly", 390, expected="422") as page:
        page.locator("#args").fill('[1,\n "x"')
        page.locator("button.go").click()
        page.locator("#args-error").wait_for()
        assert '[1,\n "x"' == page.locator("#args").input_value()
        assert [] == serious(page)
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/trigger-wrong.png", full_page=True)


@pytest.mark.parametrize("script", [True, False])
def test_a_task_is_paused_and_resumed_with_and_without_script(opened: Opened, stage: Situation, script: bool) -> None:
    with opened("task?name=of-code", java_script_enabled=script) as page:
        page.get_by_role("link", name="Pause…").click()
        page.get_by_label("Why").fill("stocktaking")
        page.get_by_label("Until").fill("2100-03-05 09:00")
        page.get_by_role("button", name="Pause").click()
        page.wait_for_url("**/task?name=of-code&done=paused")
        assert "It is paused." in page.locator("[role=status]").first.text_content()
        row = stage.session.task("of-code")
        hour = 8 if script else 9  # with script it is read in the zone of the browser, without it in UTC
        assert (False, NOON.replace(day=5, hour=hour)) == (row["enabled"], row["paused_until"])
        page.get_by_role("link", name="Resume…").click()
        page.get_by_role("button", name="Resume").click()
        page.wait_for_url("**done=resumed")
        assert stage.session.task("of-code")["enabled"]


def test_a_backfill_is_looked_at_first(opened: Opened) -> None:
    with opened("backfill?name=nightly", 390, "dark") as page:
        page.get_by_label("From").fill("2100-02-01")
        page.get_by_label("To").fill("2100-02-20")
        page.get_by_role("button", name="Show what would be sent").click()
        page.get_by_role("button", name="Start the backfill").wait_for()
        assert "20 jobs would be sent" in page.locator("#look").text_content()
        assert [] == serious(page)
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/backfill-looked.png", full_page=True)


def test_a_page_of_another_site_cannot_send_a_form(opened: Opened, stage: Situation, address: str) -> None:
    with opened("pause?name=of-code", bypass_csp=True) as page:
        token = page.locator("[name=token]").input_value()
        other = page.context.new_page()
        other.goto(f"http://localhost:{urlsplit(address).port}/tasks")  # another origin: the same port by another name
        form = f"<form method=post action='{address}pause?name=of-code'><input name=token value={token}></form>"
        other.evaluate("form => { document.body.innerHTML = form; document.forms[0].submit(); }", form)
        other.get_by_role("heading", name="This form comes from another site").wait_for()
        assert stage.session.task("of-code")["enabled"]


def test_the_page_of_a_job_follows_it_to_its_end(opened: Opened, stage: Situation) -> None:
    job = "00000000-0000-0000-0000-00000000000a"
    stage.job("sent", id=job, periodic_task="of-code", exclusive=False)
    with opened(f"job?id={job}") as page:
        assert "→ sent" == page.locator("h1").text_content()
        stage.session.rows("delete from pgbeat.active_job where id = %s", job)
        stage.final("succeeded", ago(minutes=1), id=job, periodic_task="of-code")

        page.get_by_role("heading", name="succeeded").wait_for()
        assert 0 == page.locator("[data-follow]").count()
        assert "Succeeded Mon 1 Mar 12:59" in page.locator(".steps").text_content()  # in the zone of the browser


@pytest.mark.parametrize("name", ["timeline", "now"])
def test_what_a_drawing_says_is_in_the_zone_of_the_browser_too(opened: Opened, name: str) -> None:
    with opened(PAGES[name]) as page:
        says = page.locator("svg title").all_text_contents()
        assert [True, False] == [any(part in one for one in says) for part in ("2100-03-01 1", "UTC")]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_name_is_not_broken_where_there_is_room(opened: Opened, stage: Situation, width: int) -> None:
    with opened("tasks", width) as page:
        page.evaluate("document.querySelectorAll('tbody a.name')[0].textContent = 'celery.backend_cleanup'")
        lines = "element => element.getClientRects().length"
        assert 1 == page.locator("tbody a.name").first.evaluate(lines)
        assert 1 == page.locator("td a[href$='group=reports']").first.evaluate(lines)


def test_no_label_of_a_narrow_table_overlaps_another(opened: Opened) -> None:
    narrow = "cells => cells.filter(cell => cell.dataset.label.length > 12).map(cell => cell.dataset.label)"
    for name in ("tasks", "jobs", "groups", "work", "nodes"):
        with opened(PAGES[name], 390) as page:
            assert [] == page.locator("td[data-label]").evaluate_all(narrow), name
