"""Sets a situation up, and reads what beats and workers have in their memory by then."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from celery_pgbeat.planning import (
    NOTHING,
    BackfillRow,
    BackfillStep,
    Decision,
    Due,
    Planned,
    Postponed,
    Rules,
    decide,
    plan,
    range_of,
)
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.situations import NOON, Situation, ago
from tests.pairs.saying import LEASE
from tests.pairs.situations import BACKFILL, NAME, A, Setting
from tests.pairs.stage import Stage

RULES = Rules(
    timezone="UTC",
    on_time=timedelta(seconds=32),
    lease=timedelta(seconds=15),
    pickup_deadline=timedelta(minutes=5),
)


class Job(NamedTuple):
    """A job of the situation, active or lost."""

    id: UUID
    about: str  # which one, where there are several
    state: str
    run: int
    attempt: int
    token: UUID | None
    holder: str  # the beat that holds it, or has held it
    spaced: bool
    tells_apart: bool  # a failure comes to something else than a success


@dataclass(slots=True)
class Memory:
    """What is in the memory of beat A and of the workers."""

    decisions: list[Decision] = field(default_factory=list)
    postponed: list[Postponed] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)
    filling: BackfillRow | None = None
    step: BackfillStep | None = None
    steps: list[UUID] = field(default_factory=list)  # the ids of the step's jobs
    jobs: list[Job] = field(default_factory=list)
    problems: list[tuple[Due, str]] = field(default_factory=list)
    is_for_people: bool = False
    is_silent: bool = False  # whether a job has been silent for too long, so that somebody judges it


def set_up(stage: Stage, setting: Setting) -> Memory:
    """Set it up, and let beat A read, mark and decide."""
    memory = Memory()
    with stage.set_up() as situation:
        _groups(situation, setting)
        for row in ([setting.row] if setting.row is not None else []) + [*setting.others]:
            columns = dict(row)
            name = columns.pop("name", NAME)
            written: dict[str, Any] = {
                key: columns.pop(key) for key in ("enabled", "pause_reason", "paused_until") if key in columns
            }
            situation.task(name, **columns)
            if written:
                _paused(situation, name, written)
        situation.clock.stand_at(NOON)
        if setting.astray:
            situation.session.rows("update pgbeat.periodic_task set group_paused = false")
        for columns in setting.jobs:
            values = {key: value for key, value in columns.items() if key not in ("state", "since")}
            situation.job(columns["state"], columns.get("since", ago(minutes=10)), **values)
        for columns in setting.finals:
            values = {key: value for key, value in columns.items() if key not in ("state", "at")}
            situation.final(columns["state"], columns["at"], **values)
        _failures(situation, setting)
        if setting.backfill is not None:
            situation.session.rows(
                "insert into pgbeat.backfill (id, periodic_task, since, until, mode, max_active) "
                "values (%s, %s, %s, %s, %s, %s)",
                str(BACKFILL),
                NAME,
                *(setting.backfill[key] for key in ("since", "until", "mode", "max_active")),
            )
        _remember(memory, BeatQueries(stage.database, A, LEASE), mark=setting.mark)
        memory.jobs = _jobs(stage)
        memory.is_for_people = setting.row is not None and setting.row.get("kind") == "human"
        memory.is_silent = situation.session.value(
            "select exists (select from pgbeat.active_job where busy_until < pgbeat.now())"
        )
    return memory


def _groups(situation: Situation, setting: Setting) -> None:
    for group in setting.groups:
        situation.session.rows(
            "insert into pgbeat.task_group (name, max_active, paused, pause_on_failure) values (%s, %s, %s, %s)",
            group["name"],
            group.get("max_active"),
            group.get("paused", False),
            group.get("pause_on_failure", False),
        )


def _paused(situation: Situation, name: str, written: dict[str, Any]) -> None:
    """Pause the row as it stood: a pause is written by an author, a day ago."""
    places = ", ".join(f"{column} = %s" for column in written)
    situation.session.rows(f"update pgbeat.periodic_task set {places} where name = %s", *written.values(), name)


def _failures(situation: Situation, setting: Setting) -> None:
    if setting.failures is None:
        return
    columns = ", ".join(setting.failures)
    places = ", ".join(["%s"] * len(setting.failures))
    situation.session.rows(
        f"insert into pgbeat.periodic_task_state (name, failures_from, {columns}) "
        f"select name, failures_from, {places} from pgbeat.periodic_task where name = %s",
        *setting.failures.values(),
        NAME,
    )


def _remember(memory: Memory, store: BeatQueries, mark: bool) -> None:
    memory.planned = [plan(row, RULES) for row in store.unplanned(10)]
    if mark:
        for row in store.mark(10):
            memory.problems.append((row, "cannot be planned"))
            answer = decide(row, RULES)
            if isinstance(answer, Decision):
                memory.decisions.append(answer)
            else:
                memory.postponed.append(answer)
        memory.filling = store.mark_backfill("UTC")
    if memory.filling is None:
        return
    filling = memory.filling
    chosen = range_of(filling, filling.since, filling.until, filling.mode, RULES)
    memory.step = chosen.step(filling.reached, NOTHING, filling.room, filling.undecided_from)
    memory.steps = [chosen.job_id(filling.backfill, occurrence) for occurrence in memory.step.jobs]


def _jobs(stage: Stage) -> list[Job]:
    rows = stage.situation.session.rows(
        "select id, state, run, attempt, token, marked_by, min_gap is not null as spaced, "
        "pause_after_failures is not null or stop_request is not null as tells_apart from pgbeat.active_job "
        "union all select id, state, run, attempt, null, null, restart_data ? 'min_gap', false "
        "from pgbeat.finished_job where restart_data is not null order by id"
    )
    return [
        Job(
            UUID(str(row["id"])),
            str(number) if len(rows) > 1 else "",
            row["state"],
            row["run"],
            row["attempt"],
            row["token"] and UUID(str(row["token"])),
            row["marked_by"] or A,
            row["spaced"],
            row["tells_apart"],
        )
        for number, row in enumerate(rows, 1)
    ]
