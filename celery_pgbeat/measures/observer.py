"""The events of a beat that are measured: one method for each, called where the beat has run the statement.

An event tells what Postgres or the broker returned, so what Postgres has not confirmed is never counted. Four of them
surround what is measured, because a span needs to know how long it took and whether it failed.

The thread that runs the cycles, that of the delivery and that of the confirms all call these methods.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery_pgbeat.beat.send.messages import OutgoingJob
    from celery_pgbeat.beat.send.publisher import Published
    from celery_pgbeat.planning import Decision
    from celery_pgbeat.postgres.beat_queries import Judged, Marked, Recovered, Submitted

    Measured = AbstractContextManager[None]
    SentJobs = Sequence[tuple[uuid.UUID, float]]

NOT_MEASURED: Measured = nullcontext()


class Observer:
    """Ignores every event; a subclass overrides those that it measures.

    `began` is the time before the statement, in nanoseconds since the epoch.
    """

    def looked(self) -> None:
        """The cycle has read the pending work. It has submitted all that it had marked before."""

    def marked(self, rows: Marked, began: int) -> None:
        """Rows were marked or submitted at once, perhaps none."""

    def submitting(self, decisions: Sequence[Decision], answers: list[Submitted]) -> Measured:  # noqa: ARG002
        """Surround a submit, which fills `answers`."""
        return NOT_MEASURED

    def publishing(self, jobs: Sequence[OutgoingJob], driver: str, published: Published) -> Measured:  # noqa: ARG002
        """Surround the publish of a batch through a kombu transport of this driver type; it fills `published`."""
        return NOT_MEASURED

    def sending(self, job: uuid.UUID) -> Measured:  # noqa: ARG002
        """Surround Celery's own `apply_async` of one job."""
        return NOT_MEASURED

    def confirming(self, sent: SentJobs, locked: set[uuid.UUID]) -> Measured:  # noqa: ARG002
        """Surround a confirm, which puts the jobs whose rows another transaction locks into `locked`."""
        return NOT_MEASURED

    def recovered(self, rows: Sequence[Recovered], began: int) -> None:
        """Jobs were taken over, perhaps none."""

    def judged(self, jobs: Sequence[Judged]) -> None:
        """Jobs past their deadline were judged."""

    def refused(self, jobs: Sequence[uuid.UUID], lost: int) -> None:
        """Jobs were recorded as refused; for `lost` of them it was the third time."""

    def skipped(self, jobs: Sequence[uuid.UUID], reason: str, count: int) -> None:
        """Jobs were recorded as skipped: `count` of them, those that this beat still had marked."""

    def settled(self, jobs: Sequence[uuid.UUID]) -> None:
        """Jobs have left this beat without a message: given back, delayed, or ended in the beat itself."""


EVENTS = [name for name in vars(Observer) if not name.startswith("_")]


def all_of(observers: Sequence[Observer]) -> Observer:
    """Return one observer that passes each event on to all of these."""
    if len(observers) == 1:
        return observers[0]
    together = Observer()
    for event in EVENTS if observers else ():
        setattr(together, event, partial(_pass_on, [getattr(one, event) for one in observers]))
    return together


def _pass_on(methods: Sequence[Callable[..., Measured | None]], *given: Any) -> Measured:
    returned = [method(*given) for method in methods]
    return _entered([one for one in returned if one is not None])


@contextmanager
def _entered(contexts: Sequence[Measured]) -> Iterator[None]:
    with ExitStack() as stack:
        for one in contexts:
            stack.enter_context(one)
        yield
