"""A report of a pool process arrives in the main process, even if the process dies; neither waits for the other."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from celery_pgbeat.postgres.worker_queries import Finish, Start
from celery_pgbeat.worker.report.report_pipe import LONGEST, ReportPipe
from tests.harness.wait import eventually


def ended(error: str | None = None) -> Finish:
    """Have a job end."""
    return Finish(Start(uuid.uuid4(), 2, 3, uuid.uuid4(), "host:1:2"), "failed" if error else "succeeded", error)


@pytest.fixture
def report_pipe() -> Iterator[ReportPipe]:
    made = ReportPipe()
    yield made
    made.close()


def in_a_child(do: Callable[[], bool]) -> bool:
    """Do it in a child that exits right after it; return its result."""
    child = os.fork()
    if child == 0:
        os._exit(0 if do() else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_report_of_a_child_arrives_unchanged(report_pipe: ReportPipe) -> None:
    sent = [ended(), ended('ValueError: "ü"\n\U0001f4a5')]
    assert in_a_child(lambda: all(report_pipe.send(finish) for finish in sent))
    assert sent == report_pipe.receive()
    assert [] == report_pipe.receive()


def test_a_report_of_a_child_outlives_it(report_pipe: ReportPipe) -> None:
    finish = ended()

    def send_and_be_killed() -> bool:
        report_pipe.send(finish)
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    assert not in_a_child(send_and_be_killed)
    assert [finish] == report_pipe.receive()


def test_reports_that_children_send_at_the_same_time_do_not_mix(report_pipe: ReportPipe) -> None:
    sent = [[ended("x" * 300) for _ in range(200)] for _ in range(4)]
    children = []
    for finishes in sent:
        child = os.fork()
        if child == 0:
            for finish in finishes:
                while not report_pipe.send(finish):
                    pass
            os._exit(0)
        children.append(child)
    taken: list[Finish] = []

    def all_taken() -> bool:
        taken.extend(report_pipe.receive())
        return len(taken) == 800

    eventually(all_taken, 20, "all messages")
    assert {finish for finishes in sent for finish in finishes} == set(taken)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)


def test_a_full_pipe_refuses_messages_until_it_is_read(report_pipe: ReportPipe) -> None:
    sent = 0
    while report_pipe.send(ended()):
        sent += 1
    assert not report_pipe.send(ended())
    assert sent == len(report_pipe.receive())
    assert report_pipe.send(ended())


def test_a_message_that_is_long_enough_to_mix_with_others_is_refused(report_pipe: ReportPipe) -> None:
    assert not report_pipe.send(ended("x" * LONGEST))
    assert [] == report_pipe.receive()


def test_a_child_whose_main_process_is_gone_is_refused() -> None:
    reader, writer = os.pipe()
    main = os.fork()
    if main == 0:
        report_pipe, myself = ReportPipe(), os.getpid()
        if os.fork() == 0:
            report_pipe.send(ended())
            while os.getppid() == myself:
                time.sleep(0.01)
            os.write(writer, b"taken" if report_pipe.send(ended()) else b"refused")
        os._exit(0)
    os.close(writer)
    assert 0 == os.waitpid(main, 0)[1]
    assert b"refused" == os.read(reader, 10)
    os.close(reader)


def test_it_notifies_when_messages_come_and_ends_when_it_is_closed() -> None:
    report_pipe = ReportPipe()
    notified = threading.Event()
    report_pipe.watch(notified.set)
    watcher = report_pipe._watcher
    assert watcher is not None
    assert not notified.wait(0.05)
    assert report_pipe.send(ended())
    assert notified.wait(5)
    report_pipe.close()
    report_pipe.close()
    watcher.join(5)
    assert not watcher.is_alive()
    assert not report_pipe.send(ended())
