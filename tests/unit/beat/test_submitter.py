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
    """Statements that submit one decision, with this answer, by the long statement."""

    def __init__(self, answer: Submitted) -> None:
        self.answer = answer

    def submit_free(self, _decisions: Sequence[Decision], *_: Any) -> list[Submitted]:
        return []

    def submit(self, _decisions: Sequence[Decision], *_: Any, **_named: Any) -> list[Submitted]:
        return [self.answer]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Submitted("row", False, False, JOB, None), f"job {JOB} is not final"),
        (Submitted("row", False, False, None, None), "another job of it is not final"),
        (Submitted("row", False, False, None, None, finished_group="g"), "its group 'g' is finished"),
        (Submitted("row", False, False, None, None, in_shadow=True), "shadow"),
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
