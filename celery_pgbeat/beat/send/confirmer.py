"""Confirms what was sent in a thread of its own, beside the delivery, which goes on to the next messages.

What is sent while one confirm is under way is confirmed by the next one, together. The thread ends when nothing is
left.

The one invariant: `wait_for_room` bounds what is sent and not confirmed. That is what a killed beat can double.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Sent:
    """Jobs whose messages the broker took, each with the seconds until it may start.

    They can be confirmed until `lease_ends`, by the boot-time clock.
    """

    jobs: Sequence[tuple[uuid.UUID, float]]
    lease_ends: float


class Confirmer:
    """Makes one confirm at a time.

    Args:
        confirm: confirms all of these; what it raises is raised once, by the next wait or `check`.
        most: how many jobs may be sent and not confirmed.
    """

    def __init__(self, confirm: Callable[[Sequence[Sent]], None], most: int) -> None:
        self._confirm = confirm
        self._most = most
        self._changed = threading.Condition()  # of all that follows
        self._waiting: list[Sent] = []
        self._unconfirmed = 0  # jobs, also those whose confirm is under way
        self._is_running = False  # whether a thread takes what waits
        self._error: BaseException | None = None

    @property
    def has_failed(self) -> bool:
        """Whether there is an error that was not raised yet."""
        return self._error is not None

    def add(self, sent: Sent) -> None:
        """Confirm this soon; at once if no thread can be started."""
        with self._changed:
            self._waiting.append(sent)
            self._unconfirmed += len(sent.jobs)
            if self._is_running:
                return
            self._is_running = True
        try:
            threading.Thread(target=self._run, name="pgbeat-confirm", daemon=True).start()
        except RuntimeError:  # the process may have no more threads now
            self._run()

    def wait_for_room(self, count: int) -> None:
        """Wait until this many more may be sent, and raise the error of a confirm."""
        with self._changed:
            self._changed.wait_for(lambda: self.has_failed or self._unconfirmed + count <= self._most)
        self.check()

    def wait(self) -> None:
        """Wait until no confirm is under way, and raise the error of a confirm."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unconfirmed)
        self.check()

    def check(self) -> None:
        """Raise the first error since the last check."""
        with self._changed:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while taken := self._taken():
            error: BaseException | None = None
            try:
                self._confirm(taken)
            except BaseException as raised:  # noqa: BLE001  `check` raises it
                error = raised
            with self._changed:
                self._error = self._error or error
                self._unconfirmed -= sum(len(sent.jobs) for sent in taken)
                self._changed.notify_all()

    def _taken(self) -> list[Sent]:
        with self._changed:
            taken, self._waiting = self._waiting, []
            self._is_running = bool(taken)
        return taken
