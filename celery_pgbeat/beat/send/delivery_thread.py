"""The delivery in a thread of its own, so that the next batch is decided while this one waits for the broker.

One batch is under way and one may wait. Nothing is marked while a batch waits: if this beat is killed, jobs that are
submitted and not sent wait for the end of their lease, and the lease of a batch that waits is soon over. Batches are
sent in the order in which they were submitted, each while its own lease lasts.

A batch is all that one mark has led to, which usually comes in up to two parts: what the mark has submitted at once,
and what the submit has. If the submitter keeps decisions and submits them again, their jobs are further parts. All
parts have one lease, which tells them from those of another batch.

There is a *place* for another batch when none waits. The thread that runs the beat's cycles waits for a place only for
a moment: a broker that hangs may delay the batch under way for many seconds, and the cycles write the beat's heartbeat.
They go on without a place, and this thread ends their wait when there is one.

What is sent is confirmed beside this thread (`confirmer.py`), which goes on to the next messages meanwhile.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from celery_pgbeat.beat.send.confirmer import Confirmer, ConfirmFailed, Sent
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.publisher import BATCH
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.process.threads import LastingThread

MOMENT = 0.1  # seconds that a cycle waits for a place: usually the batch that waited has been begun by then


@dataclass(eq=False, repr=False)
class DeliveryThread(Delivery):
    """Delivers batches in the order of their submits; each of the next cycles raises one error, if there was any.

    Args:
        wake: ends the wait of the thread that runs the cycles.
    """

    _wake: Callable[[], None]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._batches: queue.SimpleQueue[tuple[Sequence[OutgoingJob], float] | None] = queue.SimpleQueue()
        self._begun = threading.Event()  # set when every batch has been begun, so that another one may wait
        self._begun.set()
        self._lock = threading.Lock()  # for these four
        self._last_lease = self._lease_under_way = 0.0  # the ends of the leases of these two batches
        self._refused = False  # whether a cycle found no place, and is to be woken when there is one
        self._errors: list[BaseException] = []  # that differ; a cycle raises one of them
        self._thread = LastingThread(self._run, "pgbeat-delivery")
        self._confirmer = Confirmer(self._confirm, self._confirm_ended, BATCH)
        self._is_confirming = False  # whether anything of the batch under way is, or was, confirmed
        self._failing = False

    @property
    def is_failing(self) -> bool:
        """Whether the last batch or confirm failed, and none has succeeded since."""
        return self._failing

    def wait_for_place(self) -> bool:
        """Wait a moment until no batch waits; return False if one still waits, or the beat is to end.

        If there was no place, the cycles are woken when there is one, and until then the next call does not wait.
        """
        if self._stopping():
            return False
        if self._begun.wait(0 if self._refused else MOMENT):
            self._refused = False
            return True
        self._refused = True
        return self._begun.is_set()  # the batch may have been begun in between, without a wake-up

    def deliver(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> None:
        """Queue a batch, or a part of it, behind those that are not delivered yet."""
        if not jobs:
            return
        if not self._thread.is_started:
            self._thread.start()
        with self._lock:
            self._last_lease = lease_ends
            if lease_ends != self._lease_under_way:
                self._begun.clear()
        self._batches.put((jobs, lease_ends))

    def check(self) -> None:
        """Raise the first error that has not been raised; start the thread again if it has ended.

        A batch that was under way then stays as after the kill of a beat: any beat sends it when its lease is over.
        """
        if self._thread.has_ended_early:
            if self._batches.empty():
                self._begun.set()
            self._thread.restart_if_ended()
        with self._lock:
            error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error

    def drain(self, within: float) -> bool:
        """End the thread when it has delivered what waits; return whether it has ended in that time."""
        if self._thread.is_alive:
            self._batches.put(None)
        return self._thread.join(within)

    def _begin_confirm(self, sent: Sent) -> None:
        self._is_confirming = True
        self._confirmer.add(sent)

    def _confirm_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._keep(error)
        self._failing = error is not None

    def _keep(self, error: BaseException) -> None:
        """Keep an error for a cycle. An outage lets all that is under way fail alike, and is raised once."""
        with self._lock:
            if repr(error) not in map(repr, self._errors):
                self._errors.append(error)

    def _wait_for_room(self, count: int, lease_ends: float) -> None:
        self._confirmer.wait_for_room(count, lease_ends)

    def _queries_alone(self) -> BeatQueries:
        self._confirmer.wait()
        return self._queries

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            with self._lock:
                self._lease_under_way = batch[1]
                if self._lease_under_way == self._last_lease:
                    self._begun.set()
            if self._begun.is_set() and self._refused:
                self._refused = False
                self._wake()
            self._is_confirming = False
            try:
                super().deliver(*batch)
                if not self._is_confirming:  # otherwise the confirm tells
                    self._failing = False
            except ConfirmFailed:
                pass  # the error is noted, and what is left of the batch is sent when its lease is over
            except BaseException as error:  # noqa: BLE001  raised by a `check`, in the thread that runs the cycles
                self._keep(error)
                self._failing = True
            del batch  # otherwise an idle beat would keep its last thousand rows
        self._confirmer.wait()
