"""The report_thread: never in the way of who reports, nothing lost while Postgres is away."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Retry, Start, Unstarted, WorkerQueries
from celery_pgbeat.worker import end_batch, kept
from celery_pgbeat.worker import report_thread as module
from celery_pgbeat.worker.end_batch import FLUSH_EVERY
from celery_pgbeat.worker.report_pipe import ReportPipe
from celery_pgbeat.worker.report_thread import ReportThread
from tests.unit.worker.postgres_errors import BAD_VALUE, DISK, MISSING_FUNCTION, NO_RIGHT, refusal

SECONDS = 5.0


class Postgres:
    """Takes what is delivered, or is away."""

    def __init__(self) -> None:
        self.delivered: list[Any] = []
        self.tries = 0
        self.statements = 0  # by which finishes were written
        self.away = False
        self.refused: Exception | None = None  # what it says to every finish
        self._heard = threading.Condition()

    def hear(self, word: Any) -> None:
        with self._heard:
            self.tries += 1
            self._heard.notify_all()
            if self.away:
                raise DatabaseUnavailable("Postgres is not usable:")
            if isinstance(word, Exception):
                raise word
            self.delivered.append(word)

    def finish_many(self, finishes: list[Finish]) -> set[uuid.UUID]:
        with self._heard:
            self.tries += 1
            self._heard.notify_all()
            if self.away:
                raise DatabaseUnavailable("Postgres is not usable:")
            if self.refused:
                raise self.refused
            self.delivered += finishes
            self.statements += 1
        return set()

    def end_unstarted_many(self, told: list[Unstarted]) -> set[uuid.UUID]:
        return self.finish_many(cast(list[Finish], told))

    def wait(self, until: Callable[[], bool]) -> None:
        with self._heard:
            assert self._heard.wait_for(until, SECONDS)

    def report(self, word: Any) -> Callable[[WorkerQueries], object]:
        return lambda reports: cast(Postgres, reports).hear(word)


class Rounds:
    def __init__(self, word: str = "", every: float = 0.01) -> None:
        self.every = every
        self.word = word

    def run(self, reports: Any) -> None:
        reports.hear(f"{self.word}round")

    def shutdown(self, reports: Any) -> None:
        reports.hear(f"{self.word}end")


def ended() -> Finish:
    """Have a job end."""
    return Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")


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
    for waiting in (end_batch, kept):
        monkeypatch.setattr(waiting, "FIRST_PAUSE", 0.01)
        monkeypatch.setattr(waiting, "LONGEST_PAUSE", 0.02)
    made = ReportThread(cast(WorkerQueries, postgres))
    yield made
    postgres.away = False
    made.stop(SECONDS)


def test_reports_arrive_in_order_and_at_once(report_thread: ReportThread, postgres: Postgres) -> None:
    for number in range(100):
        report_thread.put(postgres.report(number))
    postgres.wait(lambda: len(postgres.delivered) == 100)
    assert list(range(100)) == postgres.delivered


def test_nothing_is_lost_while_postgres_is_away(report_thread: ReportThread, postgres: Postgres) -> None:
    postgres.away = True
    for number in range(3):
        report_thread.put(postgres.report(number))
    postgres.wait(lambda: postgres.tries > 10)
    postgres.away = False
    postgres.wait(lambda: len(postgres.delivered) == 3)
    assert [0, 1, 2] == postgres.delivered


def test_an_outage_is_told_once_and_its_end_too(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    postgres.away = True
    report_thread.put(postgres.report("x"))
    postgres.wait(lambda: postgres.tries > 5)
    postgres.away = False
    postgres.wait(lambda: bool(postgres.delivered))
    report_thread.stop(SECONDS)
    assert 1 == caplog.text.count("Reports of this worker wait")
    assert 1 == caplog.text.count("Postgres is back")


def test_a_report_that_postgres_refuses_is_dropped_and_the_next_one_delivered(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    report_thread.put(postgres.report(ValueError("poison")))
    report_thread.put(postgres.report("next"))
    postgres.wait(lambda: postgres.delivered == ["next"])
    assert "A report could not be delivered and is dropped" in caplog.text


def test_who_reports_never_waits(report_thread: ReportThread, postgres: Postgres) -> None:
    stuck = threading.Event()
    report_thread.put(lambda _: stuck.wait(SECONDS))
    before = monotonic()
    report_thread.put(postgres.report("x"))
    assert monotonic() - before < 1
    stuck.set()


def test_stopping_delivers_what_waits(report_thread: ReportThread, postgres: Postgres) -> None:
    report_thread.put(postgres.report("last"))
    report_thread.stop(SECONDS)
    assert ["last"] == postgres.delivered


def test_stopping_without_postgres_ends_in_time_and_says_what_is_lost(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    report_thread.put(postgres.report("x"))
    before = monotonic()
    report_thread.stop(0.2)
    assert monotonic() - before < 2
    assert "1 reports of this worker are lost" in caplog.text


def test_rounds_go_on_beside_reports_and_are_ended(postgres: Postgres) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Rounds())
    report_thread.start()
    postgres.wait(lambda: postgres.delivered.count("round") >= 3)
    report_thread.put(postgres.report("x"))
    postgres.wait(lambda: "x" in postgres.delivered)
    report_thread.stop(SECONDS)
    assert "end" == postgres.delivered[-1]


def test_each_of_several_rounds_has_its_own_time(postgres: Postgres) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Rounds("often-"), Rounds("seldom-", every=60))
    report_thread.start()
    postgres.wait(lambda: postgres.delivered.count("often-round") >= 3)
    report_thread.stop(SECONDS)
    assert 1 == postgres.delivered.count("seldom-round")
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


def test_what_a_process_has_told_comes_before_the_report_of_its_death(
    postgres: Postgres, report_pipe: ReportPipe
) -> None:
    """However late its letter is found: the thread is busy when it is posted, and then finds the report first."""
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: WorkerQueries) -> None:
        busy.set()
        go_on.wait(SECONDS)

    report_thread.put(be_busy)
    assert busy.wait(SECONDS)
    before, told = ended(), ended()
    report_thread.put(before)
    report_pipe.send(told)
    report_thread.put(postgres.report("dead"))
    go_on.set()
    postgres.wait(lambda: postgres.delivered == [before, told, "dead"])
    report_thread.stop(SECONDS)


def test_a_retry_that_a_process_has_told_comes_before_the_report_of_its_death(
    postgres: Postgres, report_pipe: ReportPipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    done = threading.Event()
    monkeypatch.setattr(WorkerQueries, "retry", lambda _, **said: heard.append(said))
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: WorkerQueries) -> None:
        busy.set()
        go_on.wait(SECONDS)

    report_thread.put(be_busy)
    assert busy.wait(SECONDS)
    told = Retry(ended().start, timedelta(seconds=90), "ValueError: no")
    report_thread.put(lambda _: (heard.append("dead"), done.set()), told.start.job)
    report_pipe.send(told)
    go_on.set()
    assert done.wait(SECONDS)
    report_thread.stop(SECONDS)
    assert [{"start": told.start, "delay": told.delay, "error": told.error}, "dead"] == heard


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


def test_stopping_writes_what_has_ended_and_what_has_just_been_told(
    postgres: Postgres, report_pipe: ReportPipe
) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Rounds(every=60), report_pipe=report_pipe)
    report_thread.put(ended())
    postgres.wait(lambda: len(postgres.delivered) == 2)
    told = [ended(), ended()]
    report_pipe.send(told[0])
    report_thread.put(told[1])
    report_thread.stop(SECONDS)
    assert set(told) == set(postgres.delivered[2:-1])
    assert "end" == postgres.delivered[-1]


def test_stopping_without_postgres_says_how_many_finishes_are_lost(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    report_thread.put(ended())
    report_thread.stop(0.2)
    assert "1 reports of this worker are lost" in caplog.text


def test_what_was_queued_before_a_stop_is_written_however_busy_the_thread_was(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: WorkerQueries) -> None:
        busy.set()
        go_on.wait(SECONDS)

    report_thread.put(be_busy)
    assert busy.wait(SECONDS)
    finish = ended()
    report_thread.put(finish)
    report_thread.put(postgres.report("last"))
    threading.Timer(0.1, go_on.set).start()
    report_thread.stop(SECONDS)
    assert [finish, "last"] == postgres.delivered


def test_what_is_left_after_a_stop_is_delivered_all_the_same(report_thread: ReportThread, postgres: Postgres) -> None:
    report_thread.put(postgres.report("last"))
    report_thread.stop(SECONDS)
    report_thread.put(postgres.report("after all"))
    postgres.wait(lambda: postgres.delivered == ["last", "after all"])


# The rounds before all else


def test_rounds_are_made_in_time_however_many_reports_wait(report_thread: ReportThread, postgres: Postgres) -> None:
    """Each report takes a hundredth of a second, and a round is due after a twentieth."""
    pause = threading.Event()
    made = ReportThread(cast(WorkerQueries, postgres), Rounds(every=0.05))
    for _ in range(100):
        made.put(lambda reports: (pause.wait(0.01), cast(Postgres, reports).hear("report")))
    postgres.wait(lambda: postgres.delivered.count("report") == 100)
    made.stop(SECONDS)
    assert "round" == postgres.delivered[0]
    last = len(postgres.delivered) - 1 - postgres.delivered[::-1].index("report")
    assert postgres.delivered[:last].count("round") >= 5


def test_a_round_that_fails_keeps_no_report_and_no_other_round_waiting(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Rounds):
        def run(self, reports: Any) -> None:
            raise KeyError("broken")

    report_thread = ReportThread(cast(WorkerQueries, postgres), Broken(), Rounds())
    for number in range(3):
        report_thread.put(postgres.report(number))
    postgres.wait(lambda: postgres.delivered.count("round") >= 5 and 2 in postgres.delivered)
    report_thread.stop(SECONDS)
    assert [0, 1, 2] == [word for word in postgres.delivered if isinstance(word, int)]
    assert 1 == caplog.text.count("A periodic duty of this worker fails")


def test_what_has_ended_meanwhile_is_written_between_the_reports_that_wait(
    postgres: Postgres, report_pipe: ReportPipe
) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), report_pipe=report_pipe)
    pause, told = threading.Event(), ended()
    for number in range(100):
        report_thread.put(lambda reports, number=number: (pause.wait(0.01), cast(Postgres, reports).hear(number)))
    postgres.wait(lambda: 5 in postgres.delivered)
    report_pipe.send(told)
    postgres.wait(lambda: told in postgres.delivered)
    assert 99 not in postgres.delivered
    report_thread.stop(SECONDS)


# Jobs whose messages were dropped


def test_jobs_whose_messages_were_dropped_end_many_in_one_statement(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: WorkerQueries) -> None:
        busy.set()
        go_on.wait(SECONDS)

    report_thread.put(be_busy)
    assert busy.wait(SECONDS)
    told = [dropped() for _ in range(2 * end_batch.AT_ONCE)]
    for end in told:
        report_thread.put(end, end.copy.job)
    go_on.set()
    postgres.wait(lambda: len(postgres.delivered) == len(told))
    assert told == postgres.delivered
    assert 2 == postgres.statements


def test_dropped_messages_keep_their_place_among_the_other_reports(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: WorkerQueries) -> None:
        busy.set()
        go_on.wait(SECONDS)

    report_thread.put(be_busy)
    assert busy.wait(SECONDS)
    first, second = dropped(), dropped("revoked")
    words: list[Any] = ["before", first, second, "after"]
    for word in words:
        report_thread.put(word if isinstance(word, Unstarted) else postgres.report(word))
    go_on.set()
    postgres.wait(lambda: len(postgres.delivered) == 4)
    assert words == postgres.delivered


# What Postgres refuses


class Refusing:
    """A report that Postgres refuses until it is mended."""

    def __init__(self, postgres: Postgres, word: str, error: Exception) -> None:
        self.postgres, self.word = postgres, word
        self.error: Exception | None = error
        self.tries = 0

    def __call__(self, _: WorkerQueries) -> None:
        self.tries += 1
        self.postgres.hear(self.error or self.word)


@pytest.mark.parametrize("code", [MISSING_FUNCTION, NO_RIGHT, DISK])
def test_a_report_that_may_pass_later_is_kept_and_delays_no_other(
    report_thread: ReportThread, postgres: Postgres, code: str
) -> None:
    report = Refusing(postgres, "kept", refusal(code))
    report_thread.put(report, uuid.uuid4())
    report_thread.put(postgres.report("other"), uuid.uuid4())
    postgres.wait(lambda: postgres.delivered == ["other"] and report.tries > 3)
    report.error = None
    postgres.wait(lambda: postgres.delivered == ["other", "kept"])


def test_a_report_that_a_lock_or_a_time_out_ended_is_kept_and_delays_no_other(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    report = Refusing(postgres, "kept", DatabaseBusy("Postgres ended a statement: lock timeout."))
    report_thread.put(report, uuid.uuid4())
    report_thread.put(postgres.report("other"), uuid.uuid4())
    postgres.wait(lambda: postgres.delivered == ["other"] and report.tries > 3)
    report.error = None
    postgres.wait(lambda: postgres.delivered == ["other", "kept"])


def test_a_value_that_postgres_can_never_take_is_dropped(
    report_thread: ReportThread, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    report = Refusing(postgres, "never", refusal(BAD_VALUE))
    report_thread.put(report, uuid.uuid4())
    report_thread.put(postgres.report("other"), uuid.uuid4())
    postgres.wait(lambda: postgres.delivered == ["other"])
    report_thread.stop(SECONDS)
    assert 1 == report.tries
    assert "A report could not be delivered and is dropped" in caplog.text


def test_later_reports_of_a_job_wait_for_its_report_that_is_kept(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    job, end = uuid.uuid4(), dropped()
    first = Refusing(postgres, "first", refusal(MISSING_FUNCTION))
    report_thread.put(first, job)
    report_thread.put(end, job)
    report_thread.put(postgres.report("third"), job)
    report_thread.put(postgres.report("other"), uuid.uuid4())
    postgres.wait(lambda: first.tries > 3)
    assert ["other"] == postgres.delivered
    first.error = None
    postgres.wait(lambda: postgres.delivered == ["other", "first", end, "third"])


def test_the_report_of_a_death_waits_while_the_finish_of_its_start_is_refused(
    report_thread: ReportThread, postgres: Postgres
) -> None:
    postgres.refused = refusal(MISSING_FUNCTION)
    finish = ended()
    report_thread.put(finish)
    report_thread.put(postgres.report("dead"), finish.start.job)
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


def test_stopping_while_reports_are_refused_says_how_many_are_lost_and_signs_off(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    report_thread = ReportThread(cast(WorkerQueries, postgres), Rounds(every=60))
    postgres.refused = refusal(MISSING_FUNCTION)
    report_thread.put(ended())
    report_thread.stop(0.2)
    assert "Postgres did not take all reports: 1 reports of this worker are lost" in caplog.text
    assert "end" == postgres.delivered[-1]
