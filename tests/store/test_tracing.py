"""The phases of a tick are its statements, with what they answered."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.measures.spans import Spans
from celery_pgbeat.measures.tracing import TracingQueries
from celery_pgbeat.planning import Skipped
from celery_pgbeat.postgres.beat_queries import Submitted
from celery_pgbeat.postgres.database import Database
from tests.harness.exported import Exported, counts, exported
from tests.store.jobs import make_job
from tests.store.test_counting import SECOND, submit, submit_free
from tests.store.ticks import LEASE, beat, decided, make_due


@pytest.fixture
def seen() -> Iterator[Exported]:
    with exported() as made:
        yield made


@pytest.fixture
def store(migrated_database: str, seen: Exported) -> TracingQueries:
    made = TracingQueries(Database(migrated_database), "beat-a", LEASE)
    made.spans = Spans()
    return made


def sent(store: TracingQueries) -> list[tuple[uuid.UUID, float]]:
    return [(row.id, 0.0) for row in store.database.execute("select id from pgbeat.active_job order by id")]


def phases(seen: Exported) -> list[ReadableSpan]:
    """Return the spans in the only tick, in the order of their starts."""
    tick = seen.one("pgbeat tick")
    inside = [span for span in seen.spans if span.parent is not None and span.parent.span_id == tick.context.span_id]
    return sorted(inside, key=lambda span: span.start_time or 0)


def test_a_look_that_finds_nothing_due_is_no_tick(store: TracingQueries, seen: Exported) -> None:
    store.look()
    store.mark(10)
    store.recover(10, 32 * SECOND)
    store.look()

    assert [] == seen.spans


def test_a_tick_is_its_phases_with_their_counts(store: TracingQueries, seen: Exported) -> None:
    make_due(store, "a")
    make_due(store, "b")

    submit_free(store)
    store.look()
    store.confirm(sent(store))

    assert [
        ("pgbeat mark", {"beat": "beat-a", "due": 2}),
        ("pgbeat plan", {"decisions": 2}),
        ("pgbeat submit", {"decisions": 2, "jobs": 2, "submitted": 2}),
        ("pgbeat confirm", {"jobs": 2, "held": 0}),
    ] == [(span.name, counts(span)) for span in phases(seen)]
    tick = seen.one("pgbeat tick")
    assert {"beat": "beat-a", "due": 2, "jobs": 2} == counts(tick)
    assert (phases(seen)[0].start_time, phases(seen)[-1].end_time) == (tick.start_time, tick.end_time)
    assert 1 == len({span.context.trace_id for span in seen.spans})


def test_a_second_submit_of_a_locked_row_is_a_second_phase_of_the_same_tick(
    store: TracingQueries, seen: Exported
) -> None:
    make_due(store, "a")
    make_job(store.database, periodic_task="a", state="running", exclusive=True)
    (row,) = store.mark(10)
    passed = Skipped(row.next_run_at - 3 * SECOND, row.next_run_at - SECOND, 3, "too_late")
    decision = decided(row, skipped=passed)

    store.submit_free([decision], "UTC")
    store.look()
    store.submit([decision], "UTC", judging=True, resending=True)

    named = [(span.name, counts(span)) for span in phases(seen)][2:]
    assert [
        ("pgbeat submit", {"decisions": 1, "jobs": 0, "submitted": 0}),
        ("pgbeat submit", {"decisions": 1, "jobs": 0, "submitted": 1}),
    ] == named


def test_a_submit_that_fails_is_a_phase_with_an_error(
    store: TracingQueries, seen: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> list[Submitted]:
        raise DatabaseBusy("a time-out")

    make_due(store, "a")
    rows = store.mark(10)
    monkeypatch.setattr(store, "_run", busy)

    with pytest.raises(DatabaseBusy):
        store.submit_free([decided(row) for row in rows], "UTC")

    assert {"celery_pgbeat.decisions": 1, "error.type": "DatabaseBusy"} == dict(
        seen.one("pgbeat submit").attributes or {}
    )


def test_a_job_whose_row_was_locked_keeps_its_tick_open_until_it_is_confirmed(
    store: TracingQueries, seen: Exported, migrated_database: str
) -> None:
    make_due(store, "a")
    submit(store)
    jobs = sent(store)
    other = beat(migrated_database, "other").database.engine
    with other.execution_options(isolation_level="READ COMMITTED").begin() as holding:
        holding.exec_driver_sql("select from pgbeat.active_job for update")
        store.confirm(jobs)
    store.look()
    assert [] == seen.named("pgbeat tick")

    store.confirm(jobs)

    assert [1, 0] == [counts(span)["held"] for span in phases(seen) if span.name == "pgbeat confirm"]


@pytest.mark.parametrize("how", ["refuse", "give_back", "skip"])
def test_a_job_that_is_not_sent_keeps_no_tick_open(store: TracingQueries, seen: Exported, how: str) -> None:
    make_due(store, "a")
    submit_free(store)
    store.look()
    ((job, _),) = sent(store)

    if how == "refuse":
        store.refuse([(job, "no such exchange")])
    elif how == "skip":
        store.skip([job], "not_allowed")
    else:
        store.give_back([job])

    assert {"beat": "beat-a", "due": 1, "jobs": 1} == counts(seen.one("pgbeat tick"))


def test_what_is_taken_over_is_a_trace_of_its_own(store: TracingQueries, seen: Exported) -> None:
    make_due(store, "a")
    submit_free(store)
    store.give_back()
    first = store.spans.tick_of(sent(store)[0][0])

    (row,) = store.recover(10, 32 * SECOND)
    assert store.spans.tick_of(row.id) not in (None, first)
    store.confirm([(row.id, 0.0)])
    store.mark(10)

    assert {"beat": "beat-a", "recovered": 1, "skipped": 0, "jobs": 1} == counts(
        next(span for span in seen.named("pgbeat recover") if span.parent is None)
    )
