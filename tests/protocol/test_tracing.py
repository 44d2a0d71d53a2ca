"""The phases of a tick are its statements, with what they answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from celery_pgbeat.beat.send.messages import Refusal
from celery_pgbeat.beat.send.publisher import Published
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.measures.spans import Spans
from celery_pgbeat.measures.tracing import Tracing
from celery_pgbeat.planning import Skipped
from celery_pgbeat.postgres.beat_queries import Submitted
from tests.harness.exported import Exported, counts, exported
from tests.harness.jobs import make_job
from tests.harness.observed import Observed
from tests.harness.outbox import app_of, job
from tests.harness.ticks import beat, decided, make_due, plan_ahead
from tests.protocol.test_counting import SECOND, submit


class Traced(Observed):
    """A beat that is traced."""

    def __init__(self, url: str) -> None:
        self.spans = Spans()
        super().__init__(
            beat(url), Tracing(self.spans, app_of("memory://"), "beat-a", lambda: datetime.now(timezone.utc))
        )


@pytest.fixture
def seen() -> Iterator[Exported]:
    with exported() as made:
        yield made


@pytest.fixture
def store(migrated_database: str, seen: Exported) -> Iterator[Traced]:
    del seen  # exports before the first span
    made = Traced(migrated_database)
    yield made
    made.close()


def phases(seen: Exported) -> list[ReadableSpan]:
    """Return the spans in the only tick, in the order of their starts."""
    tick = seen.one("pgbeat tick")
    inside = [span for span in seen.spans if span.parent is not None and span.parent.span_id == tick.context.span_id]
    return sorted(inside, key=lambda span: span.start_time or 0)


def test_a_look_that_finds_nothing_due_is_no_tick(store: Traced, seen: Exported) -> None:
    store.look()
    store.mark()
    store.beat.dispatcher.run_cycle()

    assert [] == seen.spans


def test_a_tick_is_its_phases_with_their_counts(store: Traced, seen: Exported) -> None:
    make_due(store.queries, "a")
    make_due(store.queries, "b")

    submit(store)
    store.look()
    store.deliver(store.jobs())

    assert [
        ("pgbeat mark", {"beat": "beat-a", "due": 2, "at_once": 0}),
        ("pgbeat plan", {"decisions": 2}),
        ("pgbeat submit", {"decisions": 2, "jobs": 2, "submitted": 2}),
        ("pgbeat confirm", {"jobs": 2, "locked": 0}),
    ] == [(span.name, counts(span)) for span in phases(seen)]
    tick = seen.one("pgbeat tick")
    assert {"beat": "beat-a", "due": 2, "at_once": 0, "jobs": 2} == counts(tick)
    assert (phases(seen)[0].start_time, phases(seen)[-1].end_time) == (tick.start_time, tick.end_time)
    assert 1 == len({span.context.trace_id for span in seen.spans})


def test_what_a_mark_submits_at_once_belongs_to_its_tick(store: Traced, seen: Exported) -> None:
    plan_ahead(store.queries, "a")
    make_due(store.queries, "b")

    marked = store.mark_or_submit()
    store.submit([decided(row) for row in marked.due])
    store.look()
    store.deliver(store.jobs())

    assert [
        ("pgbeat mark", {"beat": "beat-a", "due": 2, "at_once": 1}),
        ("pgbeat plan", {"decisions": 1}),
        ("pgbeat submit", {"decisions": 1, "jobs": 1, "submitted": 1}),
        ("pgbeat confirm", {"jobs": 2, "locked": 0}),
    ] == [(span.name, counts(span)) for span in phases(seen)]
    assert {"beat": "beat-a", "due": 2, "at_once": 1, "jobs": 2} == counts(seen.one("pgbeat tick"))


def test_a_second_submit_of_what_was_kept_is_a_second_phase_of_the_same_tick(
    store: Traced, seen: Exported, migrated_database: str
) -> None:
    make_due(store.queries, "a")
    make_job(store.queries.database, periodic_task="a", state="running", exclusive=True)
    (row,) = store.mark()
    skipped = Skipped(row.next_run_at - 3 * SECOND, row.next_run_at - SECOND, 3, "too_late")
    decision = decided(row, skipped=skipped)

    other = beat(migrated_database, "other").database.engine
    with other.execution_options(isolation_level="READ COMMITTED").begin() as holding:
        holding.exec_driver_sql("select from pgbeat.periodic_task for update")
        store.submit([decision])
    store.look()
    store.submit([decision])

    named = [(span.name, counts(span)) for span in phases(seen)][2:]
    assert [
        ("pgbeat submit", {"decisions": 1, "jobs": 0, "submitted": 0}),
        ("pgbeat submit", {"decisions": 1, "jobs": 0, "submitted": 1}),
    ] == named


def test_a_submit_that_fails_is_a_phase_with_an_error(
    store: Traced, seen: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> list[Submitted]:
        raise DatabaseBusy("a time-out")

    make_due(store.queries, "a")
    rows = store.mark()
    monkeypatch.setattr(store.queries, "submit", busy)

    with pytest.raises(DatabaseBusy):
        store.submit([decided(row) for row in rows])

    assert {"celery_pgbeat.decisions": 1, "error.type": "DatabaseBusy"} == dict(
        seen.one("pgbeat submit").attributes or {}
    )


def test_what_somebody_held_keeps_its_tick_open_until_it_is_confirmed_again(
    store: Traced, seen: Exported, migrated_database: str
) -> None:
    make_due(store.queries, "a")
    submit(store)
    other = beat(migrated_database, "other").database.engine
    with other.execution_options(isolation_level="READ COMMITTED").begin() as holding:
        holding.exec_driver_sql("select from pgbeat.active_job for update")
        store.deliver(store.jobs())
    store.look()
    assert [] == seen.named("pgbeat tick")

    store.beat.delivery.confirm_again()

    assert [1, 0] == [counts(span)["locked"] for span in phases(seen) if span.name == "pgbeat confirm"]


@pytest.mark.parametrize("how", ["refused", "unsent", "not_sent"])
def test_a_job_that_is_not_sent_keeps_no_tick_open(store: Traced, seen: Exported, how: str) -> None:
    make_due(store.queries, "a")
    submit(store)
    store.look()
    (one,) = store.jobs()
    store.published = {
        "refused": Published(refused=[Refusal(one, "a", ValueError("no such exchange"))]),
        "unsent": Published(unsent=[one]),
        "not_sent": Published(not_sent=[job(id=one)]),
    }[how]

    store.deliver([one])

    assert {"beat": "beat-a", "due": 1, "at_once": 0, "jobs": 1} == counts(seen.one("pgbeat tick"))


def test_what_is_taken_over_is_a_trace_of_its_own(store: Traced, seen: Exported) -> None:
    make_due(store.queries, "a")
    submit(store)
    store.queries.give_back()

    store.beat.dispatcher.run_cycle()
    store.look()

    assert {"beat": "beat-a", "recovered": 1, "skipped": 0, "jobs": 1} == counts(
        next(span for span in seen.named("pgbeat recover") if span.parent is None)
    )
    confirm = seen.one("pgbeat confirm")
    assert confirm.parent is not None
    assert "pgbeat recover" in [span.name for span in seen.spans if span.context.span_id == confirm.parent.span_id]
