"""What any thread, and any signal handler, puts in, and one thread takes out.

Not `queue.SimpleQueue`: before Python 3.13 its `get` with a timeout may wait for good. If the thread is held up between
two steps of it until the timeout is over, what is left of the timeout is negative, and it takes that for "no timeout".
Not `queue.Queue` either: a signal handler that interrupts a `put` of it waits for itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from queue import Empty
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue with one reader, which a signal handler may put into, whatever it interrupts.

    Example:
        >>> inbox = Inbox()
        >>> inbox.put("a report")
        >>> inbox.get(timeout=1.0)
        'a report'
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        # Free if something may have been put in since the reader looked. It has no owner: any thread may release it.
        self._news = threading.Lock()
        self._news.acquire()

    def put(self, item: T) -> None:
        """Put something in; never waits."""
        self._items.append(item)
        with contextlib.suppress(RuntimeError):  # it is free already
            self._news.release()

    def get(self, timeout: float | None) -> T:
        """Take the oldest out, and wait for it for this many seconds; None: for good.

        Raises:
            Empty: there is none in this time.
        """
        ends = None if timeout is None else monotonic() + timeout
        while True:
            if self._items:
                return self._items.popleft()
            left = -1.0 if ends is None else max(0.0, ends - monotonic())  # -1: for good
            if not self._news.acquire(timeout=left):
                raise Empty
