"""Who changed what, on the page of a periodic task."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.web import dashboard
from tests.harness.situations import Situation
from tests.harness.visitor import Visitor


@pytest.fixture
def beat(shared_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=shared_database)
    yield made
    made.close()


def changes_on(visitor: Visitor) -> str:
    """Return the part of the page with the changes."""
    return visitor.open("/task?name=nightly").html.partition('<section id="changes">')[2].partition("</section>")[0]


def test_a_change_by_the_dashboard_names_who_made_it_and_what_differs(
    empty_stage: Situation, shared_database: str
) -> None:
    empty_stage.plan()
    with Visitor(dashboard(shared_database, may_change=lambda _: "anna")) as anna:
        revision = str(empty_stage.session.task("nightly")["revision"])
        seen = anna.act("/edit?name=nightly", schedule="0 4 * * *", timezone="Europe/Berlin", revision=revision)
        assert 303 == seen.status

        shown = changes_on(anna)

    assert 'changed by <span class="name">anna</span>' in shown
    assert "schedule: <code>" in shown
    assert "&#34;0 4 * * *&#34;</code>" in shown
    assert "created by" in shown


def test_names_reasons_and_values_are_text_on_the_page(
    empty_stage: Situation, beat: PgBeat, shared_database: str
) -> None:
    empty_stage.plan()
    beat.as_person("<b>ann</b>", "<i>why</i>").update("nightly", args=["<script>" + "x" * 500])

    with Visitor(dashboard(shared_database)) as visitor:
        shown = changes_on(visitor)

    assert not [tag for tag in ("<b>", "<i>", "<script>") if tag in shown]
    assert "&lt;b&gt;ann&lt;/b&gt;" in shown
    assert "&lt;i&gt;why&lt;/i&gt;" in shown
    assert "x" * 200 not in shown


def test_the_arguments_of_a_sensitive_task_are_not_among_its_changes(
    empty_stage: Situation, beat: PgBeat, shared_database: str
) -> None:
    empty_stage.plan()
    beat.update("nightly", args=["secret-1"], sensitive=True)
    beat.update("nightly", args=["secret-2"])

    with Visitor(dashboard(shared_database)) as visitor:
        shown = changes_on(visitor)

    assert "args" in shown
    assert "secret-" not in shown


def test_arguments_that_a_task_had_before_it_became_sensitive_are_not_among_its_changes(
    empty_stage: Situation, beat: PgBeat, shared_database: str
) -> None:
    empty_stage.plan()
    beat.update("nightly", args=["secret-1"])
    with Visitor(dashboard(shared_database)) as visitor:
        assert "secret-1" in changes_on(visitor)
        beat.update("nightly", sensitive=True)

        assert "secret-1" not in changes_on(visitor)
