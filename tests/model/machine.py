"""The model: any order of the steps of beats, workers, an author and the clock, with faults between any two of them.

Hypothesis chooses the order. After each step the ledger checks whether it was allowed; in the end everything
comes to rest, and every occurrence must be accounted for.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from celery_pgbeat.postgres.worker_queries import MessageCopy, Start
from celery_pgbeat.worker.start.guard import StartResult
from tests.model.author import DEFINITIONS, EDITS, Author
from tests.model.ledger import Job, Ledger
from tests.model.world import BATCH, DEAD_AFTER, GROUP, LEASE, MOMENT, QUEUE, Beat, Decided, World

NAMES = ["a", "b", "c"]
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
CYCLES_TO_REST = 400  # more than the occurrences that an example can leave undecided
HOURS_TO_REST = 40  # more than the sends and reruns that an example can leave to be made

beats = st.integers(0, 2)
places = st.integers(0, 99)  # taken modulo what there is
mostly = st.sampled_from([True, True, True, False])
rarely = st.sampled_from([False, False, False, True])


def _in_order(job: Job) -> tuple[Any, ...]:
    """Return what a choice among jobs goes by: the same in each replay, which the ids of manual jobs are not."""
    return job.name, job.first, job.last, job.origin, job.state, job.run, str(job.id)


class Model(RuleBasedStateMachine):
    """Needs `url`, of a migrated database of its own, in a subclass."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.url)
        self.author = Author(self.url)
        self.ledger = Ledger(self.world.database)
        self.late: deque[tuple[str, Start, Callable[[], bool]]] = deque()  # reports that are still on their way

    def look(self, step: str, but: Collection[str] = ()) -> None:
        self.ledger.look(step, self.world.now, but)
        self.world.pass_by(MOMENT)

    # Time.

    @rule(seconds=st.sampled_from([1, 16, 61, 300, 1200, -3, -20, -3600]))
    def time_passes(self, seconds: int) -> None:
        """Let time pass, or set the clock back."""
        if seconds > 0:
            self.world.pass_by(seconds * SECOND)
        else:
            self.world.set_back(-seconds * SECOND)

    # The author.

    @initialize(first=st.sampled_from(DEFINITIONS[:-1]), second=st.sampled_from(DEFINITIONS), in_the_queue=rarely)
    def begin(self, first: dict[str, Any], second: dict[str, Any], in_the_queue: bool) -> None:
        for name, definition in zip(NAMES, (first, second), strict=False):
            self.author.insert(name, {**definition, "group_name": QUEUE} if in_the_queue else definition)
        self.look("author")
        self._plan_what_is_new(self.world.beats[0])

    @rule(
        name=st.sampled_from(NAMES),
        what=st.sampled_from(["edit", "pause", "resume", "delete", "set_next_run", "trigger", "open"]),
        edit=st.sampled_from(EDITS),
        definition=st.sampled_from(DEFINITIONS),
        seconds=st.sampled_from([0, 5, 90, -1000]),
        force=st.booleans(),
    )
    def somebody_writes(
        self, name: str, what: str, edit: tuple[str, Any], definition: dict[str, Any], seconds: int, force: bool
    ) -> None:
        step = "author"
        if self.author.holds == name:
            self.author.let_go(keep=force)
        elif name not in self.ledger.tasks:
            self.author.insert(name, definition)
        elif what == "edit":
            self.author.edit(name, *edit)
        elif what == "pause":
            self.author.pause(name, None if force else self.world.now + max(seconds, 1) * SECOND)
        elif what == "resume":
            self.author.resume(name)
        elif what == "delete":
            self.author.delete(name)
        elif what == "set_next_run":
            self.author.edit(name, "next_run_at", self.world.now + seconds * SECOND)
            self.ledger.set_by_hand(name)
        elif what == "trigger":
            self.author.trigger(name, force)
            step = "trigger"
        elif self.author.holds is None:
            self.author.open(name, *edit)
        self.look(step)
        if what == "set_next_run" and name in self.ledger.tasks:
            # Of a row that was decided ahead of the clock, the write begins a new stretch.
            self.ledger.set_by_hand(name)

    @precondition(lambda self: self.author.holds is None)
    @rule(paused=st.booleans())
    def somebody_pauses_or_resumes_the_group(self, paused: bool) -> None:
        self.author.pause_group(GROUP, paused)
        self.look("author")

    @precondition(lambda self: self.author.holds is None)
    @rule(what=st.sampled_from(["pause", "finish", "resume", "resume", "retry"]))
    def somebody_handles_the_queue(self, what: str) -> None:
        if what == "pause":
            self.author.pause_group(QUEUE, True)
        elif what == "finish":
            self.author.finish_queue(QUEUE)
            if self.ledger.queue_is_paused:  # what waits in a group that was paused goes on when it is finished
                self.ledger.queue_is_resumed()
        elif self.author.resume_queue(QUEUE, retry=what == "retry"):
            self.ledger.queue_is_resumed()
        self.look("resume_queue" if what == "retry" else "author")

    @precondition(lambda self: self.ledger.has("error"))
    @rule(place=places, run_again=st.booleans())
    def somebody_decides(self, place: int, run_again: bool) -> None:
        waiting = sorted((job for job in self.ledger.jobs.values() if job.state == "error"), key=_in_order)
        self.author.decide(waiting[place % len(waiting)].id, run_again)
        self.look("decide")

    # People.

    def _open_work(self, place: int) -> Job | None:
        """Return a job for people that is not over."""
        open_jobs = sorted((job for job in self.ledger.jobs.values() if job.human and not job.final), key=_in_order)
        return open_jobs[place % len(open_jobs)] if open_jobs else None

    @precondition(lambda self: self._open_work(0))
    @rule(place=places, owner=st.sampled_from(["ann", "bob"]), again=st.booleans())
    def somebody_picks_up(self, place: int, owner: str, again: bool) -> None:
        """Pick a job up that is open, or that somebody may have: then the second one is refused."""
        job = self._some_work(place)
        for one in (owner, "ann") if again else (owner,):
            may = job.state == "created" or (job.state == "running" and job.owner == one)
            took = self.author.work("pick_up", id=str(job.id), owner=one)
            assert may or not took, f"{one} has taken {job}"
            self.look("pick_up")
            job = self.ledger.jobs[job.id]
            assert not took or job.owner == one, f"{one} has taken {job}"

    @precondition(lambda self: self._open_work(0))
    @rule(place=places, owner=st.sampled_from(["ann", "bob", None]))
    def somebody_releases(self, place: int, owner: str | None) -> None:
        job = self._some_work(place)
        done = self.author.work("release", id=str(job.id), owner=owner)
        assert done == (job.state == "running" and owner in (None, job.owner)), f"{owner} has released {job}: {done}"
        self.look("release")

    @precondition(lambda self: self._open_work(0))
    @rule(place=places, owner=st.sampled_from(["ann", "bob", None]), outcome=st.sampled_from(["succeeded", "failed"]))
    def somebody_finishes(self, place: int, owner: str | None, outcome: str) -> None:
        job = self._some_work(place)
        done = self.author.work("finish", id=str(job.id), outcome=outcome, owner=owner)
        assert done == (job.state == "running" and owner in (None, job.owner)), f"{owner} has finished {job}: {done}"
        self.look("finish_work")

    @rule(place=places)
    def somebody_cancels(self, place: int) -> None:
        """Cancel a job that is not over, for people or for a worker; one that runs or has failed is refused."""
        jobs = sorted((job for job in self.ledger.jobs.values() if not job.final), key=_in_order)
        if jobs:
            job = jobs[place % len(jobs)]
            done = self.author.work("cancel_job", id=str(job.id))
            assert done == (job.human or job.state not in ("running", "error")), f"cancelled: {done}, {job}"
            self.look("cancel_job")

    @precondition(lambda self: self.ledger.has("sent"))
    @rule(place=places)
    def somebody_has_a_job_sent_again(self, place: int) -> None:
        """Have a message sent again, whether the first one is lost or not; that of a later attempt is refused."""
        sent = sorted((job for job in self.ledger.jobs.values() if job.state == "sent"), key=_in_order)
        job = sent[place % len(sent)]
        done = self.author.work("resend_job", id=str(job.id))
        assert done == (job.attempt == 0), f"sent again: {done}, {job}"
        self.look("resend_job")

    @precondition(lambda self: self._open_work(0))
    @rule(place=places, attempt=st.integers(0, 2))
    def a_forged_message_names_a_job_for_people(self, place: int, attempt: int) -> None:
        job = self._some_work(place)
        self.world.queue.append(MessageCopy(job.id, job.run, attempt))
        assert not self._start(self.world.receive(len(self.world.queue) - 1))

    def _some_work(self, place: int) -> Job:
        job = self._open_work(place)
        assert job is not None
        return job

    # Beats.

    @rule(number=beats, batch=st.sampled_from([1, BATCH]), at_once=mostly)
    def a_beat_ticks(self, number: int, batch: int, at_once: bool) -> None:
        self._tick(self.world.beats[number], batch, "confirm", at_once)

    @rule(number=beats, stops_after=st.sampled_from(["mark", "mark", "submit", "publish"]), at_once=st.booleans())
    def a_beat_ticks_and_stops_midway(self, number: int, stops_after: str, at_once: bool) -> None:
        """Do a tick up to a step; what is left to do stays in the beat's memory, until it goes on or dies."""
        self._tick(self.world.beats[number], BATCH, stops_after, at_once)

    def _tick(self, beat: Beat, batch: int, stops_after: str, at_once: bool = True) -> None:
        """Wait until something is due, and do what a tick does."""
        self._plan_what_is_new(beat)
        due = [task.next_run_at for task in self.ledger.tasks.values() if task.enabled and task.next_run_at is not None]
        if due and min(due) > self.world.now:
            self.world.pass_by(min(min(due) - self.world.now, HOUR))
        marks = len(beat.marked)
        submitted = self.world.mark(beat, batch, at_once=at_once)
        self.look("mark")
        is_marked = len(beat.marked) > marks
        if stops_after == "mark" or not (is_marked or submitted):
            return
        if is_marked:
            beat.marked.rotate(1)  # what it has in its memory from before stays there
            self._submit(beat, judging=True, answered=True, again=False)
        if stops_after != "submit":
            self.world.publish(beat)
            self.look("publish")
        if stops_after == "confirm":
            self.world.confirm(beat)
            self.look("confirm")

    @precondition(lambda self: self._is_anything_unplanned())
    @rule(number=beats)
    def read_to_plan_later(self, number: int) -> None:
        self.world.read_unplanned(self.world.beats[number])

    @precondition(lambda self: self._with("planned"))
    @rule(place=places)
    def plan_late(self, place: int) -> None:
        self._plan(self._one("planned", place=place))

    def _is_anything_unplanned(self) -> bool:
        return any(task.unplanned for task in self.ledger.tasks.values())

    def _plan_what_is_new(self, beat: Beat) -> None:
        read = len(beat.planned)
        if self._is_anything_unplanned():
            self.world.read_unplanned(beat)
        if len(beat.planned) > read:
            beat.planned.rotate(1)
            self._plan(beat)

    def _plan(self, beat: Beat) -> None:
        stored = self.ledger.tasks
        outdated = {
            answer.name
            for answer in beat.planned[0]
            if answer.name in stored
            and (answer.revision, answer.planned_from)
            != (stored[answer.name].revision, stored[answer.name].planned_from)
        }
        self.world.plan(beat)
        self.look("plan", outdated)

    @precondition(lambda self: self._is_anything_due())
    @rule(number=beats, answered=mostly, at_once=st.booleans())
    def mark(self, number: int, answered: bool, at_once: bool) -> None:
        self.world.mark(self.world.beats[number], BATCH, answered, at_once)
        self.look("mark")

    def _is_anything_due(self) -> bool:
        return any(task.is_due(self.world.now) for task in self.ledger.tasks.values())

    @precondition(lambda self: self._with("marked"))
    @rule(place=places, judging=st.booleans(), answered=mostly, again=rarely)
    def submit(self, place: int, judging: bool, answered: bool, again: bool) -> None:
        self._submit(self._one("marked", place=place), judging, answered, again)

    @precondition(lambda self: self._with("marked"))
    @rule(place=places, judging=st.booleans())
    def a_beat_marks_again_before_it_submits(self, place: int, judging: bool) -> None:
        """Submit a decision whose mark has lapsed, after the same beat has marked the same rows once more."""
        beat = self._one("marked", place=place)
        self.world.pass_by(LEASE + SECOND)
        self.world.mark(beat)
        self.look("mark")
        self._submit(beat, judging, answered=True, again=False)

    def _submit(self, beat: Beat, judging: bool, answered: bool, again: bool) -> None:
        others = self._not_marked(beat, beat.marked[0])
        submitted = self.world.submit(beat, judging, answered, again)
        assert not submitted & others, f"submitted without its mark: {submitted & others}"
        self.look("submit", others)

    def _not_marked(self, beat: Beat, marked: Decided) -> set[str]:
        """Return the names whose mark of then is no longer there."""
        stored = self.ledger.tasks
        return {
            answer.row.name
            for answer in (*marked.decisions, *marked.postponed)
            if answer.row.name in stored
            and (beat.id, answer.row.marked_at, answer.row.next_run_at)
            != (
                stored[answer.row.name].marked_by,
                stored[answer.row.name].marked_at,
                stored[answer.row.name].next_run_at,
            )
        }

    @rule(number=beats)
    def a_turn_in_the_queue_fails(self, number: int) -> None:
        """Give the first job of the ordered group its turn, let it fail, and let another beat give the next turn."""
        beat, other = self.world.beats[number], self.world.beats[number - 1]
        self._tick(beat, BATCH, "confirm")
        beat.store.grant_slots(BATCH)
        self.look("grant_slots")
        self.world.recover(beat)
        self.look("recover")
        self.world.publish(beat)
        for copy in [copy for copy in self.world.queue if self.ledger.jobs[copy.job].group_name == QUEUE]:
            start = self.world.receive(self.world.queue.index(copy))
            if self._start(start):
                self._fail(start, "its process dies")
        other.store.grant_slots(BATCH)
        self.look("grant_slots")

    @precondition(lambda self: self._with("unsent"))
    @rule(place=places, outcome=st.sampled_from(["well", "well", "well", "stalled", "unheard", "refused"]))
    def publish(self, place: int, outcome: str) -> None:
        beat = self._one("unsent", place=place)
        if outcome == "stalled":
            self.world.publish_stalled(beat)
        elif outcome == "unheard":
            self.world.publish_unheard(beat)
        elif outcome == "refused":
            self.world.refuse(beat)
        else:
            self.world.publish(beat)
        self.look("refuse" if outcome == "refused" else "publish")

    @precondition(lambda self: self._with("sent"))
    @rule(place=places, again=rarely)
    def confirm(self, place: int, again: bool) -> None:
        self.world.confirm(self._one("sent", place=place), again)
        self.look("confirm")

    @precondition(lambda self: self.ledger.has("pending"))
    @rule(number=beats, answered=mostly)
    def recover(self, number: int, answered: bool) -> None:
        self.world.recover(self.world.beats[number], answered)
        self.look("recover")

    @precondition(lambda self: self.ledger.has("buffered"))
    @rule(number=beats, batch=st.sampled_from([1, BATCH]))
    def grant_slots(self, number: int, batch: int) -> None:
        self.world.beats[number].store.grant_slots(batch)
        self.look("grant_slots")

    @precondition(lambda self: self._comes_anything_after())
    @rule(number=beats, batch=st.sampled_from([1, BATCH]))
    def settle_downstream(self, number: int, batch: int) -> None:
        self.world.beats[number].store.settle_downstream(batch)
        self.look("settle_downstream")

    def _comes_anything_after(self) -> bool:
        return self.ledger.has("waiting") or any(task.after for task in self.ledger.tasks.values())

    @precondition(lambda self: self.ledger.has("pending", "sent", "running", "retrying"))
    @rule(number=beats)
    def recheck(self, number: int) -> None:
        self.world.beats[number].store.recheck(BATCH)
        self.look("recheck")

    @precondition(lambda self: self.ledger.has("sent", "running", "retrying"))
    @rule(number=beats, resending=mostly)
    def judge(self, number: int, resending: bool) -> None:
        """Judge all that is silent, after some silence."""
        self.world.pass_by(DEAD_AFTER)
        self.world.beats[number].store.judge(BATCH, resending)
        self.look("judge")

    @precondition(
        lambda self: self.ledger.has("buffered") or any(not task.enabled for task in self.ledger.tasks.values())
    )
    @rule(number=beats)
    def keep_house(self, number: int) -> None:
        store = self.world.beats[number].store
        store.promote_buffered()
        self.look("promote_buffered")
        store.resume_due()
        self.look("resume_due")

    @precondition(lambda self: self.ledger.pauses_due)
    @rule(number=beats)
    def pause_what_fails(self, number: int) -> None:
        self.world.beats[number].store.pause_failing(BATCH)
        self.look("pause_failing")

    @rule(number=beats)
    def pause_a_group_that_has_failed(self, number: int) -> None:
        self.world.beats[number].store.pause_failed_groups()
        self.look("pause_failing")

    @precondition(lambda self: self._with("marked", "unsent", "sent"))
    @rule(place=places, how=st.sampled_from(["stopped", "killed", "killed and started again"]))
    def a_beat_ends(self, place: int, how: str) -> None:
        beat = self._one("marked", "unsent", "sent", place=place)
        if how == "stopped":
            self.world.hand_back(beat)
        else:
            self.world.die(beat, at_home=how != "killed")
        self.look("end")

    def _with(self, *memories: str) -> list[Beat]:
        return [beat for beat in self.world.beats if any(getattr(beat, memory) for memory in memories)]

    def _one(self, *memories: str, place: int) -> Beat:
        found = self._with(*memories)
        return found[place % len(found)]

    # The broker and the workers.

    @precondition(lambda self: self.world.queue)
    @rule(place=places, what=st.sampled_from(["lost", "doubled", "doubled", "expired"]))
    def a_message_is(self, place: int, what: str) -> None:
        copy = self.world.queue.pop(place % len(self.world.queue))
        if what == "doubled":
            self.world.queue += [copy, copy]
        elif what == "expired":
            self.world.reports.end_unstarted(copy, "expired", "worker")
            self.look("expire")

    @precondition(lambda self: self.world.queue)
    @rule(place=places, answered=mostly, heard_before=rarely, survives=mostly)
    def receive(self, place: int, answered: bool, heard_before: bool, survives: bool) -> None:
        """Receive a message and ask to start it.

        Args:
            place: which message.
            answered: whether the first answer comes through; without it the same start asks again.
            heard_before: whether the heartbeat speaks for the start before that has asked.
            survives: whether its process lives on; a dead one reports nothing more.
        """
        start = self.world.receive(place % len(self.world.queue))
        if heard_before:
            self.world.reports.heartbeat(start.worker, [start], DEAD_AFTER)
            self.look("heartbeat")
        if self._start(start):
            assert answered or self.world.start(start) is StartResult.STARTED, "it does not know its own token"
            if not survives:
                self.world.bodies.remove(start)

    @precondition(lambda self: self.world.queue)
    @rule()
    def the_workers_work(self) -> None:
        self._work()

    def _work(self) -> None:
        """Start and finish whatever lies in the queue."""
        while self.world.queue:
            start = self.world.receive(0)
            if self._start(start):
                self.world.bodies.remove(start)
                self._report("finish", start, partial(self.world.reports.finish, start, "succeeded"), later=False)

    def _start(self, start: Start) -> bool:
        verdict = self.world.start(start)
        if verdict is StartResult.STARTED:
            self.ledger.starts(start)
        self.look("start")
        return verdict is StartResult.STARTED

    @precondition(lambda self: self.world.bodies)
    @rule(
        place=places,
        end=st.sampled_from(["succeeded", "succeeded", "failed", "retry", "give_up_start", "requeue"]),
        resend=st.booleans(),
        later=rarely,
    )
    def a_body_ends(self, place: int, end: str, resend: bool, later: bool) -> None:
        start = self.world.bodies.pop(place % len(self.world.bodies))
        reports = self.world.reports
        if end == "retry":
            self.world.queue.append(MessageCopy(start.job, start.run, start.attempt + 1))  # Celery does so first
            self._report("retry", start, partial(reports.retry, start, SECOND, "it failed"), later)
        elif end == "give_up_start":
            self._report("give_up_start", start, partial(reports.give_up_start, start, "its process died"), later)
        elif end == "requeue":
            self._report("requeue", start, partial(reports.requeue, start, "its process died", resend), later=False)
            self.world.queue.append(MessageCopy(start.job, start.run, start.attempt))
            self.ledger.may_start_again(start)
        else:
            self._report("finish", start, partial(reports.finish, start, end), later)

    @rule(number=beats, then=st.sampled_from(["its message comes again", "its process dies", "somebody decides"]))
    def jobs_of_a_tick_fail(self, number: int, then: str) -> None:
        """Let a beat tick, let what it sends fail, and have each start heard of again: its job is not its any more."""
        self.world.pass_by(61 * SECOND)
        self._tick(self.world.beats[number], BATCH, "confirm")
        for _ in list(self.world.queue):
            start = self.world.receive(0)
            if self._start(start):
                self._fail(start, then)

    def _fail(self, start: Start, then: str) -> None:
        reports = self.world.reports
        self.world.bodies.remove(start)
        self._report("finish", start, partial(reports.finish, start, "failed"), later=False)
        if then == "its process dies":
            self._report("give_up_start", start, partial(reports.give_up_start, start, "its process died"), later=False)
            return
        if then == "somebody decides" and self.ledger.jobs[start.job].state == "error":
            self.author.decide(start.job, run_again=True)
            self.look("decide")
        self.world.queue.append(MessageCopy(start.job, start.run, start.attempt))
        self._start(self.world.receive(len(self.world.queue) - 1))

    @precondition(lambda self: self.late)
    @rule(again=rarely)
    def a_late_report_arrives(self, again: bool) -> None:
        step, start, report = self.late[0] if again else self.late.popleft()
        self._report(step, start, report, later=False)

    def _report(self, step: str, start: Start, report: Callable[[], bool], later: bool) -> None:
        if later:
            self.late.append((step, start, report))
            return
        before = self.ledger.jobs[start.job]
        changed = report()
        assert not changed or before.token in (None, start.token), (
            f"{step} of {start} changes what is not its: {before}"
        )
        self.look(step)

    @precondition(lambda self: self.world.bodies)
    @rule()
    def heartbeat(self) -> None:
        self.world.reports.heartbeat("worker", self.world.bodies, DEAD_AFTER)
        self.look("heartbeat")

    # The end.

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # else a step has failed, and that is what counts
                self.come_to_rest()
        finally:
            self.author.close()
            self.world.close()

    def come_to_rest(self) -> None:
        """Let one healthy beat and one healthy worker do what is left: first what is due, then what is under way."""
        if self.author.holds is not None:
            self.author.let_go(keep=True)
            self.look("author")
        beat = self.world.new_beat()
        beat.store.recheck_future_marks()
        self.look("recheck")
        for _ in range(CYCLES_TO_REST):
            if self._run_cycle(beat):
                continue
            if not self._held():
                break
            self.world.pass_by(LEASE)
        left = self._left(beat) + self._held()
        assert not left, f"it never comes to rest: {left}"
        assert not self.ledger.forgotten(), f"a beat would never look at it: {self.ledger.forgotten()}"
        self.ledger.account(self.world.now)
        self.author.take_apart()
        self.look("author")
        for name in self.ledger.tasks:
            self.author.pause(name, None)
        self.look("author")
        for _ in range(HOURS_TO_REST):
            while self.ledger.has("error"):
                self.somebody_decides(place=0, run_again=False)
            self.somebody_handles_the_queue("resume")
            while (job := self._open_work(0)) is not None:
                self.author.work("cancel_job", id=str(job.id))
                self.look("cancel_job")
            if not self._active():
                break
            self.world.pass_by(HOUR)
            beat.store.judge(100, True)
            self.look("judge")
            self._run_cycle(beat)
        assert not self._active(), f"jobs that never end: {self._active()}"

    def _run_cycle(self, beat: Beat) -> bool:
        """Run one cycle of a beat, and let a worker run its jobs; return whether there is anything left to do."""
        beat.store.pause_failing(BATCH)
        beat.store.pause_failed_groups()
        self.look("pause_failing")
        beat.store.resume_due()
        self.look("resume_due")
        beat.store.recheck(BATCH)
        self.look("recheck")
        self._plan_what_is_new(beat)
        beat.store.settle_downstream(BATCH)
        self.look("settle_downstream")
        beat.store.grant_slots(BATCH)
        self.look("grant_slots")
        self.world.recover(beat)
        self.look("recover")
        self.world.mark(beat, at_once=True)
        self.look("mark")
        if beat.marked:
            self.world.submit(beat, judging=False)
            self.look("submit")
        self.world.publish(beat)
        self.world.confirm(beat)
        self.look("confirm")
        self._work()
        return bool(self._left(beat))

    def _left(self, beat: Beat) -> list[str]:
        view = beat.store.look()
        return [
            what
            for what in ("due", "unplanned", "unsent", "slots_to_grant", "downstream", "failing", "resumes")
            if getattr(view, what)
        ]

    def _held(self) -> list[Any]:
        """Return the rows and jobs that are marked: no beat that marked one is alive any more."""
        return list(
            self.world.database.execute(
                "select name from pgbeat.periodic_task where marked_by is not null and enabled "
                "union all select id::text from pgbeat.active_job where marked_by is not null"
            )
        )

    def _active(self) -> list[Any]:
        return list(self.world.database.execute("select * from pgbeat.active_job"))
