"""The course of the demo: what happens when.

Three beats share the work. One of them is killed with kill -9 while it has marked rows, and is started again later.
Another is frozen, and continues after the others have done its work. Then everything that was due is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.cli.demo import intro
from celery_pgbeat.cli.demo.process import DemoProcess
from celery_pgbeat.cli.demo.processes import LEASE, Processes
from celery_pgbeat.cli.demo.proof import Proof, Row, count, due_between, schedule_of
from celery_pgbeat.cli.demo.queries import DemoQueries, InFlight, pid_of
from celery_pgbeat.cli.demo.servers import Servers
from celery_pgbeat.cli.demo.view import Beat, Tick, View, stamp
from celery_pgbeat.cli.output.screen import Screen
from celery_pgbeat.cli.output.values import number

START_TIMEOUT = 60.0  # seconds in which all processes must announce themselves; a busy machine needs many
CATCH_WITHIN = 5.0  # seconds of looking for a beat that holds rows or jobs
COMMITTED_AFTER = 0.05  # seconds after which the last statement of a frozen process has ended
SETTLE_WITHIN = 4 * LEASE + 5.0  # seconds in which the last due occurrences must start
FRAME = 0.5  # seconds between two updates of the screen

# When each event happens, as a share of the counted time.
KILL, RESTART, FREEZE, RESUME = 0.2, 0.45, 0.55, 0.8


@dataclass(frozen=True, slots=True)
class DemoFault:
    """A beat that was killed or frozen, and what it had under way."""

    beat: DemoProcess
    in_flight: InFlight
    at: datetime
    pid: int  # a killed beat is started again with another one

    def ended(self, outcomes: Collection[tuple[datetime, int | None]], name_of: Callable[[int | None], str]) -> str:
        """Return which beat has done its work, apart from what it had sent itself and not confirmed.

        Args:
            outcomes: when each of its occurrences was started or skipped, and the process id of the beat that did it.
            name_of: returns a beat's name.
        """
        others = [(at, pid) for at, pid in outcomes if pid != self.pid]
        if not others:
            return f"the messages of {self.beat.name} had arrived: nothing was left to the others"
        names = " and ".join(sorted({name_of(pid) for _, pid in others}))
        after = max(at for at, _ in others) - self.at
        return f"the work of {self.beat.name} was done by {names}, {after.total_seconds():.1f} s later"


class Scenario:
    """One run of the demo.

    Args:
        servers: its Postgres and broker.
        processes: its beats and its worker.
        screen: where it is shown.
        seconds: how long the counted part lasts.
    """

    _since: datetime  # the counted part, by the database's clock; set when all processes are ready
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
        events = self._events()
        while (now := self._queries.now()) < self._until:
            while events and now >= events[0][0]:
                events.pop(0)[1]()
            self._update()
        self._settle()
        self._screen.draw(self._view(), last=True)
        if not keep:
            self._processes.stop_all()
        proof = self._count()
        self._screen.leave()
        self._screen.say("")
        for line in proof.lines():
            self._screen.say(line)
        return proof

    def keep_running(self) -> None:
        """Go on until Ctrl-C."""
        self._screen.say(f"\nEverything goes on until Ctrl-C.\n\n{intro.addresses(self._servers)}\n")
        while True:
            self._update()

    def _begin(self) -> None:
        """Start all processes; the counting begins when all of them are ready and every row is planned."""
        self._processes.start()
        self._wait_until_ready()
        self._rows = self._queries.rows()
        self._since = self._queries.now()
        self._until = self._since + self._length
        if self._processes.address:
            self._report(f"the dashboard is at {self._processes.address}")
        self._report(f"all processes are ready; counting for {self._length.total_seconds():.0f} s (lease: {LEASE} s)")

    def _events(self) -> list[tuple[datetime, Callable[[], None]]]:
        shares = {KILL: self._kill, RESTART: self._restart, FREEZE: self._freeze, RESUME: self._resume}
        return [(self._since + self._length * share, event) for share, event in shares.items()]

    def _kill(self) -> None:
        beat, in_flight = self._catch()
        pid = beat.pid
        beat.kill()
        self._record_fault(beat, in_flight, pid, f"kill -9 {beat.name} (pid {pid})")

    def _restart(self) -> None:
        for beat in self._processes.beats:
            if beat.state == "killed":
                beat.start()
                self._report(f"{beat.name} is started again (pid {beat.pid})")

    def _freeze(self) -> None:
        beat, in_flight = self._catch()
        self._record_fault(beat, in_flight, beat.pid, f"{beat.name} (pid {beat.pid}) is frozen (SIGSTOP)")

    def _resume(self) -> None:
        for beat in self._processes.beats:
            if beat.state == "frozen":
                beat.resume()
                self._report(f"{beat.name} continues (SIGCONT); the other beats have done its work")

    def _catch(self) -> tuple[DemoProcess, InFlight]:
        """Freeze a beat that holds rows or jobs, and return it with what it holds.

        A beat holds a mark only for milliseconds: so the beat is frozen first and examined then. If it held nothing
        any more, it continues.
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
            in_flight = self._queries.in_flight_of(node)
            if in_flight.all or late:
                return beat, in_flight
            beat.resume()

    def _holder(self) -> tuple[DemoProcess | None, str]:
        """Return a running beat that holds rows or jobs, with its node id."""
        running = {beat.pid: beat for beat in self._processes.running_beats}
        for node in self._queries.holders():
            beat = running.get(pid_of(node) or 0)
            if beat is not None:
                return beat, node
        return None, ""

    def _record_fault(self, beat: DemoProcess, in_flight: InFlight, pid: int, what: str) -> None:
        self._faults.append(DemoFault(beat, in_flight, self._queries.now(), pid))
        self._report(f"{what} {_described(in_flight)}", red=True)

    def _update(self) -> None:
        """Update the screen, and report when other beats have done the work of a killed or frozen one."""
        self._processes.check()
        for fault in [fault for fault in self._faults if fault.in_flight.all]:
            self._follow(fault)
        self._screen.draw(self._view())
        time.sleep(FRAME)

    def _follow(self, fault: DemoFault) -> None:
        outcomes = self._queries.outcomes_of(fault.in_flight.all)
        if len(outcomes) < len(fault.in_flight.all):
            return
        self._faults.remove(fault)
        self._report(fault.ended(outcomes.values(), self._name_of))

    def _view(self) -> View:
        now = self._queries.now()
        until = min(now, self._until)
        names = [row.name for row in self._rows]
        started, skipped = self._queries.tally(names, self._since, until)
        sent = self._queries.sent_by(names, self._since, until)
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
        """Wait until no due job is under way."""
        names = [row.name for row in self._rows]
        give_up_at = time.monotonic() + SETTLE_WITHIN
        while time.monotonic() < give_up_at:
            self._update()
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
            self._queries.records(names, since, until, self._name_of),
            self._queries.starts(names, since, until),
            (since, until),
            left_out,
        )

    def _name_of(self, pid: int | None) -> str:
        beat = self._processes.by_pid(pid)
        return beat.name if beat else "another beat"

    def _wait_until_ready(self) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT
        while not self._all_are_ready():
            self._processes.check()
            if time.monotonic() > give_up_at:
                raise Failure(f"Not all processes are ready after {START_TIMEOUT:.0f} s. {self._processes.log_tails()}")
            time.sleep(0.1)

    def _all_are_ready(self) -> bool:
        if not {process.pid for process in self._processes.all} <= self._queries.nodes():
            return False
        if self._processes.dashboard is not None and self._processes.address is None:
            return False
        planned = {row.name for row in self._queries.rows()}
        return intro.names_in_python() <= planned and self._queries.unplanned() == 0

    def _report(self, what: str, *, red: bool = False) -> None:
        now = self._queries.now()
        self._screen.say(f"{stamp(now, now - self._since)}  {what}", red=red)


def _described(in_flight: InFlight) -> str:
    words = []
    if in_flight.marked:
        words.append(f"{number(len(in_flight.marked), 'row')} marked")
    if in_flight.unsent:
        words.append(f"{number(len(in_flight.unsent), 'job')} submitted and not confirmed")
    return f"with {' and '.join(words)}" if words else "with nothing marked"
