"""What is remembered of unsent jobs, by two threads at once."""

from __future__ import annotations

import threading
import uuid
from datetime import datetime, timezone

import pytest

from celery_pgbeat.measures import counting
from celery_pgbeat.measures.counting import DueAts

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


def test_the_oldest_make_way_and_what_is_taken_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_UNSENT", 2)
    due_ats, jobs = DueAts(), [uuid.uuid4() for _ in range(3)]
    due_ats.add(dict.fromkeys(jobs, NOON))

    assert [None, NOON, NOON] == due_ats.take(jobs)
    assert [None, None, None] == due_ats.take(jobs)


def test_one_thread_takes_while_another_makes_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(dict[uuid.UUID, datetime]):
        """Lets the other thread in between the look at the oldest and its removal."""

        def __delitem__(self, job: uuid.UUID) -> None:
            removing.set()
            taken.wait(0.2)
            super().__delitem__(job)

    monkeypatch.setattr(counting, "MOST_UNSENT", 0)
    removing, taken = threading.Event(), threading.Event()
    due_ats, job = DueAts(), uuid.uuid4()
    due_ats._known = Slow()

    def take() -> None:
        assert removing.wait(10)
        due_ats.take([job])
        taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    due_ats.add({job: NOON})
    thread.join()
    assert 0 == len(due_ats)
