"""A FastAPI app that stores a reminder with each order, and the Celery app that runs it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from celery import Celery
from fastapi import FastAPI, HTTPException
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from celery_pgbeat import PgBeat, every
from celery_pgbeat.errors import UnknownPeriodicTask

app = Celery("shop")  # the broker is CELERY_BROKER_URL
app.conf.timezone = "Europe/Berlin"
beat = PgBeat(app)  # the database is PGBEAT_URL

engine = create_async_engine(os.environ["PGBEAT_URL"].replace("postgresql://", "postgresql+asyncpg://"))


class Base(DeclarativeBase):
    """The tables of the shop."""


class Order(Base):
    """An order of a customer."""

    __tablename__ = "order"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str]


@beat.periodic_task(every("10s"), name="poll-inbox", kwargs={"box": "orders"})
@app.task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Run every ten seconds."""
    return f"nothing new in {box}"


@app.task(name="shop.remind")
def remind(order: int) -> str:
    """Run once for an order."""
    return f"A reminder for order {order}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Make the tables, and close the connections at the end."""
    await asyncio.to_thread(beat.migrate)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()
    beat.close()


web = FastAPI(lifespan=lifespan)


@web.post("/orders")
async def place_order(email: str) -> dict[str, int]:
    """Store an order and its reminder: both are committed, or neither is."""
    async with AsyncSession(engine) as session, session.begin():
        order = Order(email=email)
        session.add(order)
        await session.flush()
        await session.run_sync(
            lambda joined: beat.schedule(
                f"remind-{order.id}",
                task=remind,
                schedule="2099-12-24 08:00",  # once, in the zone of the app
                args=[order.id],
                connection=joined,
            )
        )
        return {"id": order.id}


@web.post("/orders/{order}/remind")
def remind_now(order: int) -> dict[str, UUID]:
    """Send the reminder now. FastAPI runs a plain `def` in a thread, so it may wait for Postgres."""
    try:
        return {"job": beat.trigger(f"remind-{order}")}
    except UnknownPeriodicTask as error:
        raise HTTPException(404, str(error)) from error


@web.get("/schedule")
async def schedule() -> dict[str, str | None]:
    """List what is scheduled. An `async def` calls the API in a thread."""
    rows = await asyncio.to_thread(beat.list)
    return {row.name: row.schedule for row in rows}
