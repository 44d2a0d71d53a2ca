"""Every text of a row, and every parameter of an address, as an attacker would write it: it stays text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest

from celery_pgbeat.web import dashboard
from tests.harness.session import Session
from tests.harness.visitor import Seen, Visitor

MARKUP = "\"'></title></svg><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}${7*7}"
HIDDEN = "a\x1b[31m\u202eb\u2066\r\nc\x7f\u200b"
HOSTILE = f"{MARKUP}{HIDDEN}"
PAGES = (
    *("/", "/tasks", "/tasks?state=paused", "/jobs", "/jobs?state=failed", "/groups", "/work", "/nodes", "/problems"),
    *(f"/task?name={quote(HOSTILE)}", f"/tasks?group={quote(HOSTILE)}", f"/job?id={'0' * 31}1", "/timeline"),
)


def fill(session: Session) -> None:
    """Put the text wherever one may stand, past all triggers."""
    session.rows("set session_replication_role = replica")
    session.insert(
        HOSTILE,
        **dict.fromkeys(("task", "queue", "group_name", "submitter", "subject", "pause_reason", "paused_by"), HOSTILE),
        **dict.fromkeys(("managed_by", "problem"), HOSTILE),
        schedule=HOSTILE,
        timezone=HOSTILE,
        enabled=False,
        after=[HOSTILE],
        blackout=[HOSTILE],
        args=[HOSTILE],
        kwargs={HOSTILE: HOSTILE},
        options={"headers": {HOSTILE: HOSTILE}},
    )
    session.insert("late", schedule="every 1h", group_name=HOSTILE, after=[HOSTILE])
    session.rows(
        "update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '1 hour', planned_revision = revision, "
        "marked_by = %s, marked_at = pgbeat.now() where name = 'late'",
        HOSTILE,
    )
    session.rows("insert into pgbeat.dependency values (%s, 'late')", HOSTILE)
    session.rows(
        "insert into pgbeat.task_group (name, paused, state, pause_reason, waits_for) "
        "values (%s, true, 'paused', %s, array[%s])",
        *[HOSTILE] * 3,
    )
    for role in ("beat", "worker"):
        session.rows(
            "insert into pgbeat.node (id, role, hostname, pid, version, tracking, last_seen_at) "
            "values (%s, %s, %s, 7, %s, true, pgbeat.now())",
            f"{role}{HOSTILE}",
            role,
            *[HOSTILE] * 2,
        )
    for id, state in (("1", "failed"), ("2", "succeeded")):
        session.rows(
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, queue, "
            "created_at, started_at, finished_at, error, worker, beat, note, owner) values (lpad(%s, 32, '0')::uuid, "
            "%s, pgbeat.now(), 'schedule', %s, %s, %s, pgbeat.now(), pgbeat.now(), pgbeat.now(), %s, %s, %s, %s, %s)",
            id,
            HOSTILE,
            state,
            *[HOSTILE] * 7,
        )
    for state, more in (("running", "null"), ("error", "null")):
        session.rows(
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, on_error, tracking, pickup_deadline, busy_until, check_at, started_at, error, worker, beat, "
            f"wait_reason) values (gen_random_uuid(), %s, pgbeat.now(), 'schedule', %s, false, %s, '{{}}', 'give_up', "
            f"'ask', 'full', '1 h', pgbeat.now(), 'infinity', pgbeat.now(), %s, %s, %s, {more})",
            HOSTILE,
            state,
            *[HOSTILE] * 4,
        )
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "kind, on_lost, tracking, pickup_deadline, busy_until, check_at, token, target) values (gen_random_uuid(), %s, "
        "pgbeat.now(), 'manual', 'created', false, %s, '{}', 'human', 'give_up', 'full', '1 h', 'infinity', "
        "'infinity', gen_random_uuid(), array[%s])",
        *[HOSTILE] * 3,
    )
    session.rows(
        "insert into pgbeat.open_work (target, due_by, scheduled_for, job) "
        "select %s, 'infinity', scheduled_for, id from pgbeat.active_job where kind = 'human'",
        HOSTILE,
    )
    session.rows(
        "insert into pgbeat.alert (kind, name, due_at, reason, raised_at, raised_by) "
        "values ('overdue', %s, pgbeat.now(), %s, pgbeat.now(), %s)",
        *[HOSTILE] * 3,
    )
    session.rows(
        "insert into pgbeat.refused_declaration (name, app, hash, reason, seen_at) "
        "values (%s, %s, 'x', %s, pgbeat.now())",
        *[HOSTILE] * 3,
    )
    session.rows("set session_replication_role = default")


@pytest.fixture(scope="module")
def visitor(shared_database: str) -> Iterator[Visitor]:
    """Somebody who looks at the dashboard of a database full of such texts; nothing changes it."""
    session = Session(shared_database)
    with closing(session.connection):
        fill(session)
    with Visitor(dashboard(shared_database)) as made:
        yield made


def harm(seen: Seen) -> list[str]:
    """Return what a browser would run, or show in another order than it stands."""
    found = [tag for tag, _ in seen.tags if tag in ("img", "iframe", "object", "embed", "base")]
    found += [str(given) for tag, given in seen.tags if tag == "script" and "src" not in given]
    found += [name for _, given in seen.tags for name in given if name.startswith("on") or name == "style"]
    found += [link for link in seen.links if not link.startswith(("/", "#"))]
    found += [repr(letter) for letter in seen.html if not letter.isprintable() and letter != "\n"]
    return found


@pytest.mark.parametrize("path", PAGES)
def test_no_text_of_a_row_is_markup_or_has_an_effect(visitor: Visitor, path: str) -> None:
    seen = visitor.open(path)

    assert 200 == seen.status, seen.text
    assert [] == harm(seen)
    assert path == "/timeline" or MARKUP in seen.text


@pytest.mark.parametrize(
    "value", [MARKUP, HIDDEN, "javascript:alert(1)", "%00", "\udcff", "x" * 10_000, "1--100000000"]
)
@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("/tasks", ("q", "state", "group", "task", "manager", "after", "after_at", "sort")),
        ("/task", ("name",)),
        ("/jobs", ("state", "reason", "name", "task", "queue", "look", "before", "before_at")),
        ("/job", ("id",)),
        ("/groups", ("q",)),
        ("/work", ("which",)),
        ("/timeline", ("at", "hours")),
        ("/", ("q", "next")),
    ],
)
def test_no_parameter_is_markup_or_has_an_effect(
    visitor: Visitor, page: str, parameters: tuple[str, ...], value: str
) -> None:
    shown = value if value == "%00" else quote(value, errors="surrogateescape")
    for parameter in parameters:
        seen = visitor.open(f"{page}?{parameter}={shown}&{parameter}={shown}")
        assert seen.status in (200, 404), (parameter, seen.text)
        assert [] == harm(seen), parameter


def test_thousands_of_parameters_do_no_harm(visitor: Visitor) -> None:
    assert 200 == visitor.open("/tasks?" + "&".join(f"p{n}=1" for n in range(5_000))).status


def test_events_are_escaped_as_the_page_is(visitor: Visitor) -> None:
    with visitor.client.stream("GET", "/events") as answer:
        line = next(line for line in answer.iter_lines() if line.startswith("data: "))

    for html in json.loads(line.removeprefix("data: ")).values():
        assert "<img" not in html
        assert "<script" not in html
        assert all(letter.isprintable() or letter == "\n" for letter in html)
