"""One start: whatever becomes of a job's messages, its task runs once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.sending import Sender, sender, worker
from tests.harness.processes import Cluster
from tests.harness.wait import eventually


@pytest.fixture
def sending(cluster: Cluster) -> Iterator[Sender]:
    cluster.settings["result_backend"] = cluster.broker
    with sender(cluster) as made:
        yield made


def test_of_five_copies_on_two_workers_one_starts(cluster: Cluster, sending: Sender) -> None:
    workers = [worker(cluster), worker(cluster)]
    job = sending.job()
    for _ in range(5):
        sending.send(job, "app.probe", "x", 1)
    sending.wait_for(job, "succeeded")
    eventually(lambda: sum(node.log.count("second message of job") for node in workers) == 4, 20, "four copies dropped")
    assert 1 == len(cluster.probe.runs("x"))
    assert "SUCCESS" == sending.result(job)
