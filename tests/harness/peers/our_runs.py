"""When our rows run, to be compared with what a peer would have done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from celery import Celery

from celery_pgbeat.api import PgBeat
from tests.harness.peers.run_peer import Runs

SOME = 50  # runs that are read at once


def our_runs(url: str, end: datetime, zone: str = "UTC") -> Runs:
    """Return when our rows run from now on, by name; the app's zone is UTC."""
    beat = PgBeat(Celery("shop", set_as_current=False), url=url)
    try:
        names = [row.name for row in beat.list()]
        return {name: list(_before(beat, name, end)) for name in names}
    finally:
        beat.close()


def _before(beat: PgBeat, name: str, end: datetime) -> Iterator[datetime]:
    after = None
    while runs := [run.next_run_at for run in beat.upcoming(name, SOME, after=after)]:
        yield from (run for run in runs if run < end)
        if runs[-1] >= end:
            return
        after = runs[-1]


def differing(theirs: Runs, ours: Runs) -> Mapping[str, tuple[list[str], list[str]]]:
    """Return the runs that only one of both has, by name: theirs, and ours. Rows of only one are left out."""
    found = {}
    for name in sorted(theirs.keys() & ours.keys()):
        only_theirs, only_ours = set(theirs[name]) - set(ours[name]), set(ours[name]) - set(theirs[name])
        if only_theirs or only_ours:
            found[name] = (_shown(only_theirs), _shown(only_ours))
    return found


def _shown(runs: Iterable[datetime]) -> list[str]:
    return [f"{run:%m-%d %H:%M:%S}" for run in sorted(runs)]
