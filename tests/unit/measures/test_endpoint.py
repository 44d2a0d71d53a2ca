from __future__ import annotations

import socket
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

import pytest

from celery_pgbeat.measures.gauges import Reading
from celery_pgbeat.measures.instruments import Instruments
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from tests.harness.scrape import free_port, scraped

NOWHERE = "postgresql://localhost:1/nowhere"
READING = Reading(due=3, overdue=1, active={"running": 2}, beats=2, alerts=1, refused_declarations=1)


class Known:
    """In the place of the gauges."""

    def __init__(self, reading: Reading | None) -> None:
        self.reading = reading

    def read(self) -> Reading | None:
        return self.reading


def served(tally: Tally, reading: Reading | None) -> dict[str, float]:
    from celery_pgbeat.measures import endpoint

    port = free_port()
    server = endpoint.Endpoint("127.0.0.1", port, tally, Known(reading))  # type: ignore[arg-type]
    try:
        return scraped(port)
    finally:
        server.close()


def instruments(**settings: Any) -> Instruments:
    read = Settings.from_mapping({"pgbeat_url": NOWHERE, **settings})
    return Instruments(None, read, Database(NOWHERE), lambda: datetime.now(timezone.utc), lambda: True)


def test_the_counts_of_the_beat_are_served() -> None:
    tally = Tally()
    tally.count(sent=5, refused=1)
    tally.skip({"overlap": 2})
    tally.late([0.2, 0.3])
    tally.cycle_ended(broker_up=True)

    found = served(tally, READING)

    assert (5, 1, 0, 0) == tuple(found[f"pgbeat_{name}_total"] for name in ("sent", "refused", "recovered", "lost"))
    assert 2 == found["pgbeat_skipped_total overlap"]
    assert (0, 1, 2) == tuple(found[f"pgbeat_lateness_seconds_bucket {bound}"] for bound in ("0.1", "0.25", "0.5"))
    assert (2, 0.5) == (found["pgbeat_lateness_seconds_count"], found["pgbeat_lateness_seconds_sum"])
    assert 0 <= found["pgbeat_since_cycle_seconds"] < 60
    assert 1 == found["pgbeat_broker_up"]


def test_the_state_of_the_cluster_is_served_with_all_states_of_jobs() -> None:
    found = served(Tally(), READING)

    assert (1, 3, 1, 2, 1) == tuple(
        found[f"pgbeat_{name}"] for name in ("database_up", "due", "overdue", "beats", "alerts")
    )
    assert (2, 0) == (found["pgbeat_active_jobs running"], found["pgbeat_active_jobs pending"])


def test_without_the_database_its_absence_is_served_and_nothing_is_made_up() -> None:
    found = served(Tally(), None)

    assert 0 == found["pgbeat_database_up"]
    assert [] == [name for name in found if name in ("pgbeat_due", "pgbeat_beats")]
    assert 0 == found["pgbeat_sent_total"]


def test_a_beat_serves_before_its_database_is_there_and_ends_with_the_beat() -> None:
    port = free_port()
    made = instruments(pgbeat_metrics_port=port)

    made.start()
    found = scraped(port)
    made.stop()

    assert 0 == found["pgbeat_database_up"]
    with pytest.raises(OSError):
        scraped(port)


def test_a_port_that_is_taken_stops_no_beat(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = instruments(pgbeat_metrics_port=port)

        made.start()
        made.stop()

    assert f"Cannot serve metrics at 127.0.0.1 port {port}" in caplog.text


def test_without_the_extra_a_beat_says_how_to_get_it_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "celery_pgbeat.measures.endpoint", None)
    monkeypatch.delattr("celery_pgbeat.measures.endpoint", raising=False)
    made = instruments(pgbeat_metrics_port=free_port())

    made.start()

    assert "pip install 'celery-pgbeat[prometheus]'" in caplog.text


def test_without_the_setting_metrics_cost_nothing() -> None:
    made = instruments()
    made.start()

    assert Observer is type(made.observer("beat-a"))
    code = "import sys, celery_pgbeat.beat.scheduler; print('prometheus_client' in sys.modules)"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == seen.stdout.strip()
