"""Who asks for no spans pays nothing for them, and who does is told at the start what is missing."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.errors import MissingExtra
from celery_pgbeat.measures.counting import Counting
from celery_pgbeat.measures.instruments import Instruments
from celery_pgbeat.measures.observer import Observer, all_of
from celery_pgbeat.measures.spans import MOST_OPEN, Spans
from celery_pgbeat.measures.tracing import Tracing
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.start.job_span import JobSpan
from tests.harness.exported import Exported, counts, exported
from tests.harness.outbox import job, jobs

NOWHERE = "postgresql://localhost:1/nowhere"
ON = {"pgbeat_url": NOWHERE, "pgbeat_opentelemetry": True}
NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


@pytest.fixture
def seen() -> Iterator[Exported]:
    with exported() as made:
        yield made


def instruments(**settings: Any) -> Instruments:
    read = Settings.from_mapping({"pgbeat_url": NOWHERE, **settings})
    return Instruments(None, read, Database(NOWHERE), lambda: NOON, lambda: True)


def test_without_the_setting_spans_cost_nothing() -> None:
    assert Observer is type(instruments().observer("beat-a"))
    code = """
import sys
from celery import Celery
import celery_pgbeat.worker.installation, celery_pgbeat.worker.start.guard
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.context import WorkerContext
app = Celery("shop", broker="memory://")
app.conf.pgbeat_url = "postgresql://localhost:1/nowhere"
assert Scheduler(app)._loop.wiring.instruments.spans is None
assert WorkerContext(app, Settings.from_mapping(app.conf)).job_span is None
print(sorted(name for name in sys.modules if "opentelemetry" in name or name == "celery_pgbeat.measures.tracing"))
"""
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == seen.stdout.strip()


def test_with_the_settings_events_are_traced_and_counted() -> None:
    assert Tracing is type(instruments(**ON).observer("beat-a"))
    both = instruments(pgbeat_metrics_port=1, **ON).observer("beat-a")

    assert type(both) not in (Tracing, Counting)


def test_each_event_reaches_every_observer_and_surrounds_it_once() -> None:
    class Noting(Observer):
        def __init__(self) -> None:
            self.noted: list[str] = []

        def looked(self) -> None:
            self.noted.append("looked")

        @contextmanager
        def sending(self, job: uuid.UUID) -> Iterator[None]:
            del job
            self.noted.append("before")
            yield
            self.noted.append("after")

    several = Noting(), Noting()
    together = all_of(several)

    together.looked()
    with together.sending(uuid.uuid4()):
        several[0].noted.append("sent")
    together.judged([])

    assert [["looked", "before", "sent", "after"], ["looked", "before", "after"]] == [one.noted for one in several]


@pytest.mark.parametrize("process", ["beat", "worker"])
def test_without_the_extra_neither_a_beat_nor_a_worker_starts_and_both_say_how_to_get_it(
    process: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("opentelemetry", "celery_pgbeat.measures.spans"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delattr("celery_pgbeat.measures.spans", raising=False)
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(ON)

    with pytest.raises((MissingExtra, SystemExit)) as refused:
        Scheduler(app) if process == "beat" else WorkerContext(app, Settings.from_mapping(app.conf))

    assert "pip install 'celery-pgbeat[opentelemetry]'" in (caplog.text if process == "beat" else str(refused.value))


def test_a_tick_ends_with_the_last_phase_of_its_last_job(seen: Exported) -> None:
    spans = Spans()
    ids = [uuid.uuid4(), uuid.uuid4()]
    tick = spans.begin("tick", "mark", 1, NOON, {"due": 2})
    spans.submitted(tick, dict.fromkeys(ids, NOON))
    spans.end_cycle()
    spans.settle(ids[:1])
    assert ["pgbeat mark"] == seen.names

    with spans.phase(tick, "confirm", {"jobs": 1}):
        pass
    spans.settle(ids[1:])
    spans.settle(ids)  # a second time, as of jobs that are given back late

    assert ["pgbeat mark", "pgbeat confirm", "pgbeat tick"] == seen.names
    assert (1, seen.one("pgbeat confirm").end_time) == (tick_span(seen).start_time, tick_span(seen).end_time)
    assert {"due": 2, "jobs": 2} == counts(tick_span(seen))


def test_a_tick_without_jobs_ends_with_its_cycle(seen: Exported) -> None:
    spans = Spans()
    spans.begin("tick", "mark", 1, NOON, {"due": 1})

    spans.end_cycle()

    assert {"due": 1, "jobs": 0} == counts(tick_span(seen))


def test_a_tick_that_is_never_settled_is_ended_by_newer_ticks_or_by_the_end_of_the_beat(seen: Exported) -> None:
    spans = Spans()
    for n in range(MOST_OPEN + 1):
        spans.submitted(spans.begin("tick", "mark", 1, NOON + n * SECOND, {"due": 1}), {uuid.UUID(int=n): NOON})
    assert [1] == [counts(span)["unsettled"] for span in seen.named("pgbeat tick")]
    assert [None] == [spans.tick_of(uuid.UUID(int=n)) for n in range(MOST_OPEN + 1) if n == 0]
    assert spans.tick_of(uuid.UUID(int=1)) is not None

    spans.close()
    spans.close()

    assert MOST_OPEN + 1 == len(seen.named("pgbeat tick"))


def test_a_failed_phase_has_the_type_of_the_error_and_not_its_text(seen: Exported) -> None:
    spans = Spans()
    tick = spans.begin("tick", "mark", 1, NOON, {"due": 1})

    with pytest.raises(ValueError), spans.phase(tick, "submit", {}):
        raise ValueError("s3cret")

    failed = seen.one("pgbeat submit")
    assert {"error.type": "ValueError"} == dict(failed.attributes or {})
    assert (False, None, ()) == (failed.status.is_ok, failed.status.description, tuple(failed.events))


def test_a_job_has_a_trace_of_its_own_that_links_to_its_tick_and_continues_in_the_message(seen: Exported) -> None:
    spans = Spans()
    given = job(args='["s3cret"]', kwargs='{"key": "s3cret"}', options={"headers": {"token": "s3cret"}})
    tick = spans.begin("tick", "mark", 1, NOON, {"due": 1})
    spans.submitted(tick, {given.id: NOON - SECOND})

    with trace.get_tracer("other").start_as_current_span("somebody else's"):
        made = spans.begin_jobs([given], NOON, "redis", ["mail"])
    spans.end_jobs(made, {given.id}, {})
    spans.end_cycle()
    spans.settle([given.id])

    span = seen.one("create shop.probe")
    assert span.parent is None
    assert [tick_span(seen).context] == [link.context for link in span.links]
    assert given.trace is not None
    traceparent, flags = given.trace["traceparent"].rsplit("-", 1)
    assert (f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}", 1) == (traceparent, int(flags, 16) & 1)
    assert trace.SpanKind.PRODUCER is span.kind
    assert {
        "messaging.system": "redis",
        "messaging.operation.type": "create",
        "messaging.operation.name": "create",
        "messaging.message.id": str(given.id),
        "messaging.destination.name": "mail",
        "celery.task_name": "shop.probe",
        "celery_pgbeat.job": str(given.id),
        "celery_pgbeat.periodic_task": "nightly",
        "celery_pgbeat.scheduled_for": "2026-12-07T12:00:00+00:00",
        "celery_pgbeat.origin": "schedule",
        "celery_pgbeat.run": 0,
        "celery_pgbeat.lateness": 1.0,
        "celery_pgbeat.outcome": "sent",
    } == dict(span.attributes or {})
    assert "s3cret" not in "".join(each.to_json() for each in seen.spans)


def test_the_span_of_a_job_has_the_outcome_of_its_message(seen: Exported) -> None:
    spans = Spans()
    sent, unsent, refused = given = jobs(3)

    made = spans.begin_jobs(given, NOON, "redis", [None] * 3)
    spans.end_jobs(made, {sent.id}, {refused.id: TypeError("takes no 's3cret'")})

    told = {counts(span)["job"]: (counts(span)["outcome"], span.status.is_ok) for span in seen.spans}
    assert {str(sent.id): ("sent", True), str(unsent.id): ("unsent", True), str(refused.id): ("refused", False)} == told
    assert "s3cret" not in "".join(each.to_json() for each in seen.spans)


def test_an_unsampled_job_has_no_span_and_its_message_carries_the_flag() -> None:
    with exported(ALWAYS_OFF) as seen:
        spans, given = Spans(), job()
        tick = spans.begin("tick", "mark", 1, NOON, {"due": 1})
        spans.submitted(tick, {given.id: NOON})
        with spans.phase(tick, "publish", {}):
            spans.end_jobs(spans.begin_jobs([given], NOON, "redis", [None]), {given.id}, {})
        spans.settle([given.id])
        spans.close()

    assert given.trace is not None
    assert 0 == int(given.trace["traceparent"].rsplit("-", 1)[1], 16) & 1
    assert [] == seen.spans


def test_without_an_sdk_there_are_no_spans_and_no_headers() -> None:
    spans, given = Spans(), job()
    tick = spans.begin("tick", "mark", 1, NOON, {"due": 1})
    spans.submitted(tick, {given.id: NOON})

    spans.end_jobs(spans.begin_jobs([given], NOON, "redis", [None]), {given.id}, {})
    spans.close()

    assert given.trace is None


def test_a_worker_adds_the_job_and_why_it_is_dropped_to_the_current_span(seen: Exported) -> None:
    header = {
        "job": "7",
        "periodic_task": "x" * 1000,
        "scheduled_for": "2026-12-07T12:00:00+00:00",
        "origin": ["schedule"],
        "run": 2,
        "further": "s3cret",
    }
    with trace.get_tracer("instrumentation").start_as_current_span("run/app.probe"):
        JobSpan(trace.get_current_span).describe(header)
        JobSpan(trace.get_current_span).describe("no header of ours")
        JobSpan(trace.get_current_span).drop("duplicate")

    told = counts(seen.one("run/app.probe"))
    assert {"job", "periodic_task", "scheduled_for", "run", "dropped"} == set(told)
    assert ("7", 250, 2, "duplicate") == (told["job"], len(told["periodic_task"]), told["run"], told["dropped"])


def test_a_worker_without_a_span_goes_on() -> None:
    JobSpan(trace.get_current_span).describe({"job": "7"})
    JobSpan(trace.get_current_span).drop("duplicate")


def tick_span(seen: Exported) -> Any:
    return seen.one("pgbeat tick")
