"""The report thread: a caller never waits for it, and nothing is lost while Postgres is out of reach."""

from __future__ import annotations

import os
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Start, Unstarted, WorkerQueries
from celery_pgbeat.worker.report import report_queue
from celery_pgbeat.worker.report import report_thread as module
from celery_pgbeat.worker.report.report_pipe import ReportPipe
from celery_pgbeat.worker.report.report_queue import AT_ONCE
from celery_pgbeat.worker.report.report_thread import FLUSH_EVERY, ReportThread
from celery_pgbeat.worker.report.reports import Lost, Report, Retry, job_of
from tests.unit.worker.postgres_errors import BAD_VALUE, DISK, MISSING_FUNCTION, NO_RIGHT, refusal

SECONDS = 5.0


class Postgres:
    """Takes reports, or is out of reach; `delivered` has the texts of lost starts, and all other reports."""

    def __init__(self) -> None:
        self.delivered: list[Any] = []
        self.tries = 0
        self.tries_of: Counter[object] = Counter()
        self.statements = 0  # that wrote many reports
        self.away = False
        self.refused: Exception | None = None  # the error of every statement that writes many reports
        self.errors: dict[object, Exception] = {}  # the errors of single reports
        self.pause = 0.0  # seconds that a single report takes
        self.is_busy, self.go_on = threading.Event(), threading.Event()  # around the report "busy"
        self._changed = threading.Condition()

    def take(self, reports: list[Any], error: Exception | None) -> None:
        with self._changed:
            self.tries += 1
            self.tries_of.update(reports)
            self._changed.notify_all()
            if self.away:
                raise DatabaseUnavailable("Postgres is not usable:")
            if error:
                raise error
            self.delivered += reports

    def give_up_start(self, start: Start, error: str) -> None:
        if error == "busy":
            self.is_busy.set()
            assert self.go_on.wait(SECONDS)
            return
        threading.Event().wait(self.pause)
        self.take([error], self.errors.get(error))

    def retry(self, start: Start, delay: timedelta, error: str) -> None:
        self.take([Retry(start, delay, error)], None)

    def finish_many(self, finishes: list[Any]) -> set[uuid.UUID]:
        self.take(finishes, self.refused)
        self.statements += 1
        return set()

    end_unstarted_many = finish_many

    def wait(self, until: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(until, SECONDS)


def report(text: object, job: uuid.UUID | None = None) -> Report:
    """Return a report with this text, of a job of its own or of this one."""
    return Lost(Start(job or uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), cast(str, text))


class Duty:
    def __init__(self, name: str = "", every: float = 0.01) -> None:
        self.every = every
        self.name = name

    def run(self, queries: Any) -> None:
        queries.take([f"{self.name}run"], None)

    def shutdown(self, queries: Any) -> None:
        queries.take([f"{self.name}end"], None)


def ended() -> Finish:
    """Have a job end."""
    return Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")


def keep_busy(report_thread: ReportThread, postgres: Postgres) -> None:
    """Have the thread wait in a statement until `postgres.go_on` is set."""
    report_thread.put(report("busy"))
    assert postgres.is_busy.wait(SECONDS)


def dropped(state: str = "expired") -> Unstarted:
    """Have a message of a job be dropped."""
    return Unstarted(MessageCopy(uuid.uuid4(), 0, 0), state, "node")


@pytest.fixture
def report_pipe() -> Iterator[ReportPipe]:
    made = ReportPipe()
    yield made
    made.close()


@pytest.fixture
def postgres() -> Postgres:
    return Postgres()


@pytest.fixture
def report_thread(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportThread]:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(report_queue, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(report_queue, "LONGEST_PAUSE", 0.02)
    made = ReportThread(cast(WorkerQueries, postgres))
    yield made
    postgres.away = False
    made.stop(SECONDS)


def test_reports_arrive_in_order_and_at_once(report_thread: ReportThread, postgres: Postgres) -> None:
    for number in range(100):
        report_thread.put(report(number))
    postgres.wait(lambda: len(postgres.delivered) == 100)
    assert list(range(100)) == postgres.delivered


def test_nothing_is_lost_while_postgres_is_away(report_thread: ReportThread, postgres: Postgres) -> None:
    postgres.away = True
    for number in range(3):
        report_thread.put(report(number))
    postgres.wait(lambda: postgres.tries > 10)
    postgres.away = False
    postgres.wait(lambda: len(postgres.delivered) == 3)
    assert [0, 1, 2] == postgres.delivered


def test_an_outage_is_logged_once_and_its_end_too(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    postgres.away = True
    report_thread.put(report("x"))
    postgres.wait(lambda: postgres.tries > 5)
    postgres.away = False
    postgres.wait(lambda: bool(postgres.delivered))
    report_thread.stop(SECONDS)
    assert 1 == caplog.text.count("Reports of this worker wait")
    assert 1 == caplog.text.count("Postgres is back")


def test_a_report_that_postgres_refuses_is_dropped_and_the_next_one_delivered(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.errors["poison"] = ValueError("poison")
    poison = report("poison")
    report_thread.put(poison)
    report_thread.put(report("next"))
    postgres.wait(lambda: postgres.delivered == ["next"])
    assert f"The report of job {job_of(poison)} cannot be written and is dropped" in caplog.text


def test_a_caller_never_waits_for_a_statement(report_thread: ReportThread, postgres: Postgres) -> None:
    keep_busy(report_thread, postgres)
    before = monotonic()
    report_thread.put(report("x"))
    assert monotonic() - before < 1
    postgres.go_on.set()


def test_stopping_writes_the_reports_that_wait(report_thread: ReportThread, postgres: Postgres) -> None:
    report_thread.put(report("last"))
    report_thread.stop(SECONDS)
    assert ["last"] == postgres.delivered


def test_stopping_without_postgres_ends_in_time_and_logs_how_many_reports_are_lost(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    report_thread.put(report("x"))
    before = monotonic()
    report_thread.stop(0.2)
    assert monotonic() - before < 2
    assert "1 reports of this worker are lost" in caplog.text


def test_duties_run_beside_reports_and_are_shut_down(postgres: Postgres) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Duty())
    report_thread.start()
    postgres.wait(lambda: postgres.delivered.count("run") >= 3)
    report_thread.put(report("x"))
    postgres.wait(lambda: "x" in postgres.delivered)
    report_thread.stop(SECONDS)
    assert "end" == postgres.delivered[-1]


def test_each_of_several_duties_has_its_own_interval(postgres: Postgres) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Duty("often-"), Duty("seldom-", every=60))
    report_thread.start()
    postgres.wait(lambda: postgres.delivered.count("often-run") >= 3)
    report_thread.stop(SECONDS)
    assert 1 == postgres.delivered.count("seldom-run")
    assert ["often-end", "seldom-end"] == postgres.delivered[-2:]


def test_a_report_thread_without_a_report_is_not_started(report_thread: ReportThread) -> None:
    before = threading.active_count()
    report_thread.stop(SECONDS)
    assert before == threading.active_count()


def test_a_lone_finish_is_written_without_delay_and_those_of_a_busy_worker_together(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    told = [ended() for _ in range(200)]
    before = monotonic()
    report_thread.put(told[0])
    postgres.wait(lambda: postgres.delivered == told[:1])
    for finish in told[1:]:
        report_thread.put(finish)
    postgres.wait(lambda: postgres.delivered == told)
    assert postgres.statements <= 2 + (monotonic() - before) / FLUSH_EVERY


def test_the_finishes_of_other_processes_are_written_too(postgres: Postgres, report_pipe: ReportPipe) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    report_thread.start()
    told = [ended() for _ in range(3)]
    child = os.fork()
    if child == 0:
        os._exit(0 if all(report_pipe.send(finish) for finish in told) else 1)
    assert 0 == os.waitpid(child, 0)[1]
    postgres.wait(lambda: postgres.delivered == told)
    report_thread.stop(SECONDS)


@pytest.mark.parametrize("kind", ["finish", "retry"])
def test_a_jobs_own_report_is_written_before_the_news_of_its_process_death(
    postgres: Postgres, report_pipe: ReportPipe, kind: str
) -> None:
    """Also if the thread is busy when the process sends its report, and takes in the report of the death first."""
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    keep_busy(report_thread, postgres)
    finish = ended()
    own = finish if kind == "finish" else Retry(finish.start, timedelta(seconds=90), "ValueError: no")
    report_thread.put(report("another job's"))
    report_pipe.send(own)
    report_thread.put(report("dead", finish.start.job))
    postgres.go_on.set()
    postgres.wait(lambda: len(postgres.delivered) == 3)
    assert postgres.delivered.index(own) < postgres.delivered.index("dead")
    report_thread.stop(SECONDS)


def test_finishes_wait_for_postgres_and_count_as_unwritten_meanwhile(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    postgres.away = True
    told = [ended(), ended()]
    for finish in told:
        report_thread.put(finish)
    postgres.wait(lambda: postgres.tries > 5)
    assert [finish.start for finish in told] == report_thread.unwritten()
    postgres.away = False
    postgres.wait(lambda: postgres.delivered == told)


def test_stopping_writes_the_finishes_of_both_processes(postgres: Postgres, report_pipe: ReportPipe) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Duty(every=60), report_pipe=report_pipe)
    report_thread.put(ended())
    postgres.wait(lambda: len(postgres.delivered) == 2)
    told = [ended(), ended()]
    report_pipe.send(told[0])
    report_thread.put(told[1])
    report_thread.stop(SECONDS)
    assert set(told) == set(postgres.delivered[2:-1])
    assert "end" == postgres.delivered[-1]


def test_stopping_without_postgres_logs_how_many_finishes_are_lost(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    report_thread.put(ended())
    report_thread.stop(0.2)
    assert "1 reports of this worker are lost" in caplog.text


def test_reports_that_were_queued_before_a_stop_are_written_even_if_the_thread_was_busy(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    keep_busy(report_thread, postgres)
    finish = ended()
    report_thread.put(finish)
    report_thread.put(report("last"))
    threading.Timer(0.1, postgres.go_on.set).start()
    report_thread.stop(SECONDS)
    assert [finish, "last"] == postgres.delivered


def test_a_report_that_is_queued_after_a_stop_is_written_too(report_thread: ReportThread, postgres: Postgres) -> None:
    report_thread.put(report("last"))
    report_thread.stop(SECONDS)
    report_thread.put(report("after all"))
    postgres.wait(lambda: postgres.delivered == ["last", "after all"])


# Duties come before reports


def test_duties_run_in_time_while_many_reports_wait(report_thread: ReportThread, postgres: Postgres) -> None:
    """Each report takes a hundredth of a second, and the duty is due after a twentieth."""
    postgres.pause = 0.01
    made = ReportThread(cast(WorkerQueries, postgres), Duty(every=0.05))
    for _ in range(100):
        made.put(report("report"))
    postgres.wait(lambda: postgres.delivered.count("report") == 100)
    made.stop(SECONDS)
    assert "run" == postgres.delivered[0]
    last = len(postgres.delivered) - 1 - postgres.delivered[::-1].index("report")
    assert postgres.delivered[:last].count("run") >= 5


def test_a_duty_that_fails_delays_no_report_and_no_other_duty(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Duty):
        def run(self, queries: Any) -> None:
            raise KeyError("broken")

    report_thread = ReportThread(cast(WorkerQueries, postgres), Broken(), Duty())
    for number in range(3):
        report_thread.put(report(number))
    postgres.wait(lambda: postgres.delivered.count("run") >= 5 and 2 in postgres.delivered)
    report_thread.stop(SECONDS)
    assert [0, 1, 2] == [word for word in postgres.delivered if isinstance(word, int)]
    assert 1 == caplog.text.count("A periodic duty of this worker fails")


def test_finishes_are_written_between_the_reports_that_wait(postgres: Postgres, report_pipe: ReportPipe) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    postgres.pause, told = 0.01, ended()
    for number in range(100):
        report_thread.put(report(number))
    postgres.wait(lambda: 5 in postgres.delivered)
    report_pipe.send(told)
    postgres.wait(lambda: told in postgres.delivered)
    assert 99 not in postgres.delivered
    report_thread.stop(SECONDS)


# Jobs whose messages were dropped


def test_jobs_whose_messages_were_dropped_end_many_in_one_statement(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    keep_busy(report_thread, postgres)
    told = [dropped() for _ in range(2 * AT_ONCE)]
    for end in told:
        report_thread.put(end)
    postgres.go_on.set()
    postgres.wait(lambda: len(postgres.delivered) == len(told))
    assert told == postgres.delivered
    assert 2 == postgres.statements


def test_dropped_messages_keep_their_place_among_the_other_reports(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    keep_busy(report_thread, postgres)
    first, second = dropped(), dropped("revoked")
    words: list[Any] = ["before", first, second, "after"]
    for word in words:
        report_thread.put(word if isinstance(word, Unstarted) else report(word))
    postgres.go_on.set()
    postgres.wait(lambda: len(postgres.delivered) == 4)
    assert words == postgres.delivered


# What Postgres refuses


@pytest.mark.parametrize("code", [MISSING_FUNCTION, NO_RIGHT, DISK])
def test_a_report_that_may_pass_later_is_kept_and_delays_no_other(
    report_thread: ReportThread, postgres: Postgres, code: str
) -> None:
    postgres.errors["kept"] = refusal(code)
    report_thread.put(report("kept"))
    report_thread.put(other := dropped())
    postgres.wait(lambda: postgres.delivered == [other] and postgres.tries_of["kept"] > 3)
    postgres.errors.clear()
    postgres.wait(lambda: postgres.delivered == [other, "kept"])


def test_a_report_that_a_lock_or_a_time_out_ended_is_kept_and_delays_no_other(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    postgres.errors["kept"] = DatabaseBusy("Postgres ended a statement: lock timeout.")
    report_thread.put(report("kept"))
    report_thread.put(report("other"))
    postgres.wait(lambda: postgres.delivered == ["other"] and postgres.tries_of["kept"] > 3)
    postgres.errors.clear()
    postgres.wait(lambda: postgres.delivered == ["other", "kept"])


def test_a_value_that_postgres_can_never_take_is_dropped(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.errors["never"] = refusal(BAD_VALUE)
    report_thread.put(report("never"))
    report_thread.put(report("other"))
    postgres.wait(lambda: postgres.delivered == ["other"])
    report_thread.stop(SECONDS)
    assert 1 == postgres.tries_of["never"]
    assert "cannot be written and is dropped" in caplog.text


def test_later_reports_of_a_job_wait_for_its_report_that_is_kept(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    end, other = dropped(), dropped()
    job = end.copy.job
    postgres.errors["first"] = refusal(DISK)
    for one in (report("first", job), end, report("third", job), other):
        report_thread.put(one)
    postgres.wait(lambda: postgres.tries_of["first"] > 3)
    assert [other] == postgres.delivered
    postgres.errors.clear()
    postgres.wait(lambda: postgres.delivered == [other, "first", end, "third"])


def test_the_report_of_a_death_waits_while_the_finish_of_its_start_is_refused(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    postgres.refused = refusal(MISSING_FUNCTION)
    finish = ended()
    report_thread.put(finish)
    report_thread.put(report("dead", finish.start.job))
    postgres.wait(lambda: postgres.tries > 3)
    assert [] == postgres.delivered
    assert [finish.start] == report_thread.unwritten(), "and the heartbeat goes on naming it"
    postgres.refused = None
    postgres.wait(lambda: postgres.delivered == [finish, "dead"])


def test_refusals_are_logged_once_with_the_way_out_and_their_end_too(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    postgres.refused = refusal(MISSING_FUNCTION)
    for _ in range(20):
        report_thread.put(ended())
    postgres.wait(lambda: postgres.tries > 5)
    postgres.refused = None
    postgres.wait(lambda: len(postgres.delivered) == 20)
    report_thread.stop(SECONDS)
    assert 1 == caplog.text.count("Postgres refuses reports of this worker")
    assert "function pgbeat.finish_many does not exist. Kept and tried again:" in caplog.text
    assert "run `celery-pgbeat migrate`" in caplog.text
    assert 1 == caplog.text.count("Postgres accepts the reports of this worker again")


def test_stopping_tries_what_is_refused_once_more(postgres: Postgres) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres))
    postgres.refused = refusal(MISSING_FUNCTION)
    finish = ended()
    report_thread.put(finish)
    postgres.wait(lambda: postgres.tries == 1)
    postgres.refused = None
    report_thread.stop(SECONDS)
    assert [finish] == postgres.delivered


def test_stopping_while_reports_are_refused_logs_how_many_are_lost_and_signs_off(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Duty(every=60))
    postgres.refused = refusal(MISSING_FUNCTION)
    report_thread.put(ended())
    report_thread.stop(0.2)
    assert "Postgres did not take all reports: 1 reports of this worker are lost" in caplog.text
    assert "end" == postgres.delivered[-1]
