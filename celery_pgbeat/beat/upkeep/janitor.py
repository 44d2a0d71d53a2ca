"""Upkeep: signs of life, what dead peers of this host left, the days of the history."""

from __future__ import annotations

import logging
import os

from sqlalchemy.exc import DBAPIError

from celery_pgbeat import __version__
from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.node import NodeId
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

HOUSEKEEPING_EVERY = 3600.0  # seconds between two looks at the days of the history
AGAIN_AFTER = 60.0  # seconds, when a lock was not to be had within its 200 ms, or another session had it
LEFT_TOO_OFTEN = 5  # attempts in a row that found the lock held, before a warning; to make the days takes moments


class Janitor:
    """What a beat does beside the tick, each part when it is time for it."""

    def __init__(self, store: BeatQueries, settings: Settings, node: NodeId) -> None:
        self._store = store
        self._settings = settings
        self._node = node
        self._announce_at = 0.0
        self._housekeeping_at = 0.0
        self._left_to_others = 0  # attempts in a row that found the lock of make_days() held
        self.workers_track = False  # whether workers announce our tracker

    def start(self) -> None:
        """Announce this beat, and free at once what dead beats of this host left; never what a live one holds."""
        self._announce()
        dead = [
            peer
            for peer in self._store.peers(self._node.hostname)
            if (node := NodeId.parse(peer)) is not None and node.is_certainly_dead()
        ]
        if dead:
            marks, jobs = self._store.free(dead)
            self._store.sign_off(dead)
            logger.info(
                "Recovered %d marks and %d unsent jobs of %d dead beats of this host",
                marks,
                jobs,
                len(dead),
                extra={"action": "recover"},
            )

    def turn(self) -> None:
        """Do what is due of the upkeep."""
        now = boottime()
        if now >= self._announce_at:
            self._announce()
            self._store.release()
            self._store.regroup()
        if now >= self._housekeeping_at:
            self._keep_house(now)

    @property
    def announces_in(self) -> float:
        """Seconds until the next sign of life."""
        return max(0.0, self._announce_at - boottime())

    def stop(self) -> None:
        """Hand back every mark and every unsent job, and take this beat off the list."""
        marks = self._store.unmark()
        jobs = self._store.give_back()
        self._store.sign_off([str(self._node)])
        if marks or jobs:
            logger.info("Handed back %d marks and %d unsent jobs", marks, jobs, extra={"action": "unmark"})

    def _announce(self) -> None:
        self._store.announce(self._node.hostname, os.getpid(), __version__)
        self.workers_track = self._store.forget_nodes()
        self._announce_at = boottime() + self._settings.heartbeat_every.total_seconds()

    def _keep_house(self, now: float) -> None:
        try:
            made = self._store.make_days()
            dropped = self._store.prune(self._settings.retention)
        except (DBAPIError, DatabaseBusy) as error:
            logger.info("The history's days have to wait: %s", error, extra={"action": "prune"})
            self._housekeeping_at = now + AGAIN_AFTER
            return
        self._left_to_others = self._left_to_others + 1 if made is None else 0
        if self._left_to_others == LEFT_TOO_OFTEN:
            logger.warning(
                "The history's days have not been made for %d minutes: a session holds the advisory lock of "
                "make_days(). See pg_locks, and end that session",
                self._left_to_others,
                extra={"action": "prune"},
            )
        self._housekeeping_at = now + (AGAIN_AFTER if made is None else HOUSEKEEPING_EVERY)
        if made or dropped:
            logger.info("Pruned %d days of the history, made %d", dropped, made or 0, extra={"action": "prune"})
