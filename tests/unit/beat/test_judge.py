"""What a beat does about jobs that were silent for too long."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest

from celery_pgbeat.beat.decide.judge import Judge
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.postgres.beat_queries import Judged

JOB = uuid.UUID(int=1)


class Jobs:
    """Statements with silent jobs, and the tracking beside them; both note what was asked of them."""

    workers_track = True

    def __init__(self, *verdicts: Any) -> None:
        self.judged = [Judged(JOB, "row", verdict) for verdict in verdicts]
        self.asked: list[str] = []

    def judge(self, batch: int, workers_track: bool) -> list[Judged]:
        self.asked.append(f"judge {batch} {workers_track}")
        return self.judged

    def finish_by_result(self, batch: int) -> None:
        self.asked.append(f"ask {batch}")


def judge(jobs: Any) -> Judge:
    return Judge(jobs, jobs, Observer())


def test_each_verdict_about_a_silent_job_has_its_own_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="celery_pgbeat.beat.decide.judge")

    assert judge(Jobs("lost", "rerun", "resend")).judge(10, ask_first=False)

    said = [(record.levelname, vars(record)["action"], record.message) for record in caplog.records]
    assert [
        ("WARNING", "lose", f"Lost job {JOB} of 'row': it was silent for too long"),
        ("WARNING", "rerun", f"Job {JOB} of 'row' runs again: it was silent for too long, and on_lost is 'rerun'"),
        ("INFO", "resend", f"Job {JOB} of 'row' is sent again: no worker started it within its pickup deadline"),
    ] == said


def test_the_result_backend_is_asked_before_a_job_is_given_up() -> None:
    jobs, silent = Jobs(), Jobs()

    assert not judge(jobs).judge(10, ask_first=True)
    assert not judge(silent).judge(10, ask_first=False)

    assert (["ask 10", "judge 10 True"], ["judge 10 True"]) == (jobs.asked, silent.asked)
