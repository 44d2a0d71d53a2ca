"""Put a definition back from the page of the task: what would change is shown first, and nothing else is changed."""

from __future__ import annotations

from typing import Any

import pytest

from celery_pgbeat.api import PeriodicTask, PgBeat
from tests.harness.situations import Situation
from tests.harness.visitor import Visitor, gone_to

TASK = "/task?name=nightly"


def changed(well: Situation, beat: PgBeat) -> None:
    """Have a task whose schedule and queue were changed, one after the other."""
    well.plan(schedule="0 3 * * *")
    beat.update("nightly", schedule="0 4 * * *")
    beat.update("nightly", queue="reports")


def test_a_change_is_put_back_and_what_was_changed_after_it_as_well(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    changed(well, beat)
    of_queue, of_schedule = [link for link in anna.open(TASK).links if link.startswith("/revert")]
    shown = anna.open(of_schedule).text
    assert "schedule: 0 4 * * * becomes 0 3 * * *" in shown
    assert "queue: reports becomes nothing" in shown
    assert "schedule" not in anna.open(of_queue).text.partition("Put back")[2].partition("The pause")[0]

    seen = anna.act(of_schedule)

    gone_to(seen, "/task?name=nightly&done=reverted")
    row = beat.get("nightly")
    assert ("0 3 * * *", None) == (row.schedule, row.queue)
    assert "anna" == beat.changes("nightly")[0].who


def test_a_task_that_was_changed_meanwhile_is_looked_at_again(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    changed(well, beat)
    link = anna.open(TASK).link("/revert")
    page = anna.open(link)
    beat.update("nightly", priority=3)

    seen = anna.send(link, page.fields)

    assert 422 == seen.status
    assert "Another person has changed this task" in seen.text
    assert "priority: 3 becomes nothing" in seen.text
    assert ("reports", 3) == (beat.get("nightly").queue, beat.get("nightly").priority)
    anna.send(link, seen.fields)
    assert (None, None) == (beat.get("nightly").queue, beat.get("nightly").priority)


def test_a_change_that_commits_while_it_is_put_back_is_kept(
    well: Situation, anna: Visitor, beat: PgBeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(well, beat)
    revert = PgBeat.revert

    def after_another_change(self: PgBeat, *args: Any, **given: Any) -> PeriodicTask:
        beat.update("nightly", priority=3)
        return revert(self, *args, **given)

    monkeypatch.setattr(PgBeat, "revert", after_another_change)

    seen = anna.act(anna.open(TASK).link("/revert"))

    assert (422, True) == (seen.status, "Another person has changed this task" in seen.text)
    assert ("reports", 3) == (beat.get("nightly").queue, beat.get("nightly").priority)


@pytest.mark.parametrize("change", ["", "x", "-1", "9" * 30, "²"])
def test_an_address_without_a_change_is_refused(well: Situation, anna: Visitor, beat: PgBeat, change: str) -> None:
    changed(well, beat)

    assert "The address names no change" in anna.open("/revert", name="nightly", change=change).text


def test_a_change_of_another_task_is_refused(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    changed(well, beat)
    beat.schedule("other", "app.probe", "@daily")

    seen = anna.open("/revert", name="other", change=str(beat.changes("nightly")[0].id))

    assert 200 != seen.status
    assert "@daily" == beat.get("other").schedule


def test_a_definition_of_code_is_put_back_in_the_code(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    changed(well, beat)
    well.session.rows("update pgbeat.periodic_task set managed_by = 'code:shop'")
    change = str(beat.changes("nightly")[0].id)

    assert not [link for link in anna.open(TASK).links if link.startswith("/revert")]
    assert "Code declares this task" in anna.open("/revert", name="nightly", change=change).text


def test_a_person_who_may_only_look_sees_no_link(well: Situation, visitor: Visitor, beat: PgBeat) -> None:
    changed(well, beat)

    assert not [link for link in visitor.open(TASK).links if link.startswith("/revert")]


def test_a_sensitive_task_stays_sensitive_and_the_form_says_so(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.plan(args='["patient 4711"]')
    beat.update("nightly", queue="reports")
    beat.update("nightly", sensitive=True)
    of_sensitive, of_queue = [link for link in anna.open(TASK).links if link.startswith("/revert")]

    nothing, form = anna.open(of_sensitive), anna.open(of_queue)
    anna.act(of_queue)

    assert "Its definition already has these values. It stays sensitive: only" in nothing.text
    assert "It stays sensitive" in form.text
    assert (True, None) == (beat.get("nightly").sensitive, beat.get("nightly").queue)
    assert "patient 4711" not in anna.open(TASK).html
