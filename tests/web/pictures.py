"""Draw the pictures of the dashboard: `python -m tests.web.pictures` writes docs/dashboard-*.png.

A shop at noon, under a stopped clock, so that a picture changes only when the pages do. It needs
`pip install -e '.[browser]'` and a Chromium on PATH.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Literal

from playwright.sync_api import ViewportSize, sync_playwright

from celery_pgbeat.api import PgBeat
from celery_pgbeat.embedded import Postgres
from tests.harness.databases import migrate_database
from tests.harness.situations import NOON, WORKER, Situation, ago
from tests.web.test_browser import FLAGS
from tests.web.test_command import started

DOCS = Path(__file__).parents[2] / "docs"
SIZE = ViewportSize(width=1180, height=860)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Its name, schedule and seconds that a job takes.
TASKS = (
    ("capture-payments", "every 10s", 1.4),
    ("poll-inbox", "every 30s", 2.5),
    ("sync-stock", "* * * * *", 9.0),
    ("send-reminders", "*/5 * * * *", 21.0),
    ("rebuild-search", "*/15 * * * *", 160.0),
    ("nightly-report", "0 3 * * *", 900.0),
)
BETWEEN = {"every 10s": 10, "every 30s": 30, "* * * * *": 60, "*/5 * * * *": 300, "*/15 * * * *": 900}


def fill(stage: Situation, beat: PgBeat) -> None:
    """Have an hour of a shop: most went well, but for a mail server. Drawn at random, the same each time."""
    draw = random.Random(7)
    for name in ("web-1", "web-2", "web-3"):
        stage.beat(node=f"{name}:m:{4711 + len(name)}:start:random")
    stage.worker()
    for name, schedule, takes in TASKS:
        between = BETWEEN.get(schedule)
        soon = ago(seconds=-draw.uniform(2, between)) if between else ago(hours=-15)
        stage.plan(soon, name=name, schedule=schedule, task=f"shop.{name.replace('-', '_')}", group_name="shop")
        if between:
            history(stage, draw, name, between, takes)
    stage.plan(ago(minutes=9), name="import-prices", schedule="*/10 * * * *", task="shop.import_prices")
    stage.job("running", ago(seconds=41), id=str(uuid.UUID(int=9)), periodic_task="rebuild-search")
    stage.job("running", ago(seconds=3), id=str(uuid.UUID(int=10)), periodic_task="sync-stock")
    beat.pause("nightly-report", "the warehouse moves", until=timedelta(days=1))


def history(stage: Situation, draw: random.Random, name: str, between: int, takes: float) -> None:
    """Write the jobs of the last hour."""
    for number in range(3600 // between):
        at = ago(seconds=number * between + draw.uniform(1, 2))
        failed = name == "poll-inbox" and 60 < number < 75
        started_at = at + timedelta(milliseconds=draw.uniform(15, 60))
        stage.final(
            "failed" if failed else "succeeded",
            at,
            periodic_task=name,
            group_name="shop",
            started_at=started_at,
            finished_at=started_at + timedelta(seconds=takes * draw.uniform(0.6, 1.5)),
            worker=WORKER,
            error="TimeoutError: the mail server did not answer" if failed else None,
        )


def draw_pictures(address: str) -> None:
    """Write the picture of the first page in each theme."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for theme in THEMES:
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.clock.set_fixed_time(NOON)
            page.goto(address, wait_until="load")
            page.screenshot(path=DOCS / f"dashboard-{theme}.png")
        browser.close()


def main() -> None:
    """Start a server, fill it, serve the dashboard, and write the pictures."""
    with Postgres(durable=False) as server, tempfile.TemporaryDirectory() as folder:
        database = server.create_database("shop")
        migrate_database(database)
        stage, beat = Situation(database), PgBeat(url=database)
        fill(stage, beat)
        beat.close()
        process, address, _ = started(Path(folder), database)
        try:
            draw_pictures(address)
        finally:
            process.close()


if __name__ == "__main__":
    main()
