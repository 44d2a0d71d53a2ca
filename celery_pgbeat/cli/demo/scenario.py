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

from celery_pgbeat.cli.demo import intro
from celery_pgbeat.cli.demo.process import DemoProcess
from celery_pgbeat.cli.demo.processes import LEASE, Processes
from celery_pgbeat.cli.demo.proof import Proof, Row, count, due_between, schedule_of
from celery_pgbeat.cli.demo.queries import DemoQueries, Held, pid_of
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
KILL, RESTART, FREEZE, RESUME = 0.2, 0.45, 0.55, 0.8


@dataclass(frozen=True, slots=True)
class DemoFault:
    """A beat that was struck with something in its hands."""

    beat: DemoProcess
    held: Held
    at: datetime


class Scenario:
    """One performance.

    Args:
        servers: where it takes place.
        processes: who acts.
        screen: who watches.
        seconds: how long the counted part lasts.
    """

    _since: datetime  # the counted part, by the database's clock; known once everybody is there
    _until: datetime

    def __init__(self, servers: Servers, processes: Processes, screen: Screen, seconds: int) -> None:
        self._servers = servers
        self._processes = processes
        self._screen = screen
        self._length = timedelta(seconds=seconds)
        self._queries = DemoQueries(servers.database)
        self._faults: list[DemoFault] = []
        self._rows: list[Row] = []

    def run(self, *, keep: bool) -> Proof:
        """Run the scenario and return the proof; with `keep` the processes are left running."""
        self._screen.say(intro.introduction(self._servers))
        self._queries.open()
        self._queries.insert(intro.sql(self._servers))
        self._begin()
        acts = self._acts()
        while (now := self._queries.now()) < self._until:
            while acts and now >= acts[0][0]:
                acts.pop(0)[1]()
            self._look()
        self._settle()
        if not keep:
            self._processes.stop_all()
        proof = self._count()
        self._screen.leave()
        self._screen.say("")
        for line in proof.lines():
            self._screen.say(line)
        return proof

    def keep_running(self) -> None:
        """Go on until somebody ends it."""
        self._screen.say(f"\nEverything goes on until Ctrl-C.\n\n{intro.addresses(self._servers)}\n")
        while True:
            self._look()

    def _begin(self) -> None:
        """Start all processes; the counting begins once all of them are ready and every row is planned."""
        self._processes.start()
        self._await_all()
        self._rows = self._queries.rows()
        self._since = self._queries.now()
        self._until = self._since + self._length
        self._tell(f"all are there; counting begins, for {self._length.total_seconds():.0f} s (lease: {LEASE} s)")

    def _acts(self) -> list[tuple[datetime, Callable[[], None]]]:
        shares = {KILL: self._kill, RESTART: self._restart, FREEZE: self._freeze, RESUME: self._resume}
        return [(self._since + self._length * share, act) for share, act in shares.items()]

    def _kill(self) -> None:
        beat, held = self._catch()
        beat.kill()
        self._strike(beat, held, f"kill -9 {beat.name} (pid {beat.pid})")

    def _restart(self) -> None:
        for beat in self._processes.beats:
            if beat.state == "killed":
                beat.start()
                self._tell(f"{beat.name} is started again (pid {beat.pid})")

    def _freeze(self) -> None:
        beat, held = self._catch()
        self._strike(beat, held, f"{beat.name} (pid {beat.pid}) is stopped where it stands (SIGSTOP)")

    def _resume(self) -> None:
        for beat in self._processes.beats:
            if beat.state == "frozen":
                beat.resume()
                self._tell(f"{beat.name} wakes up (SIGCONT); what it still believes to hold others have done")

    def _catch(self) -> tuple[DemoProcess, Held]:
        """Stop a beat that has something in its hands at this very moment, and leave it stopped.

        A beat holds a mark for a few milliseconds: it is stopped first and looked at then. One that was too quick
        goes on.
        """
        give_up_at = time.monotonic() + CATCH_WITHIN
        while True:
            late = time.monotonic() > give_up_at
            beat, node = self._holder()
            if beat is None and late:
                beat = self._processes.running_beats[0]
            if beat is None:
                continue
            beat.freeze()
            time.sleep(COMMITTED_AFTER)
            held = self._queries.held_by(node)
            if held.all or late:
                return beat, held
            beat.resume()

    def _holder(self) -> tuple[DemoProcess | None, str]:
        """Find a beat that holds something and runs; answers with its id."""
        running = {beat.pid: beat for beat in self._processes.running_beats}
        for node in self._queries.holders():
            beat = running.get(pid_of(node) or 0)
            if beat is not None:
                return beat, node
        return None, ""

    def _strike(self, beat: DemoProcess, held: Held, what: str) -> None:
        self._faults.append(DemoFault(beat, held, self._queries.now()))
        self._tell(f"{what} {_in_its_hands(held)}", red=True)

    def _look(self) -> None:
        """Show how things are, and tell what has become of what was held."""
        self._processes.check()
        for fault in [fault for fault in self._faults if fault.held.all]:
            self._follow(fault)
        self._screen.draw(self._view())
        time.sleep(FRAME)

    def _follow(self, fault: DemoFault) -> None:
        outcomes = self._queries.outcomes_of(fault.held.all)
        if len(outcomes) < len(fault.held.all):
            return
        self._faults.remove(fault)
        after = max(at for at, _ in outcomes.values()) - fault.at
        beats = {process.name for _, pid in outcomes.values() if (process := self._processes.by_pid(pid))}
        names = " and ".join(sorted(beats))
        self._tell(f"the work of {fault.beat.name} was done by {names}, {after.total_seconds():.1f} s later")

    def _view(self) -> View:
        now = self._queries.now()
        until = min(now, self._until)
        started, skipped = self._queries.tally([row.name for row in self._rows], self._since, until)
        sent = self._queries.sent_by()
        return View(
            now=now,
            passed=now - self._since,
            due=sum(schedule_of(row).count(self._since, until) for row in self._rows),
            started=started,
            skipped=skipped,
            beats=[
                Beat(beat.name, beat.pid, beat.state, sum(sent[pid] for pid in beat.pids))
                for beat in self._processes.beats
            ],
            ticks=[self._tick(row) for row in self._queries.latest()],
        )

    def _tick(self, row: Any) -> Tick:
        beat = self._processes.by_pid(pid_of(row.beat))
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
            if not self._queries.under_way(names, self._until) and not self._count().lost:
                return

    def _count(self) -> Proof:
        since, until = self._since, self._until
        names = [row.name for row in self._rows]
        left_out = self._queries.touched(names, since)
        counted = [row for row in self._rows if row.name not in left_out]
        names = [row.name for row in counted]
        return count(
            due_between(counted, since, until),
            self._queries.records(names, since, until),
            self._queries.starts(names, since, until),
            (since, until),
            left_out,
        )

    def _await_all(self) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT
        while not self._are_all_there():
            self._processes.check()
            if time.monotonic() > give_up_at:
                raise Failure(f"Not all are there after {START_TIMEOUT:.0f} s. {self._processes.last_words()}")
            time.sleep(0.1)

    def _are_all_there(self) -> bool:
        if not {process.pid for process in self._processes.all} <= self._queries.nodes():
            return False
        planned = {row.name for row in self._queries.rows()}
        return intro.names_in_python() <= planned and self._queries.unplanned() == 0

    def _tell(self, what: str, *, red: bool = False) -> None:
        now = self._queries.now()
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
