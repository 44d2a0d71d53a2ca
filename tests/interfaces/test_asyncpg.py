"""The caller's own transaction on asyncpg, through SQLAlchemy's `run_sync`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

import asyncpg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from celery_pgbeat.api import PgBeat
from celery_pgbeat.declare import every
from celery_pgbeat.errors import (
    InvalidPeriodicTask,
    JobInTheWay,
    SchemaMissing,
    UnknownBackfill,
    UnknownGroup,
    UnknownPeriodicTask,
)
from celery_pgbeat.postgres.engine import normalise_url

Result = TypeVar("Result")
LONG_AGO = datetime(2026, 4, 1, tzinfo=timezone.utc)


def in_session(beat: PgBeat, use: Callable[[AsyncSession], Awaitable[Result]]) -> Result:
    """Return what a coroutine returns of a session on asyncpg."""

    async def run() -> Result:
        engine = create_async_engine(normalise_url(beat.settings.required_url).set(drivername="postgresql+asyncpg"))
        try:
            async with AsyncSession(engine) as session:
                return await use(session)
        finally:
            await engine.dispose()

    return asyncio.run(run())


def test_a_declaration_on_asyncpg_joins_the_transaction_of_the_caller(beat: PgBeat) -> None:
    columns: dict[str, Any] = {"args": [Decimal(1), "%s $1"], "max_run_time": 1.5, "blackout": "0 0 * * * PT5H"}

    async def use(session: AsyncSession) -> Any:
        declare = lambda sync: beat.schedule("x", "t", every("5m"), connection=sync, **columns)  # noqa: E731
        row = await session.run_sync(declare)
        assert [] == beat.list()
        await session.rollback()
        assert [] == beat.list()
        await session.run_sync(declare)
        await session.commit()
        return row

    row = in_session(beat, use)

    assert [Decimal(1), "%s $1"] == row.args
    assert (timedelta(seconds=1.5), timezone.utc) == (row.max_run_time, row.created_at.tzinfo)
    assert row.args == beat.get("x").args


def test_every_method_works_on_asyncpg(beat: PgBeat) -> None:
    def use_all(sync: Any) -> None:
        many = [
            {"name": "x", "task": "t", "schedule": "@daily", "group_name": "g", "timezone": "UTC", "run_on_start": True}
        ]
        beat.schedule_many(many, connection=sync)
        beat.schedule(
            "x", "t", "@hourly", group_name="g", timezone="UTC", anchor=LONG_AGO, keep_next_run=True, connection=sync
        )
        job = beat.trigger("x", connection=sync)
        assert beat.pause("x", "why", LONG_AGO.replace(year=3000), connection=sync).paused_until is not None
        assert ["x"] == [row.name for row in beat.list(like="?", enabled=False, connection=sync)]
        assert "paused by" in beat.explain("x", connection=sync)
        assert beat.resume("x", connection=sync).enabled
        assert [job] == [one.id for one in beat.jobs("x", "pending", connection=sync)]
        assert [] == beat.upcoming(limit=5, connection=sync), "no beat has planned it"
        assert 2 == len(beat.upcoming("x", limit=2, connection=sync))
        assert 2 == beat.limit_group("g", 2, connection=sync).max_active
        assert beat.pause_group("g", "why", connection=sync).paused
        assert not beat.resume_group("g", connection=sync).paused
        assert [1] == [group.tasks for group in beat.groups(connection=sync)]
        hours = LONG_AGO, LONG_AGO + timedelta(hours=3)
        assert 4 == beat.backfill("x", *hours, dry_run=True, connection=sync).to_submit
        made = beat.backfill("x", *hours, connection=sync)
        assert [made] == beat.backfills("x", "running", id=made.id, connection=sync)
        assert "cancelled" == beat.cancel_backfill(made.id, connection=sync).state
        assert ([], 0) == (beat.nodes(connection=sync), beat.health(connection=sync).beats)
        assert 1 == len(list(beat.export(like="x", connection=sync)))
        assert 2 == len(beat.trigger_many(jobs=[{"name": "x", "args": [1]}] * 2, force=True, connection=sync))
        assert {"x": None} == beat.trigger_many(["x"], connection=sync)
        assert beat.unschedule("x", connection=sync)

    async def use(session: AsyncSession) -> None:
        await session.run_sync(use_all)

    in_session(beat, use)
    assert ([], []) == (beat.list(), beat.jobs())


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda beat, sync: beat.trigger("nobody", connection=sync), UnknownPeriodicTask, "is named 'nobody'"),
        (lambda beat, sync: beat.trigger("x", connection=sync), JobInTheWay, "send one beside it with force"),
        (lambda beat, sync: beat.pause_group("g", connection=sync), UnknownGroup, "'g'"),
        (
            lambda beat, sync: beat.cancel_backfill("00000000-0000-0000-0000-000000000000", connection=sync),
            UnknownBackfill,
            "no backfill",
        ),
        (
            lambda beat, sync: (
                sync.execute(sqlalchemy.text("drop schema pgbeat cascade")) and beat.list(connection=sync)
            ),
            SchemaMissing,
            "run `celery-pgbeat migrate`",
        ),
        (
            lambda beat, sync: (
                beat.schedule("x", "t", "RRULE:FREQ=DAILY", blackout="window: no", connection=sync)
                and beat.backfill("x", LONG_AGO.replace(year=3000), LONG_AGO.replace(year=3001), connection=sync)
            ),
            InvalidPeriodicTask,
            "which is still to come",
        ),
    ],
)
def test_a_refusal_on_asyncpg_is_the_same_error_and_leaves_the_transaction_to_its_owner(
    beat: PgBeat, call: Callable[[PgBeat, Any], Any], error: type[Exception], said: str
) -> None:
    beat.schedule("x", "t", "@daily")
    beat.trigger("x")

    async def use(session: AsyncSession) -> None:
        with pytest.raises(error, match=said) as refused:
            await session.run_sync(lambda sync: call(beat, sync))
        assert "asyncpg" not in str(refused.value)
        await session.rollback()
        await session.run_sync(lambda sync: beat.pause("x", connection=sync))
        await session.commit()

    in_session(beat, use)
    assert not beat.get("x").enabled


def test_an_asynchronous_connection_itself_is_refused_with_the_way_out(beat: PgBeat) -> None:
    async def use(session: AsyncSession) -> None:
        plain = normalise_url(beat.settings.required_url).set(drivername="postgresql")
        own = await asyncpg.connect(plain.render_as_string(hide_password=False))
        for connection in (session, own):
            with pytest.raises(TypeError, match=r"asynchronous: pass SQLAlchemy's synchronous session, inside `await"):
                beat.list(connection=connection)
        await own.close()

    in_session(beat, use)


def test_another_driver_is_refused_by_its_name(beat: PgBeat) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with (
        engine.connect() as connection,
        pytest.raises(TypeError, match="connection uses the driver pysqlite"),
    ):
        beat.list(connection=connection)
    engine.dispose()
