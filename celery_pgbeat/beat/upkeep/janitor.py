"""Heartbeats, what dead beats of this host have left, groups that wait for nothing, and the days of the history."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from celery_pgbeat import __version__
from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.upkeep.mode import Mode
from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

DAYS_EVERY = 3600.0  # seconds between two looks at the groups and at the days of the history
AGAIN_AFTER = 60.0  # seconds, if a lock was not granted within 200 ms, or another session makes the days
CHANGES_AT_ONCE = 10_000  # entries of the table of changes that one statement deletes: a tenth of a second
CHANGES_TIMES = 10  # such statements in an hour at most
LEFT_TOO_OFTEN = 5  # attempts in a row that found the lock taken, before a warning; making the days takes moments


@dataclass(eq=False, repr=False)
class Janitor:
    """Does each part of the upkeep when it is time for it."""

    _queries: BeatQueries
    _settings: Settings
    _node: NodeId
    _tracking: Tracking
    _mode: Mode
    _steps: Steps
    _broker_problem: Callable[[], str | None]
    _look_for_messages: Callable[[], None]

    def __post_init__(self) -> None:
        self._announce_at = 0.0
        self._days_at = 0.0
        self._left_to_others = 0  # attempts in a row that found the lock of make_days() taken

    def start(self) -> None:
        """Announce this beat, and free at once what dead beats of this host have left, but nothing of a live one."""
        self._announce()
        dead = [
            peer
            for peer in self._queries.beats_of_host(self._node.hostname)
            if (node := NodeId.parse(peer)) is not None and node.is_certainly_dead()
        ]
        if dead:
            marks, jobs = self._queries.clear_dead_beats(dead)
            self._queries.remove_beats(dead)
            logger.info(
                "Recovered %d marks and %d unsent jobs of %d dead beats of this host",
                marks,
                jobs,
                len(dead),
                extra={"action": "recover"},
            )

    def run_cycle(self) -> None:
        """Do the parts that are due. Without a heartbeat nothing else is done: the other beats count on it.

        Raises:
            ShadowConflict: a beat of another mode is in the way, so this one may decide nothing now.
        """
        now = boottime()
        if now >= self._announce_at:
            self._announce()
            self._steps.attempt("promote buffered", self._queries.promote_buffered)
            self._steps.attempt("sync group pauses", self._queries.sync_group_pauses)
        if now >= self._days_at:
            self._steps.attempt("recheck groups", self._queries.recheck_groups)
            self._steps.attempt("recheck downstream", self._queries.recheck_downstream)
            self._days_at = now + DAYS_EVERY
            self._steps.attempt("make days", self._make_days)
            self._steps.attempt("prune", self._prune)
            self._steps.attempt("prune changes", self._prune_changes)
            if self._steps.has_failed:
                self._days_at = now + AGAIN_AFTER
        self._mode.check()

    @property
    def announces_in(self) -> float:
        """Seconds until the next heartbeat."""
        return max(0.0, self._announce_at - boottime())

    def stop(self) -> None:
        """Give back every mark and every unsent job, and take this beat off the list."""
        marks = self._queries.unmark()
        jobs = self._queries.give_back()
        self._queries.remove_beats([str(self._node)])
        if marks or jobs:
            logger.info("Gave back %d marks and %d unsent jobs", marks, jobs, extra={"action": "unmark"})

    def _announce(self) -> None:
        self._queries.announce_node(
            self._node.hostname, os.getpid(), __version__, self._mode.value, self._broker_problem()
        )
        self._announce_at = boottime() + self._settings.heartbeat_every.total_seconds()
        self._steps.attempt("forget nodes", self._forget_nodes)

    def _forget_nodes(self) -> None:
        self._tracking.workers_track, jobs_wait = self._queries.forget_nodes()
        if jobs_wait and self._tracking.workers_track:
            self._look_for_messages()

    def _prune_changes(self) -> None:
        for _ in range(CHANGES_TIMES):
            if self._queries.prune_changes(self._settings.keep_changes, CHANGES_AT_ONCE) < CHANGES_AT_ONCE:
                break

    def _make_days(self) -> None:
        made = None
        with self._waiting_for_locks():
            made = self._queries.make_days()
        if made is None:
            self._days_at = boottime() + AGAIN_AFTER
            self._left_to_others += 1
        else:
            self._left_to_others = 0
        if self._left_to_others == LEFT_TOO_OFTEN:
            logger.warning(
                "The history's days have not been made for %d minutes: another session makes them, or holds a lock on "
                "the history. pg_stat_activity shows which; end that session",
                self._left_to_others,
                extra={"action": "prune"},
            )
        if made:
            logger.info("Made %d days of the history", made, extra={"action": "prune"})

    def _prune(self) -> None:
        with self._waiting_for_locks():
            dropped = self._queries.prune(self._settings.retention)
            if dropped:
                logger.info("Pruned %d days of the history", dropped, extra={"action": "prune"})

    @contextmanager
    def _waiting_for_locks(self) -> Iterator[None]:
        """Try again soon if another transaction holds a lock: a reader of the history, for one."""
        try:
            yield
        except DatabaseBusy as error:
            logger.info("The history's days have to wait: %s", error, extra={"action": "prune"})
            self._days_at = boottime() + AGAIN_AFTER
