"""The page of limits has the numbers of the code, and docs/proof.md names a test that exists for each limit."""

from __future__ import annotations

import re

from celery_pgbeat.api import importing
from celery_pgbeat.beat import entries, log_throttle
from celery_pgbeat.beat.decide import dispatcher, planner
from celery_pgbeat.cli.output import table
from celery_pgbeat.columns import CENTURY, YEAR
from celery_pgbeat.declare import columns, definition, options, texts
from celery_pgbeat.measures import alarm, counting, gauges, webhook
from celery_pgbeat.planning.decide import CAUGHT_UP_AT_MOST
from celery_pgbeat.postgres import backfill_queries, beat_queries, listen, migrate
from celery_pgbeat.postgres.column_lists import FREE_TEXTS
from celery_pgbeat.schedules import windows
from celery_pgbeat.schedules.parse import LONGEST_SET, LONGEST_TEXT
from celery_pgbeat.schedules.wallclock import instants
from celery_pgbeat.texts.plain_json import DEEPEST, LARGEST
from celery_pgbeat.web import form
from celery_pgbeat.worker.report import refusals, report_queue, tracker
from celery_pgbeat.worker.start import guard, message
from tests.docs.pages import NAMED, ROOT, written_in

PAGE = ROOT / "docs" / "limits.md"
PROOF = ROOT / "docs" / "proof.md"
LINE = re.compile(r"^\| (?!what \|).+ \|$", re.MULTILINE)
PROVEN = re.compile(r"^\| (.+) \| (`tests/.+`) \|$", re.MULTILINE)

# The number that a line must contain, by the beginning of the line.
NUMBERS: dict[str, tuple[float, ...]] = {
    "the name of a row": (columns.LONGEST_NAME,),
    "`task`, `queue`": (texts.LONGEST_TEXT,),
    "`pause_reason`": (texts.LONGEST_TEXT,),
    "`schedule`": (LONGEST_TEXT, LONGEST_SET),
    "how far ahead": (instants.HORIZON.days // 365,),
    "`blackout`": (windows.MOST_TEXTS, windows.LONGEST_TEXT, windows.MOST_WINDOWS),
    "`args` and `kwargs` together": (definition.LARGEST_ARGUMENTS,),
    "`options`": (definition.LARGEST_OPTIONS,),
    "nesting": (DEEPEST,),
    "a number in them": (len(str(LARGEST)) - 1,),
    "`time_limit`": (options.LONGEST, options.LONGEST / 86_400),
    "`jitter`": (YEAR.days,),
    "`catchup_window`": (CENTURY.days,),
    "`max_runs`": (columns.LARGEST_INT,),
    "planning in one pass": (planner.PLANNED_WITHIN,),
    "deciding in one pass": (dispatcher.DECIDED_WITHIN,),
    "reading notifications": (listen.DRAINED_WITHIN, listen.FLOOD_PAUSE),
    "missed occurrences": (CAUGHT_UP_AT_MOST,),
    "jobs that wait under `buffer_all`": (beat_queries.MOST_BUFFERED,),
    "the history that one step": (backfill_queries.HISTORY_PAGE,),
    "the text of a `problem`": (planner.LONGEST_PROBLEM,),
    "log lines about one row": (log_throttle.MOST,),
    "entries that": (entries.LIMIT,),
    "alerts about overdue rows": (alarm.MOST,),
    "webhook messages that wait": (webhook.MOST_WAITING,),
    "one attempt to post": (webhook.TIMEOUT,),
    "rows that the gauges": (gauges.MOST,),
    "jobs whose lateness": (counting.MOST_UNSENT,),
    "a form that a browser sends": (form.MOST_BYTES // 1024, form.MOST_FIELDS, form.PATIENCE),
    "an action in the dashboard": (3,),
    "waiting for another process": (migrate.LOCK_WITHIN, migrate.LOGGED_AFTER),
    "waiting for a lock": (2,),
    "durations: leases": (YEAR.days,),
    "run, attempt, sends": (message.LARGEST,),
    "the error of a job": (tracker.ERROR_LENGTH,),
    "a start that waits": (guard.START_TIMEOUT,),
    "reports that Postgres refuses": (refusals.KEPT, refusals.KEPT_FOR / 86_400),
    "ends of jobs in one statement": (report_queue.AT_ONCE,),
    "run and attempt": (message.LARGEST,),
    "faults of a file": (importing.MOST_SHOWN,),
    "records that `import`": (importing.IN_MEMORY,),
    "a text beneath a row": (table.MOST_BENEATH,),
}


def lines() -> list[str]:
    return [found.group(0) for found in LINE.finditer(PAGE.read_text(encoding="utf-8"))]


def test_each_limit_of_the_page_has_the_number_of_the_code() -> None:
    missing = [
        (begin, number)
        for begin, numbers in NUMBERS.items()
        for number in numbers
        if not any(line.startswith(f"| {begin}") and said(number) in line for line in lines())
    ]

    assert [] == missing


def test_the_line_of_free_texts_names_each_of_them() -> None:
    (line,) = [line for line in lines() if line.startswith("| `task`, `queue`")]

    assert [] == [column.name for column in FREE_TEXTS if f"`{column.name}`" not in line]


def said(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def test_each_limit_of_the_page_has_a_test_that_exists() -> None:
    assert len(lines()) >= len(NUMBERS)
    proven = PROVEN.findall(PROOF.read_text(encoding="utf-8").partition("\n## Limits\n")[2])
    names = [name for limits, _ in proven for name in limits.split("<br>")]
    begun = [next((name for name in names if line.startswith(f"| {name}")), line) for line in lines()]
    assert sorted(names) == sorted(begun)

    named = [test for _, tests in proven for test in NAMED.findall(tests)]
    assert len(named) == len(proven)
    assert [] == [f"{file}::{name}" for file, name in named if name not in written_in(ROOT / file)]
