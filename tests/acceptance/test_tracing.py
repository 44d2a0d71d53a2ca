"""From a task's trace to the decision that sent it: real beats, workers with Celery's own instrumentation."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.traced_app import INSTRUMENTED, SPANS
from tests.harness.broker import both_brokers
from tests.harness.outbox import app_of, job, outbox, taken_from
from tests.harness.processes import Cluster
from tests.harness.rows import insert, insert_many, jobs, sql
from tests.harness.sending import sender
from tests.harness.wait import eventually

APP = "tests.acceptance.traced_app"
ON = {"pgbeat_opentelemetry": True}

Span = dict[str, Any]


class Traces:
    """What the processes of a test have exported."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._file = folder / "spans"

    def beat(self, **environment: str) -> None:
        """Start a beat."""
        self.cluster.beat(app=APP, settings=ON, environment={SPANS: str(self._file), **environment})

    def worker(self) -> None:
        """Start a worker."""
        self.cluster.worker(app=APP, settings=ON, environment={SPANS: str(self._file)})

    def spans(self) -> list[Span]:
        """Return all spans, but for one that a process is writing."""
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def named(self, name: str, **attributes: Any) -> list[Span]:
        """Return the spans of a name with such attributes of ours."""
        wanted = {f"celery_pgbeat.{key}": value for key, value in attributes.items()}
        return [
            span
            for span in self.spans()
            if span["name"] == name and wanted.items() <= {key: span["attributes"].get(key) for key in wanted}.items()
        ]

    def wait_for(self, name: str, count: int = 1, **attributes: Any) -> list[Span]:
        """Wait until there are `count` spans of a name with these attributes."""
        eventually(lambda: len(self.named(name, **attributes)) >= count, 40, f"{count} spans {name!r}")
        return self.named(name, **attributes)


@pytest.fixture
def traces(cluster: Cluster, tmp_path: Path) -> Traces:
    return Traces(cluster, tmp_path)


def identity(span: Span) -> tuple[str, str]:
    return span["context"]["trace_id"], span["context"]["span_id"]


def parent(span: Span) -> tuple[str, str | None]:
    return span["context"]["trace_id"], span["parent_id"]


def the_tick_of(traces: Traces, created: Span, name: str = "pgbeat tick") -> Span:
    """Return the span that a job's span links to."""
    (link,) = created["links"]
    found: list[Span] = []

    def there() -> bool:
        found[:] = [span for span in traces.named(name) if identity(span) == identity({"context": link["context"]})]
        return bool(found)

    eventually(there, 20, f"the {name} of {created['attributes']['celery_pgbeat.job']}")
    return found[0]


@both_brokers
def test_the_trace_of_a_task_begins_with_the_decision_that_sent_it(traces: Traces, broker_url: str) -> None:
    traces.cluster.broker = broker_url
    insert_many(traces.cluster.database, 10)
    traces.worker()
    traces.beat()

    runs = traces.wait_for("run/app.probe", 50)

    decided = {str(row["id"]): row for row in jobs(traces.cluster.database)}
    created = {identity(span): span for span in traces.spans() if span["name"] == "create app.probe"}
    assert all(parent(run) in created for run in runs)
    for run in runs:
        first = created[parent(run)]
        row = decided[first["attributes"]["celery_pgbeat.job"]]
        told = {
            "job": str(row["id"]),
            "periodic_task": row["periodic_task"],
            "scheduled_for": row["scheduled_for"].isoformat(),
            "origin": "schedule",
            "run": 0,
        }
        assert told.items() <= ours(first).items()
        assert told.items() <= ours(run).items()
        assert (None, "sent", "celery") == (
            first["parent_id"],
            ours(first)["outcome"],
            first["attributes"]["messaging.destination.name"],
        )
        assert 0 <= ours(first)["lateness"] < 40

    tick = the_tick_of(traces, created[parent(runs[0])])
    inside = [span["name"] for span in traces.spans() if parent(span) == identity(tick)]
    assert {"pgbeat mark", "pgbeat plan", "pgbeat submit", "pgbeat publish", "pgbeat confirm"} == set(inside)
    assert traces.cluster.probe.runs()[0].label not in tick["attributes"].values()


def ours(span: Span) -> dict[str, Any]:
    prefix = "celery_pgbeat."
    return {key.removeprefix(prefix): value for key, value in span["attributes"].items() if key.startswith(prefix)}


def test_a_beat_that_celerys_instrumentation_also_traces_sends_one_trace(traces: Traces) -> None:
    insert_many(traces.cluster.database, 10)
    traces.worker()
    traces.beat(**{INSTRUMENTED: "beat"})

    runs = traces.wait_for("run/app.probe", 20)

    applied = {identity(span): span for span in traces.named("apply_async/app.probe")}

    def all_created() -> bool:
        """A job's span ends with its confirm, so its run may be exported before it."""
        created = {identity(span) for span in traces.named("create app.probe")}
        return all(parent(applied[parent(run)]) in created for run in runs)

    eventually(all_created, 20, "the span of each job that ran")
    assert len({parent(span) for span in applied.values()}) == len(applied)


def test_a_job_that_a_later_cycle_sends_is_linked_to_that_cycle(traces: Traces) -> None:
    insert(traces.cluster.database, "by hand", "every 1d")
    traces.worker()
    traces.beat()
    sql(traces.cluster.database, "select pgbeat.trigger('by hand')")

    (run,) = traces.wait_for("run/app.probe", origin="manual")

    (created,) = traces.wait_for("create app.probe", origin="manual")
    assert identity(created) == parent(run)
    assert 1 == ours(the_tick_of(traces, created, "pgbeat recover"))["recovered"]


def test_the_span_of_a_second_message_says_that_it_was_dropped(traces: Traces) -> None:
    traces.worker()
    with sender(traces.cluster) as sending:
        made = sending.send_job("app.probe", "x")
        sending.wait_for(made, "succeeded")
        sending.send(made, "app.probe", "x")
        (dropped,) = traces.wait_for("run/app.probe", dropped="duplicate")

    assert [None, "duplicate"] == [ours(span).get("dropped") for span in traces.named("run/app.probe")]
    assert str(made) == ours(dropped)["job"]
    assert 1 == len(traces.cluster.probe.runs())


def test_a_worker_without_instrumentation_runs_the_messages_of_a_tracing_beat(traces: Traces) -> None:
    insert(traces.cluster.database, "plain")
    traces.cluster.worker(settings=ON)
    traces.beat()

    eventually(lambda: len(traces.cluster.probe.runs("plain")) >= 3, 40, "three runs")

    assert not {"failed", "revoked", "lost"} & {row["state"] for row in jobs(traces.cluster.database)}


HEADERS = {
    "the w3c's": ("traceparent",),
    "with a state": ("traceparent", "tracestate"),
    "another propagator's": ("X-B3-TraceId", "x-b3 100%", "ü"),
}


@both_brokers
@pytest.mark.parametrize("names", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("own", [{}, {"tenant": "x", "traceparent": "the row's", "tracestate": "the row's"}])
def test_a_rendered_message_carries_the_trace_as_celerys_does_and_not_the_one_of_the_row(
    broker_url: str, names: tuple[str, ...], own: dict[str, str]
) -> None:
    found, app = [], app_of(broker_url)
    given = [
        job(trace={name: f"{name} ü {n}" for name in names}, options={"headers": own} if own else {}) for n in range(6)
    ]
    for plainly in (True, False):
        with outbox(app, plainly=plainly) as made:
            made.publish(given)
            found.append((made.rendered, taken_from(broker_url)))

    (none, theirs), (rendered, sent) = found
    assert (0, 6, 6) == (none, rendered, len(sent))
    assert theirs == sent
    told = [headers_of(message) for message in sent]
    assert [each.trace for each in given] == [{name: headers[name] for name in names} for headers in told]
    expected = {**own, **(given[0].trace or {})}
    if "tracestate" not in names:
        expected.pop("tracestate", None)
    assert expected == {key: told[0][key] for key in (*own, *names) if key in told[0]}


def headers_of(message: Any) -> dict[str, Any]:
    """Return a message's headers, as either broker has them."""
    found = json.loads(message[1])["headers"] if len(message) == 2 else message[1]["application_headers"]
    return dict(found)


def test_jobs_with_and_without_a_trace_have_different_templates(redis_url: str) -> None:
    traced = [job(id=uuid.uuid4(), trace={"traceparent": "x"}) for _ in range(5)]
    untraced = [job(id=uuid.uuid4()) for _ in range(5)]
    with outbox(app_of(redis_url)) as made:
        made.publish([each for pair in zip(traced, untraced, strict=True) for each in pair])

    assert 10 == made.rendered
    by_id = {headers["id"]: headers.get("traceparent") for headers in map(headers_of, taken_from(redis_url))}
    assert {str(each.id): "x" for each in traced} | {str(each.id): None for each in untraced} == by_id
