"""What a beat logs about the decisions that it has submitted."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest

from celery_pgbeat.planning import Decision, decide
from celery_pgbeat.postgres.beat_queries import Submitted
from tests.unit.beat.parts import opened
from tests.unit.planning import rows

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
JOB = uuid.UUID(int=7)


class Queries:
    """A submit of one decision, with this answer."""

    def __init__(self, answer: Submitted) -> None:
        self.answer = answer

    def submit(self, _decisions: Sequence[Decision], *_: Any) -> list[Submitted]:
        return [self.answer]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Submitted("row", made=False, reason="overlap", blocked_by=JOB), f"job {JOB} is not final"),
        (Submitted("row", made=False, reason="limit", blocked_by=JOB), f"job {JOB} is not final"),
        (Submitted("row", made=False, reason="overlap"), "another job of it is not final"),
        (Submitted("row", made=False, reason="finished"), "its group is finished"),
        (Submitted("row", made=False, reason="shadow"), "shadow"),
    ],
)
def test_the_log_says_why_an_occurrence_gets_no_job(
    answer: Submitted, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    decision = decide(rows.due(NOW, NOW, name="row"), rows.RULES)
    assert isinstance(decision, Decision)

    with caplog.at_level(logging.INFO):
        opened(Queries(answer)).dispatcher.submitter.submit([decision], lease_ends=float("inf"))

    assert [f"Skipped 'row' for {NOW.isoformat()}: {why}"] == caplog.messages
