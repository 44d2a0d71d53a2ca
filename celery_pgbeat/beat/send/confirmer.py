"""Confirms what was sent in a thread of its own, beside the delivery, which goes on to the next messages.

What is sent while one confirm is under way is confirmed by the next one, together. The thread ends when nothing is
left.

The one invariant: `wait_for_room` bounds what is sent and waits for its confirm. That is what a killed beat can double.
Jobs whose confirm has failed do not count: any beat sends them again when their lease is over. So nothing more of a
batch is sent after a confirm of it has failed.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from celery_pgbeat.beat.database_clock import boottime

ALIVE_CHECKED_AFTER = 1.0  # seconds of a wait until it is checked that the thread is still alive


@dataclass(slots=True)
class Sent:
    """Jobs whose messages the broker took, each with the seconds until it may start.

    They can be confirmed until `lease_ends`, by the boot-time clock. All jobs of a batch have the same end of their
    lease, and no other batch has it.
    """

    jobs: Sequence[tuple[uuid.UUID, float]]
    lease_ends: float


class ConfirmFailed(Exception):
    """A confirm of the batch has failed; `ended` got its error."""


class Confirmer:
    """Makes one confirm at a time. Only one thread may call it.

    Args:
        confirm: confirms all of these.
        ended: is called in the thread of the confirm, with its error or None.
        most: how many jobs may wait for their confirm.
    """

    def __init__(
        self, confirm: Callable[[Sequence[Sent]], None], ended: Callable[[BaseException | None], None], most: int
    ) -> None:
        self._confirm = confirm
        self._ended = ended
        self._most = most
        self._changed = threading.Condition()  # of all that follows
        self._waiting: list[Sent] = []
        self._under_way: list[Sent] = []
        self._thread: threading.Thread | None = None  # while it has something to confirm
        self._failed: set[float] = set()  # the leases of batches of which a confirm has failed

    def add(self, sent: Sent) -> None:
        """Confirm this soon; at once if no thread can be started."""
        with self._changed:
            self._waiting.append(sent)
            self._keep_alive()

    def wait_for_room(self, count: int, lease_ends: float) -> None:
        """Wait until this many more jobs of a batch may be sent.

        Raises:
            ConfirmFailed: a confirm of that batch has failed.
        """
        self._wait(lambda: lease_ends in self._failed or self._unconfirmed() + count <= self._most)
        if lease_ends in self._failed:
            raise ConfirmFailed

    def wait(self) -> None:
        """Wait until no confirm is under way."""
        self._wait(lambda: not self._unconfirmed())

    def _wait(self, is_over: Callable[[], bool]) -> None:
        with self._changed:
            while not self._changed.wait_for(is_over, ALIVE_CHECKED_AFTER):
                self._keep_alive()

    def _keep_alive(self) -> None:
        """Start a thread if something waits and none runs. One that has ended early has, as far as we know, failed."""
        if self._thread is not None and self._thread.is_alive():
            return
        lost, self._under_way = self._under_way, []
        if lost:
            self._note(lost, RuntimeError("the thread pgbeat-confirm has ended without being asked to"))
            self._changed.notify_all()
        if self._waiting:
            self._thread = threading.Thread(target=self._run, name="pgbeat-confirm", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the process may have no more threads now
                self._run()

    def _unconfirmed(self) -> int:
        return sum(len(sent.jobs) for sent in (*self._under_way, *self._waiting))

    def _run(self) -> None:
        while self._begin():
            error: BaseException | None = None
            try:
                self._confirm(self._under_way)
            except BaseException as raised:  # noqa: BLE001  passed on to `ended`
                error = raised
            with self._changed:
                self._note(self._under_way, error)
                self._under_way = []
                self._changed.notify_all()

    def _begin(self) -> bool:
        with self._changed:
            self._under_way, self._waiting = self._waiting, []
            if not self._under_way:
                self._thread = None
            return bool(self._under_way)

    def _note(self, parts: Sequence[Sent], error: BaseException | None) -> None:
        self._failed = {lease for lease in self._failed if lease > boottime()}
        if error is not None:
            self._failed |= {sent.lease_ends for sent in parts}
        self._ended(error)
