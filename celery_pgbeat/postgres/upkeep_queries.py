"""The statements with which beats keep the schema up: pauses, groups, nodes, messages that are lost, the history."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import timedelta

from celery_pgbeat.postgres.beat_results import WaitingJob
from celery_pgbeat.postgres.beat_statements import BeatStatements, stored_error


class UpkeepQueries(BeatStatements):
    """One method for each statement, of the same name."""

    def resume_due(self, batch: int = 1000) -> list[str]:
        """Resume up to `batch` periodic tasks whose pause is over."""
        return [row[0] for row in self._run("resume_due", batch=batch)]

    def pause_failing(self, batch: int) -> list[tuple[str, str | None]]:
        """Pause up to `batch` periodic tasks whose jobs have failed too often in a row; return each with the reason.

        Without a reason: those for which a pause was due and is not any more.
        """
        return [(row[0], row[1]) for row in self._run("pause_failing", batch=batch)]

    def settle_downstream(self, batch: int) -> int:
        """Have up to `batch` tasks go on whose upstream tasks have ended; return 0 if none did and none is left."""
        (row,) = self._run("settle_downstream", batch=batch)
        return int(row[0])

    def recheck_downstream(self) -> None:
        """Have beats look at each task that comes after others."""
        self._run("recheck_downstream")

    def recheck_groups(self) -> list[str]:
        """Have beats look at the groups in which a job may have its turn though nothing says so; return them."""
        return [row[0] for row in self._run("recheck_groups")]

    def pause_failed_groups(self) -> list[tuple[str, str]]:
        """Pause the groups in which a job has failed and that pause themselves then; return each with the reason."""
        return [(row[0], row[1]) for row in self._run("pause_failed_groups")]

    def announce_node(
        self, hostname: str, pid: int, version: str, mode: str = "sends", broker_problem: str | None = None
    ) -> None:
        """Announce this beat, or record that it is still alive."""
        self._run(
            "announce_node",
            node=self.beat,
            role="beat",
            hostname=hostname,
            pid=pid,
            version=version,
            tracking=False,
            mode=mode,
            broker_problem=None if broker_problem is None else stored_error(broker_problem),
        )

    def begin_to_send(self) -> None:
        """Record that this beat sends from now on: it has seen none in shadow."""
        self._run("begin_to_send", beat=self.beat)

    def modes(self) -> dict[str, str]:
        """List the modes of the other beats that are alive, each with the host of one of them."""
        return {row[0]: row[1] for row in self._run("modes", beat=self.beat)}

    def remove_beats(self, nodes: Sequence[str]) -> None:
        """Take beats that have ended off the list."""
        self._run("remove_beats", nodes=list(nodes))

    def beats_of_host(self, hostname: str) -> list[str]:
        """List the beats of this host: a starting beat checks which of them are dead."""
        return [row[0] for row in self._run("beats_of_host", hostname=hostname, beat=self.beat)]

    def clear_dead_beats(self, beats: Sequence[str]) -> tuple[int, int]:
        """Clear what dead beats left: their marks and their unsent jobs."""
        (row,) = self._run("clear_dead_beats", beats=list(beats), lease=self.lease)
        return row[0], row[1]

    def forget_nodes(self) -> tuple[bool, bool]:
        """Forget nodes that were not seen for a day.

        Return whether workers announce our tracker, and whether a job has waited with the broker for long.
        """
        (row,) = self._run("forget_nodes")
        return bool(row.tracking), bool(row.waits)

    def waiting_with_broker(self, most: int) -> list[WaitingJob]:
        """Read up to `most` jobs that have waited with the broker for long, of each queue and task some."""
        return [
            WaitingJob(uuid.UUID(str(row.id)), row.queue, row.task, json.loads(row.options or "{}"))
            for row in self._run("waiting_with_broker", most=most)
        ]

    def tracking_workers(self) -> list[int]:
        """Read the process ids of the workers that live and report on jobs."""
        return [row.pid for row in self._run("tracking_workers")]

    def note_lost_messages(self, jobs: Sequence[uuid.UUID], there: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Note jobs whose message the broker has lost, and forget the notes of `there`; return the newly noted ones."""
        rows = self._run("note_lost_messages", jobs=list(jobs), there=list(there))
        return [uuid.UUID(str(row.job)) for row in rows]

    def make_days(self) -> int | None:
        """Make the missing days of the history; return how many, None if another session holds the lock."""
        (row,) = self._run("make_days")
        made: int | None = row[0]
        return made

    def prune(self, retention: timedelta) -> int:
        """Drop the days of the history that are older than the retention; returns how many it dropped."""
        (row,) = self._run("prune", retention=retention.total_seconds())
        return int(row[0])

    def prune_changes(self, keep: timedelta, most: int) -> int:
        """Delete the oldest entries of the table of changes that are older than the duration; returns how many."""
        (row,) = self._run("prune_changes", keep=keep.total_seconds(), most=most)
        return int(row[0])
