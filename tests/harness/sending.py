"""Jobs and their messages as a beat would make them, for tests of what a real worker does with them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import Celery

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.database import Database
from tests.harness.jobs import make_job, state
from tests.harness.processes import Cluster, Worker
from tests.harness.wait import eventually

APP = "tests.harness.worker_app"


class Sender:
    """Makes jobs in the cluster's database and sends their messages, as often as a test likes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.database = Database(cluster.database)
        self.app = Celery(broker=cluster.broker, backend=cluster.settings.get("result_backend"), set_as_current=False)

    def job(self, **columns: Any) -> uuid.UUID:
        """Make a job; by default its name is that of no other job."""
        return make_job(self.database, **{"periodic_task": f"row-{uuid.uuid4()}", **columns})

    def send(
        self,
        job: uuid.UUID,
        task: str,
        *args: Any,
        run: int = 0,
        header: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Send one message of a job: `header` goes into ours, `headers` beside it."""
        pgbeat = {
            "periodic_task": "row",
            "job": str(job),
            "scheduled_for": "2026-12-07T12:00:00+00:00",
            "origin": "schedule",
            "run": run,
            **(header or {}),
        }
        self.app.send_task(task, args, task_id=str(job), headers={"pgbeat": pgbeat, **(headers or {})}, **options)

    def send_job(self, task: str, *args: Any, columns: Mapping[str, Any] | None = None, **options: Any) -> uuid.UUID:
        """Make a job and send its message."""
        job = self.job(task=task, **(columns or {}))
        self.send(job, task, *args, **options)
        return job

    def result(self, job: uuid.UUID) -> str:
        """Return the state that the result backend has."""
        return str(self.app.AsyncResult(str(job)).state)

    def wait_for(self, job: uuid.UUID, wanted: str, timeout: float = 20) -> None:
        """Wait until a job's row is in a state."""
        seen: list[str | None] = []

        def there() -> bool:
            try:
                seen.append(state(self.database, job))
            except DatabaseUnavailable:  # a connection from before an outage that the test made
                seen.append(None)
            return seen[-1] == wanted

        try:
            eventually(there, timeout, f"job {job} {wanted}")
        except AssertionError as error:
            logs = "".join(f"\n{title}\n{tail}" for title, tail in self.cluster.tails())
            raise AssertionError(f"{error}; its states were {list(dict.fromkeys(seen))}{logs}") from None

    def close(self) -> None:
        """Hang up."""
        self.app.close()
        self.database.close()


@contextmanager
def sender(cluster: Cluster) -> Iterator[Sender]:
    """Make a sender for one test."""
    made = Sender(cluster)
    try:
        yield made
    finally:
        made.close()


def worker(cluster: Cluster, **arguments: Any) -> Worker:
    """Start a worker that has the tests' own tasks."""
    return cluster.worker(**{"app": APP, **arguments})
