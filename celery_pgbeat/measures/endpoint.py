"""The metrics as Prometheus reads them. The only file that knows its client, which is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from celery_pgbeat.measures.gauges import Gauges
from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.process.threads import LastingThread

COUNTERS = {
    "sent": "Messages that the broker took and Postgres knows of.",
    "refused": "Messages that could not be made or that the broker refused.",
    "recovered": "Unsent jobs taken over: given back, triggered, or left by a dead beat.",
    "lost": "Jobs given up: silent for too long, or three times not sendable.",
}
# States that are always reported: an alert needs a series that does not come and go.
STATES = ("pending", "sent", "running", "retrying", "buffered", "waiting", "error", "created")


class BeatMetrics(Collector):
    """One beat's counts, and the cluster's gauges as this beat reads them."""

    def __init__(self, tally: Tally, gauges: Gauges) -> None:
        self._tally = tally
        self._gauges = gauges

    def describe(self) -> Iterable[Metric]:
        """Name no metrics in advance: collecting would read the database, which may not be there yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return all metrics as they are now."""
        yield from self._counted()
        yield from self._of_this_beat()
        yield from self._read()

    def _counted(self) -> Iterator[Metric]:
        counts = self._tally.counts()
        for name, meaning in COUNTERS.items():
            yield CounterMetricFamily(f"pgbeat_{name}", meaning, value=counts[name])
        skipped = CounterMetricFamily("pgbeat_skipped", "Occurrences skipped, by the reason.", labels=["reason"])
        for reason, count in sorted(self._tally.skipped().items()):
            skipped.add_metric([reason], count)
        yield skipped
        buckets, total = self._tally.lateness()
        meaning = "How long after it was due a job was sent, jitter and blackout windows aside."
        yield HistogramMetricFamily("pgbeat_lateness_seconds", meaning, buckets=buckets, sum_value=total)

    def _of_this_beat(self) -> Iterator[Metric]:
        since = self._tally.since_cycle()
        if since is not None:
            yield GaugeMetricFamily("pgbeat_since_cycle_seconds", "Since this beat's last cycle that went well.", since)
        meaning = "0 while this beat has something to send and does not reach the broker."
        yield GaugeMetricFamily("pgbeat_broker_up", meaning, float(self._tally.broker_up))

    def _read(self) -> Iterator[Metric]:
        reading = self._gauges.read()
        up = float(reading is not None)
        yield GaugeMetricFamily("pgbeat_database_up", "Whether this beat can read its tables.", up)
        if reading is None:
            return
        yield GaugeMetricFamily("pgbeat_due", "Periodic tasks that are due now, counted up to 10000.", reading.due)
        yield GaugeMetricFamily("pgbeat_overdue", "Rows of the view overdue, counted up to 10000.", reading.overdue)
        active = GaugeMetricFamily("pgbeat_active_jobs", "Jobs that are not final, by state.", labels=["state"])
        for state in STATES:
            active.add_metric([state], reading.active.get(state, 0))
        yield active
        yield GaugeMetricFamily("pgbeat_beats", "Beats that live.", reading.beats)
        yield GaugeMetricFamily("pgbeat_alerts", "Alerts that are raised and not over.", reading.alerts)
        meaning = "Periodic tasks that code declares and beats refuse."
        yield GaugeMetricFamily("pgbeat_refused_declarations", meaning, reading.refused_declarations)


class Endpoint:
    """A server of metrics, in a thread.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, host: str, port: int, tally: Tally, gauges: Gauges) -> None:
        registry = CollectorRegistry()
        registry.register(BeatMetrics(tally, gauges))
        self._server, thread = start_http_server(port, host, registry)
        self._thread = LastingThread(self._server.serve_forever, "pgbeat-metrics", thread)

    def restart_if_ended(self) -> None:
        """Serve again if the thread has ended too early."""
        self._thread.restart_if_ended()

    def close(self) -> None:
        """Stop serving."""
        if self._thread.is_alive:
            self._server.shutdown()
        self._server.server_close()
