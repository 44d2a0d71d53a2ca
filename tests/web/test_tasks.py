"""Periodic tasks: what is found, and pages that hold however many there are."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from celery_pgbeat.web.pages import tasks as page
from tests.harness.cost import slowness
from tests.harness.situations import NOON, Situation, ago
from tests.harness.visitor import Seen, Visitor


def names(seen: Seen) -> list[str]:
    """Return the names in the list, in its order."""
    return [link.rpartition("=")[2] for link in seen.links if link.startswith("/task?name=")]


def test_a_row_says_in_words_when_it_runs_its_state_and_its_last_job(well: Situation, visitor: Visitor) -> None:
    well.task(
        "nightly",
        "30 2 * * *",
        timezone="Europe/Berlin",
        subject="month end",
        group_name="reports",
        next_run_at=NOON + timedelta(hours=13, minutes=30),
    )
    well.final("failed")

    text = visitor.open("/tasks").text

    assert "nightly month end" in text
    assert "02:30" in text
    assert "○ waiting Thu" not in text
    assert "waiting Tue 2 Mar 01:30 ✗ failed reports" in text


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["billing", "nightly", "poll-inbox", "report"]),
        ({"q": "IN"}, ["billing", "poll-inbox"]),
        ({"q": "%"}, []),
        ({"state": "paused"}, ["poll-inbox"]),
        ({"state": "overdue"}, ["nightly"]),
        ({"state": "problem"}, ["report"]),
        ({"state": "on"}, ["billing", "nightly"]),
        ({"state": "active"}, ["nightly"]),
        ({"state": "nonsense"}, ["billing", "nightly", "poll-inbox", "report"]),
        ({"group": "mail"}, ["poll-inbox"]),
        ({"task": "shop.bill"}, ["billing"]),
        ({"manager": "code:shop"}, ["report"]),
        ({"group": "mail", "state": "problem"}, []),
    ],
    ids=str,
)
def test_a_filter_finds_just_what_it_says(
    well: Situation, visitor: Visitor, filters: dict[str, str], found: list[str]
) -> None:
    well.task("nightly", next_run_at=ago(minutes=5))
    well.job("sent")
    well.task("billing", task="shop.bill", next_run_at=NOON + timedelta(hours=1))
    well.task("poll-inbox", group_name="mail", enabled=False)
    well.task("report", managed_by="code:shop", problem="no zone")

    assert found == names(visitor.open("/tasks", **filters))


@pytest.mark.parametrize(
    ("address", "parameters", "note"),
    [
        (
            "/tasks",
            {"state": "failing"},
            "state=failing is not known, so this page does not obey it. Known: on,",
        ),
        ("/tasks", {"state": "on", "sort": "next"}, "Ordered by next run, the list ignores the state"),
        ("/tasks", {"sort": "group"}, "sort=group is not known"),
        ("/jobs", {"state": "<b>"}, "state=<b> is not known"),
        ("/jobs", {"reason": "rain"}, "reason=rain is not known"),
        ("/timeline", {"hours": "5"}, "hours=5 is not known"),
    ],
    ids=str,
)
def test_ignored_parts_of_an_address_are_reported(
    well: Situation, visitor: Visitor, address: str, parameters: dict[str, str], note: str
) -> None:
    assert note in visitor.open(address, **parameters).text


def test_pages_follow_each_other_and_have_each_row_once(well: Situation, visitor: Visitor) -> None:
    for number in range(120):
        well.session.insert(f"row-{number:03}", schedule="every 1h")

    first = visitor.open("/tasks", q="row")
    second = visitor.open(first.link("after="))
    third = visitor.open([link for link in second.links if "after=" in link][-1])

    assert [f"row-{number:03}" for number in range(120)] == [*names(first), *names(second), *names(third)]
    assert not [link for link in third.links if "after=" in link]


def test_a_paused_task_shows_no_next_run(well: Situation, visitor: Visitor) -> None:
    well.plan(NOON + timedelta(hours=1), name="on")
    well.plan(NOON + timedelta(hours=2), name="off", enabled=False)

    text = visitor.open("/tasks").text

    assert "13:00:00" in text
    assert "14:00:00" not in text


def test_by_next_run_pages_follow_each_other_even_where_all_run_at_once(well: Situation, visitor: Visitor) -> None:
    for number in range(110):
        well.task(f"row-{number:03}", next_run_at=NOON + timedelta(hours=1 if number < 100 else -1))
    well.task("paused", next_run_at=NOON, enabled=False)

    first = visitor.open("/tasks", sort="next")
    second = visitor.open(first.link("after="))
    third = visitor.open([link for link in second.links if "after=" in link][-1])

    expected = [*range(100, 110), *range(100)]
    assert [f"row-{number:03}" for number in expected] == [*names(first), *names(second), *names(third)]
    assert ["row-042"] == names(visitor.open("/tasks", sort="next", q="042"))
    assert [] == names(visitor.open("/tasks", sort="next", group="none"))


def test_a_name_of_any_letters_stays_whole_in_links(well: Situation, visitor: Visitor) -> None:
    for number in range(page.ROWS + 1):
        well.session.insert(f"a/b?c#d&e=%2F..\U0001f4a3 {number:02}", schedule="every 1h")

    first = visitor.open("/tasks")

    assert 1 == len(names(visitor.open(first.link("after="))))
    assert "a/b?c#d&e=%2F..\U0001f4a3 00" in visitor.open(first.link("/task?name=")).text


def test_a_search_that_finds_nothing_has_a_way_back(well: Situation, visitor: Visitor) -> None:
    well.task()

    seen = visitor.open("/tasks", q="bill")

    assert "No task matches" in seen.text
    assert "/tasks" in seen.links


def test_a_rare_state_is_looked_for_in_bounds_and_the_page_says_how_to_look_further(
    well: Situation, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MOST_ROWS", 10)
    for number in range(25):
        well.session.insert(f"row-{number:02}", schedule="every 1h", enabled=number != 23)

    first = visitor.open("/tasks", state="paused")
    second = visitor.open(first.link("after="))
    third = visitor.open([link for link in second.links if "after=" in link][-1])

    assert "None among 10 tasks Looked at those up to row-09" in first.text
    assert [[], [], ["row-23"]] == [names(seen) for seen in (first, second, third)]


def test_p11_a_page_of_100000_rows_is_quick_wherever_it_is_and_whatever_is_looked_for(
    well: Situation, visitor: Visitor
) -> None:
    well.session.rows("set session_replication_role = replica")
    well.session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at, planned_revision, revision) "
        "select 'row-' || n, 'app.probe', '@hourly', pgbeat.now() + n * interval '1 s', 1, 1 "
        "from generate_series(1, 100000) n"
    )
    well.session.rows("vacuum analyze pgbeat.periodic_task")
    visitor.open("/tasks")

    def taken(**parameters: str) -> float:
        begun = time.perf_counter()
        visitor.open("/tasks", **parameters)
        return time.perf_counter() - begun

    for parameters in (
        {},
        {"after": "row-77"},
        {"q": "99999"},
        {"q": "no such name"},
        {"state": "problem"},
        {"sort": "next"},
    ):
        assert min(taken(**parameters) for _ in range(3)) < 0.3 * slowness(), parameters
