"""The play: what happens when, and what is told about it.

Three beats share the work. One of them is killed with -9 while it holds marks, and comes back later as a new process.
Another is stopped in its work and wakes up when others have long done it. Then everything that was due is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from celery_pgbeat.cli.demo import playbill
from celery_pgbeat.cli.demo.actor import Actor
from celery_pgbeat.cli.demo.company import LEASE, Company
from celery_pgbeat.cli.demo.ledger import Held, Ledger, pid_of
from celery_pgbeat.cli.demo.proof import Proof, Row, count, due_between, schedule_of
from celery_pgbeat.cli.demo.servers import Servers
from celery_pgbeat.cli.demo.view import Beat, Tick, View, stamp
from celery_pgbeat.cli.failure import Failure
from celery_pgbeat.cli.screen import Screen

START_TIMEOUT = 60.0  # seconds until all processes must have announced themselves; a busy machine needs many
CATCH_WITHIN = 5.0  # seconds of looking for a beat that holds something
COMMITTED_AFTER = 0.05  # seconds after which the last statement of a stopped process has ended
SETTLE_WITHIN = 4 * LEASE + 5.0  # seconds for what was due at the end
FRAME = 0.5  # seconds between two looks

# When what happens, as shares of the time that is counted.
KILL, RESTART, FREEZE, THAW = 0.2, 0.45, 0.55, 0.8


@dataclass(frozen=True, slots=True)
class Blow:
    """A beat that was struck with something in its hands."""

    beat: Actor
    held: Held
    at: datetime


class Play:
    """One performance.

    Args:
        servers: where it takes place.
        company: who acts.
        screen: who watches.
        seconds: how long the counted part lasts.
    """

    _since: datetime  # the counted part, by the database's clock; known once everybody is there
    _until: datetime

    def __init__(self, servers: Servers, company: Company, screen: Screen, seconds: int) -> None:
        self._servers = servers
        self._company = company
        self._screen = screen
        self._length = timedelta(seconds=seconds)
        self._ledger = Ledger(servers.database)
        self._blows: list[Blow] = []
        self._rows: list[Row] = []

    def perform(self, *, keep: bool) -> Proof:
        """Play it, and return the proof; with `keep` the curtain stays up for an encore."""
        self._screen.say(playbill.introduction(self._servers))
        self._ledger.open()
        self._ledger.insert(playbill.sql(self._servers))
        self._begin()
        acts = self._acts()
        while (now := self._ledger.now()) < self._until:
            while acts and now >= acts[0][0]:
                acts.pop(0)[1]()
            self._look()
        self._settle()
        if not keep:
            self._company.dismiss()
        proof = self._count()
        self._screen.leave()
        self._screen.say("")
        for line in proof.lines():
            self._screen.say(line)
        return proof

    def encore(self) -> None:
        """Go on until somebody ends it."""
        self._screen.say(f"\nEverything goes on until Ctrl-C.\n\n{playbill.addresses(self._servers)}\n")
        while True:
            self._look()

    def _begin(self) -> None:
        """Raise the curtain; the counting begins once everybody is there and every row is planned."""
        self._company.start()
        self._await_all()
        self._rows = self._ledger.rows()
        self._since = self._ledger.now()
        self._until = self._since + self._length
        self._tell(f"all are there; counting begins, for {self._length.total_seconds():.0f} s (lease: {LEASE} s)")

    def _acts(self) -> list[tuple[datetime, Callable[[], None]]]:
        shares = {KILL: self._kill, RESTART: self._restart, FREEZE: self._freeze, THAW: self._thaw}
        return [(self._since + self._length * share, act) for share, act in shares.items()]

    def _kill(self) -> None:
        beat, held = self._catch()
        beat.kill()
        self._strike(beat, held, f"kill -9 {beat.name} (pid {beat.pid})")

    def _restart(self) -> None:
        for beat in self._company.beats:
            if beat.state == "killed":
                beat.start()
                self._tell(f"{beat.name} is started again (pid {beat.pid})")

    def _freeze(self) -> None:
        beat, held = self._catch()
        self._strike(beat, held, f"{beat.name} (pid {beat.pid}) is stopped where it stands (SIGSTOP)")

    def _thaw(self) -> None:
        for beat in self._company.beats:
            if beat.state == "frozen":
                beat.thaw()
                self._tell(f"{beat.name} wakes up (SIGCONT); what it still believes to hold others have done")

    def _catch(self) -> tuple[Actor, Held]:
        """Stop a beat that has something in its hands at this very moment, and leave it stopped.

        A beat holds a mark for a few milliseconds: it is stopped first and looked at then. One that was too quick
        goes on.
        """
        give_up_at = time.monotonic() + CATCH_WITHIN
        while True:
            late = time.monotonic() > give_up_at
            beat, node = self._holder()
            if beat is None and late:
                beat = self._company.running_beats[0]
            if beat is None:
                continue
            beat.freeze()
            time.sleep(COMMITTED_AFTER)
            held = self._ledger.held_by(node)
            if held.all or late:
                return beat, held
            beat.thaw()

    def _holder(self) -> tuple[Actor | None, str]:
        """Find a beat that holds something and runs; answers with its id."""
        running = {beat.pid: beat for beat in self._company.running_beats}
        for node in self._ledger.holders():
            beat = running.get(pid_of(node) or 0)
            if beat is not None:
                return beat, node
        return None, ""

    def _strike(self, beat: Actor, held: Held, what: str) -> None:
        self._blows.append(Blow(beat, held, self._ledger.now()))
        self._tell(f"{what} {_in_its_hands(held)}", red=True)

    def _look(self) -> None:
        """Show how things are, and tell what has become of what was held."""
        self._company.check()
        for blow in [blow for blow in self._blows if blow.held.all]:
            self._follow(blow)
        self._screen.draw(self._view())
        time.sleep(FRAME)

    def _follow(self, blow: Blow) -> None:
        outcomes = self._ledger.outcomes_of(blow.held.all)
        if len(outcomes) < len(blow.held.all):
            return
        self._blows.remove(blow)
        after = max(at for at, _ in outcomes.values()) - blow.at
        beats = {actor.name for _, pid in outcomes.values() if (actor := self._company.by_pid(pid))}
        self._tell(
            f"what {blow.beat.name} held was done by {' and '.join(sorted(beats))}, {after.total_seconds():.1f} s later"
        )

    def _view(self) -> View:
        now = self._ledger.now()
        until = min(now, self._until)
        started, skipped = self._ledger.tally([row.name for row in self._rows], self._since, until)
        sent = self._ledger.sent_by()
        return View(
            now=now,
            passed=now - self._since,
            due=sum(schedule_of(row).count(self._since, until) for row in self._rows),
            started=started,
            skipped=skipped,
            beats=[
                Beat(beat.name, beat.pid, beat.state, sum(sent[pid] for pid in beat.pids))
                for beat in self._company.beats
            ],
            ticks=[self._tick(row) for row in self._ledger.latest()],
        )

    def _tick(self, row: Any) -> Tick:
        beat = self._company.by_pid(pid_of(row.beat))
        return Tick(
            name=row.name,
            made_by="Python" if row.managed_by.startswith("code:") else "SQL",
            schedule=row.schedule or "",
            scheduled_for=row.scheduled_for and row.scheduled_for.astimezone(timezone.utc),
            sent_by=beat.name if beat else "",
            state=row.state or "",
            late=row.late,
        )

    def _settle(self) -> None:
        """Wait until what was due is no longer under way."""
        names = [row.name for row in self._rows]
        give_up_at = time.monotonic() + SETTLE_WITHIN
        while time.monotonic() < give_up_at:
            self._look()
            if not self._ledger.under_way(names, self._until) and not self._count().lost:
                return

    def _count(self) -> Proof:
        since, until = self._since, self._until
        names = [row.name for row in self._rows]
        left_out = self._ledger.touched(names, since)
        counted = [row for row in self._rows if row.name not in left_out]
        names = [row.name for row in counted]
        return count(
            due_between(counted, since, until),
            self._ledger.records(names, since, until),
            self._ledger.starts(names, since, until),
            (since, until),
            left_out,
        )

    def _await_all(self) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT
        while not self._are_all_there():
            self._company.check()
            if time.monotonic() > give_up_at:
                raise Failure(f"Not all are there after {START_TIMEOUT:.0f} s. {self._company.last_words()}")
            time.sleep(0.1)

    def _are_all_there(self) -> bool:
        if not {actor.pid for actor in self._company.all} <= self._ledger.nodes():
            return False
        planned = {row.name for row in self._ledger.rows()}
        return playbill.names_in_python() <= planned and self._ledger.unplanned() == 0

    def _tell(self, what: str, *, red: bool = False) -> None:
        now = self._ledger.now()
        self._screen.say(f"{stamp(now, now - self._since)}  {what}", red=red)


def _in_its_hands(held: Held) -> str:
    words = []
    if held.marked:
        words.append(f"{_number(held.marked, 'row')} marked")
    if held.unsent:
        words.append(f"{_number(held.unsent, 'job')} submitted and not confirmed")
    return f"with {' and '.join(words)}" if words else "with nothing in its hands"


def _number(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"
