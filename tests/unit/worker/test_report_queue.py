"""The reports that are not written yet: when they are written, and what becomes of those that cannot be."""

from __future__ import annotations

import uuid
from typing import cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Finish, Start, WorkerQueries
from celery_pgbeat.worker.report import refusals
from celery_pgbeat.worker.report import report_queue as module
from celery_pgbeat.worker.report.refusals import Refusals
from celery_pgbeat.worker.report.report_queue import AT_ONCE, FIRST_PAUSE, LOCKED_PAUSE, LONGEST_PAUSE, ReportQueue
from celery_pgbeat.worker.report.report_thread import FLUSH_EVERY
from celery_pgbeat.worker.report.reports import Killed, Lost
from tests.unit.worker.postgres_errors import BAD_VALUE, DAMAGED, MISSING_FUNCTION, refusal


class Postgres:
    """Takes finishes, many in one statement; some rows are locked, and it refuses some finishes."""

    def __init__(self) -> None:
        self.statements: list[list[Finish]] = []
        self.locked: set[uuid.UUID] = set()
        self.poison: Finish | None = None
        self.error: Exception = ValueError("poison")
        self.refuses_all = False
        self.away = False
        self.tries = 0
        self.lost: list[Start] = []

    def give_up_start(self, start: Start, error: str) -> bool:
        self.lost.append(start)
        return True

    def finish(self, start: Start, state: str, error: str) -> bool:
        if self.refuses_all:
            raise self.error
        return True

    def finish_many(self, finishes: list[Finish]) -> set[uuid.UUID]:
        self.tries += 1
        if self.away:
            raise DatabaseUnavailable("away")
        if self.refuses_all or self.poison in finishes:
            raise self.error
        self.statements.append([finish for finish in finishes if finish.start.job not in self.locked])
        return {finish.start.job for finish in finishes} & self.locked


class World:
    """A clock that is set, a Postgres, and the finishes that wait."""

    def __init__(self) -> None:
        self.now = 100.0
        self.postgres = Postgres()
        self.finishes = ReportQueue(Refusals(lambda: self.finishes.kept), flush_every=FLUSH_EVERY)

    def ended(self) -> Finish:
        """Have a job end."""
        finish = Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")
        self.finishes.add(finish)
        return finish

    def write(self, *, flush: bool = False) -> list[list[Finish]]:
        """Write what is due; return the statements."""
        self.postgres.statements.clear()
        while self.finishes.write(cast(WorkerQueries, self.postgres), flush=flush):
            pass
        return [list(statement) for statement in self.postgres.statements]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    for used in (module, refusals):
        monkeypatch.setattr(used, "monotonic", lambda: made.now)
    return made


def test_a_lone_finish_is_written_at_once(world: World) -> None:
    assert world.finishes.time_left() is None
    finish = world.ended()
    assert 0 == world.finishes.time_left()
    assert [[finish]] == world.write()
    assert world.finishes.time_left() is None
    assert [] == world.write()


def test_finishes_that_follow_soon_are_written_together_a_moment_later(world: World) -> None:
    world.ended()
    world.write()
    both = [world.ended(), world.ended()]
    assert [] == world.write()
    assert FLUSH_EVERY == pytest.approx(world.finishes.time_left())
    world.now += FLUSH_EVERY
    assert [both] == world.write()


def test_a_flush_writes_at_once(world: World) -> None:
    world.ended()
    world.write()
    finish = world.ended()
    assert [[finish]] == world.write(flush=True)


def test_a_finish_is_late_by_less_than_a_twentieth_of_a_second() -> None:
    assert FLUSH_EVERY < 0.05


def test_a_finish_stays_unwritten_while_postgres_is_out_of_reach(world: World) -> None:
    world.postgres.away = True
    finish = world.ended()
    with pytest.raises(DatabaseUnavailable):
        world.write()
    assert [finish] == world.finishes.unwritten()
    world.postgres.away = False
    assert [[finish]] == world.write(flush=True)
    assert [] == world.finishes.unwritten()


def test_a_finish_that_cannot_be_written_does_not_stop_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    first, poison, last = (world.ended() for _ in range(3))
    world.postgres.poison = poison
    assert [[first], [last]] == world.write()
    assert not world.finishes
    assert f"The report of job {poison.start.job} cannot be written and is dropped" in caplog.text


def test_one_bad_finish_among_many_is_found_in_few_statements(world: World) -> None:
    told = [world.ended() for _ in range(AT_ONCE)]
    world.postgres.poison = told[AT_ONCE // 3]
    assert AT_ONCE - 1 == sum(len(statement) for statement in world.write())
    assert world.postgres.tries < 40


def test_finishes_that_an_older_schema_refuses_are_kept_and_written_after_the_migration(world: World) -> None:
    world.postgres.refuses_all, world.postgres.error = True, refusal(MISSING_FUNCTION)
    told = [world.ended() for _ in range(2 * AT_ONCE)]
    assert [] == world.write()
    assert 1 == world.postgres.tries, "a statement that is refused is not tried for each finish"
    assert told == world.finishes.unwritten()
    world.postgres.refuses_all = False
    world.now += FIRST_PAUSE
    assert told == [finish for statement in world.write() for finish in statement]
    assert not world.finishes


def test_while_a_statement_is_refused_new_finishes_are_not_tried_before_its_next_try(world: World) -> None:
    world.postgres.refuses_all, world.postgres.error = True, refusal(MISSING_FUNCTION)
    first = world.ended()
    world.write()
    second = world.ended()
    world.write()
    assert 1 == world.postgres.tries
    assert {first, second} == set(world.finishes.unwritten())
    assert FIRST_PAUSE == pytest.approx(world.finishes.time_left())


def test_the_pause_between_two_tries_of_what_is_refused_grows_up_to_its_bound(world: World) -> None:
    world.postgres.refuses_all, world.postgres.error = True, refusal(MISSING_FUNCTION)
    world.ended()
    pauses = []
    for _ in range(8):
        world.write()
        pauses.append(world.finishes.time_left() or 0.0)
        world.now += pauses[-1]
    assert sorted(pauses) == pauses
    assert (FIRST_PAUSE, LONGEST_PAUSE) == (pauses[0], pauses[-1])


def test_a_finish_that_hits_a_damaged_page_is_kept_and_the_others_are_written(world: World) -> None:
    bad, good = world.ended(), world.ended()
    world.postgres.poison, world.postgres.error = bad, refusal(DAMAGED)
    assert [[good]] == world.write()
    assert [bad] == world.finishes.unwritten()
    world.postgres.poison = None
    world.now += FIRST_PAUSE
    assert [[bad]] == world.write()


def test_refused_finishes_are_bounded_in_number_and_the_oldest_are_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(refusals, "KEPT", 3)
    world.postgres.refuses_all, world.postgres.error = True, refusal(MISSING_FUNCTION)
    told = [world.ended() for _ in range(5)]
    world.write()
    assert told[2:] == world.finishes.unwritten()
    assert 1 == caplog.text.count("2 refused reports of this worker are dropped")


def test_refused_finishes_are_bounded_in_time(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.postgres.refuses_all, world.postgres.error = True, refusal(MISSING_FUNCTION)
    world.ended()
    world.write()
    world.now += refusals.KEPT_FOR / 2
    young = world.ended()
    world.write()
    world.now += refusals.KEPT_FOR / 2 + 1
    world.write()
    assert [young] == world.finishes.unwritten()
    assert 1 == caplog.text.count("1 refused reports of this worker are dropped")


def test_a_finish_whose_row_is_locked_delays_no_other_and_is_written_again(world: World) -> None:
    stuck, free = world.ended(), world.ended()
    world.postgres.locked = {stuck.start.job}
    assert [[free]] == world.write()
    assert [stuck] == world.finishes.unwritten()
    assert LOCKED_PAUSE == pytest.approx(world.finishes.time_left())
    world.now += FLUSH_EVERY
    other = world.ended()
    assert [[other]] == world.write()
    world.now += LOCKED_PAUSE
    assert [[]] == world.write(), "written again, and still locked"
    world.now += LOCKED_PAUSE
    world.postgres.locked = set()
    assert [[stuck]] == world.write()
    assert not world.finishes


def test_what_has_collected_during_an_outage_is_written_in_statements_of_bounded_length(world: World) -> None:
    for _ in range(AT_ONCE + 1):
        world.ended()
    assert [AT_ONCE, 1] == [len(statement) for statement in world.write()]


def test_a_later_report_of_a_job_waits_while_an_earlier_one_is_kept(world: World) -> None:
    finish, other = world.ended(), world.ended()
    world.postgres.locked = {finish.start.job}
    world.write()
    others = ReportQueue(Refusals(lambda: others.kept), first=world.finishes)
    death, unrelated = Lost(finish.start, "its process died"), Lost(other.start, "its process died")
    others.add(death)
    others.add(unrelated)

    while others.write(cast(WorkerQueries, world.postgres)):
        pass

    assert [unrelated.start] == world.postgres.lost
    assert [death] == others.unwritten()
    world.postgres.locked = set()
    world.now += FIRST_PAUSE
    assert [[finish]] == world.write()
    assert others.write(cast(WorkerQueries, world.postgres))
    assert [unrelated.start, death.start] == world.postgres.lost


def test_a_report_is_done_once_it_is_written_or_dropped_and_not_while_it_is_kept(world: World) -> None:
    queue, done = ReportQueue(Refusals(lambda: queue.kept)), []
    killed = Killed(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "revoked", "x", done=lambda: done.append("done"))
    for error, expected in ((refusal(MISSING_FUNCTION), []), (refusal(BAD_VALUE), ["done"])):
        world.postgres.refuses_all, world.postgres.error = True, error
        queue.add(killed)
        assert queue.write(cast(WorkerQueries, world.postgres))
        assert expected == done
        queue.hurry()
        queue.release_due()
    world.postgres.refuses_all = False
    queue.add(killed)
    assert queue.write(cast(WorkerQueries, world.postgres))
    assert ["done", "done"] == done
