"""The finishes that are not written yet: when they are written, and what becomes of those that cannot be."""

from __future__ import annotations

import uuid
from typing import cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.reports import Finish, Reports, Start
from celery_pgbeat.worker import finishes as module
from celery_pgbeat.worker.finishes import AT_ONCE, LINGER, LOCKED_PAUSE, Finishes


class Postgres:
    """Takes finishes, many in one statement; some rows are locked, some finishes it refuses."""

    def __init__(self) -> None:
        self.statements: list[list[Finish]] = []
        self.locked: set[uuid.UUID] = set()
        self.poison: Finish | None = None
        self.away = False

    def finish_many(self, finishes: list[Finish]) -> set[uuid.UUID]:
        if self.away:
            raise DatabaseUnavailable("away")
        if self.poison in finishes:
            raise ValueError("poison")
        self.statements.append([finish for finish in finishes if finish.start.job not in self.locked])
        return {finish.start.job for finish in finishes} & self.locked


class World:
    """A clock that stands still, a Postgres, and what is to be written to it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.postgres = Postgres()
        self.finishes = Finishes()

    def ended(self) -> Finish:
        """Have a job end."""
        finish = Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")
        self.finishes.add([finish])
        return finish

    def write(self, *, all_of_them: bool = False) -> list[list[Finish]]:
        """Write what is due; return the statements."""
        self.postgres.statements.clear()
        self.finishes.write(cast(Reports, self.postgres), all_of_them=all_of_them)
        return [list(statement) for statement in self.postgres.statements]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(module, "monotonic", lambda: made.now)
    return made


def test_a_lone_finish_is_written_at_once(world: World) -> None:
    assert world.finishes.time_left() is None
    finish = world.ended()
    assert 0 == world.finishes.time_left()
    assert [[finish]] == world.write()
    assert world.finishes.time_left() is None
    assert [] == world.write()


def test_what_ends_soon_after_is_written_together_a_moment_later(world: World) -> None:
    world.ended()
    world.write()
    both = [world.ended(), world.ended()]
    assert [] == world.write()
    assert LINGER == pytest.approx(world.finishes.time_left())
    world.now += LINGER
    assert [both] == world.write()


def test_nothing_lingers_where_somebody_waits_for_it(world: World) -> None:
    world.ended()
    world.write()
    finish = world.ended()
    assert [[finish]] == world.write(all_of_them=True)


def test_a_finish_is_late_by_less_than_a_twentieth_of_a_second() -> None:
    assert LINGER < 0.05


def test_what_postgres_did_not_hear_is_kept_and_known_as_unwritten(world: World) -> None:
    world.postgres.away = True
    finish = world.ended()
    with pytest.raises(DatabaseUnavailable):
        world.write()
    assert [finish.start] == world.finishes.starts()
    world.postgres.away = False
    assert [[finish]] == world.write(all_of_them=True)
    assert [] == world.finishes.starts()


def test_a_finish_that_cannot_be_written_takes_no_other_with_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    first, poison, last = (world.ended() for _ in range(3))
    world.postgres.poison = poison
    assert [[first], [last]] == world.write()
    assert not world.finishes
    assert f"The end of job {poison.start.job} could not be reported and is dropped" in caplog.text


def test_a_finish_whose_row_is_locked_stands_in_nobodys_way_and_is_told_again(world: World) -> None:
    stuck, free = world.ended(), world.ended()
    world.postgres.locked = {stuck.start.job}
    assert [[free]] == world.write()
    assert [stuck.start] == world.finishes.starts()
    assert LOCKED_PAUSE == pytest.approx(world.finishes.time_left())
    world.now += LINGER
    other = world.ended()
    assert [[other]] == world.write()
    world.now += LOCKED_PAUSE
    assert [[]] == world.write(), "told again, and locked still"
    world.now += LOCKED_PAUSE
    world.postgres.locked = set()
    assert [[stuck]] == world.write()
    assert not world.finishes


def test_what_has_collected_during_an_outage_is_written_in_statements_of_bounded_length(world: World) -> None:
    for _ in range(AT_ONCE + 1):
        world.ended()
    assert [AT_ONCE, 1] == [len(statement) for statement in world.write()]
