"""Statements with one of their conditions taken away: what the model has to notice, or it proves nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import statement


@dataclass(frozen=True, slots=True)
class Mutant:
    """Statements of `sql/` and functions of the schema, with another text in a place of each.

    Attributes:
        where: the statements' and the functions' names.
        text: what is replaced, wherever it stands; white space counts as any white space. Of several texts each place
            has one.
        by: what stands there instead.
    """

    where: tuple[str, ...]
    text: str | tuple[str, ...]
    by: str

    def of(self, original: str) -> str:
        """Return the mutated text."""
        mutated, places = self._pattern.subn(lambda _: self.by, original)
        assert places, f"{self.where} does not say {self.text!r}"
        return mutated

    def places(self, original: str) -> int:
        """Return how often the text stands in the original."""
        return len(self._pattern.findall(original))

    @property
    def _pattern(self) -> re.Pattern[str]:
        texts = (self.text,) if isinstance(self.text, str) else self.text
        return re.compile("|".join(r"\s+".join(map(re.escape, text.split())) for text in texts))


MUTANTS = {
    "an unsent job is never taken over": Mutant(
        ("recover",),
        'and not "pgbeat".is_marked(job.marked_at,',
        'and job.marked_at is null and not "pgbeat".is_marked(null,',
    ),
    "a submit is not fenced by its own mark": Mutant(
        ("is_as_decided",), "stored.marked_at = is_as_decided.marked_at", "true"
    ),
    "a start forgets its own token": Mutant(("start",), "token = start.token or stop_request", "stop_request"),
    "a submit is not fenced by the instant": Mutant(
        ("is_as_decided",),
        "stored.marked_at = is_as_decided.marked_at and stored.next_run_at = is_as_decided.next_run_at",
        "true",
    ),
    "a postponement is not fenced": Mutant(
        ("postpone",), "and task.marked_by = postponed.beat and task.marked_at = postponed.marked_at", ""
    ),
    "a plan is not fenced": Mutant(
        ("plan",),
        "and task.revision = planned.revision and task.planned_from = planned.planned_from "
        "and task.planned_revision <> task.revision and task.planned_for is not distinct from planned.replaced",
        "",
    ),
    "a mark never lapses": Mutant(
        ("mark",), 'and not "pgbeat".is_marked(marked_at,', 'and marked_at is null and not "pgbeat".is_marked(null,'
    ),
    "an edit leaves what was planned ahead": Mutant(
        ("periodic_task_written", "plan"),
        ("new.planned_ahead := null; new.due_ahead := null;", "planned_ahead = null,"),
        "",
    ),
    "a submit at once does not look at the group": Mutant(
        ("mark",), "(limited or state = 'finished')", "(limited or state = 'finished') and false"
    ),
    "a submit at once does not look at failures": Mutant(
        ("mark",), "and (stored.pause_after_failures is null or not", "and (true or not"
    ),
    "a submit at once forgets when the next run is due": Mutant(
        ("mark",), "(coalesce(task.due_ahead, task.planned_ahead))", "(task.planned_ahead)"
    ),
    "a submit at once does not wait for other tasks": Mutant(("mark",), "and stored.after is null", ""),
    "a judge gives up what is not sent yet": Mutant(("judge",), "and state <> 'pending'", ""),
    "a start looks at neither attempt nor state": Mutant(
        ("start",),
        "and (token = start.token or stop_request is null and (attempt < start.attempt or attempt = start.attempt "
        "and state not in ('running', 'buffered', 'waiting')))",
        "",
    ),
    "a job that waits for a decision stays in the run that failed": Mutant(
        ("ask",), "run = least(asking.run + 1, 2000000000),", ""
    ),
    "a start leaves its job where it was to be looked at": Mutant(
        ("start",),
        "check_at = least(nullif(check_at, '-infinity'), \"pgbeat\".now() + make_interval(secs => dead_after))",
        "check_at = check_at",
    ),
    "a confirm leaves its job among those to be sent": Mutant(
        ("confirm",), "least(nullif(check_at, '-infinity'),", "least(check_at,"
    ),
    "a job that is given back is looked at later": Mutant(("give_back",), ", check_at = '-infinity'", ""),
    "a heartbeat does not bring the look forward": Mutant(
        ("heartbeat",), "check_at = least(nullif(job.check_at, '-infinity'),", "check_at = greatest(job.check_at,"
    ),
    "a pick-up does not look at the state": Mutant(
        ("pick_up",), "job.id = pick_up.id and job.state = 'created'", "job.id = pick_up.id"
    ),
    "a release does not look at the owner": Mutant(
        ("release",), "and (release.owner is null or job.owner = release.owner)", ""
    ),
    "a job is finished that nobody has": Mutant(("finish",), "and job.kind = 'human' and job.state = 'running'", ""),
    "a message starts a job for people": Mutant(("start",), "and kind = 'task'", ""),
    "what may be picked up stays so when it is taken": Mutant(
        ("work_changed",), "if tg_op <> 'INSERT' and old.state = 'created'", "if tg_op = 'DELETE'"
    ),
    "a promotion does not look at what is under way": Mutant(
        ("promote_first",), "where not exists (", "where true or not exists ("
    ),
    "an ordered group does not look at what is due": Mutant(
        ("why_held",), 'other := "pgbeat".due_in_group(known.name, first);', "other := null;"
    ),
    "an ordered group gives the turn to any job": Mutant(
        ("next_in",),
        "order by waiting.scheduled_for, waiting.origin <> 'manual', waiting.created_at, waiting.periodic_task, "
        "waiting.id",
        "order by waiting.id",
    ),
    "an ordered group has any number of turns": Mutant(
        ("most_active",), "case when known.ordered then 1 else known.max_active end", "known.max_active"
    ),
    "a failure stops its group only when a beat has paused it": Mutant(
        ("why_stopped",), "where failure.group_name = known.name", "where false"
    ),
    "an ordered group that is paused goes on": Mutant(("why_stopped",), "when known.paused then", "when false then"),
    "an occurrence does not wait for other tasks": Mutant(
        ("settle_downstream",), "if ends.missing = '{}' then", "if true then"
    ),
    "an end that did not succeed lets others go on": Mutant(
        ("lets_go_on",), "after_condition = 'finish' or", "after_condition <> 'finish' or"
    ),
    "an end of an earlier occurrence counts": Mutant(("first_end",), ">= since", ">= since - interval '3 minutes'"),
    "the end of a task is not noted": Mutant(
        ("active_job_gone",),
        'where exists (select from "pgbeat".dependency',
        'where not exists (select from "pgbeat".dependency',
    ),
    "a job that begins to wait is not noted": Mutant(
        ("active_job_waits",),
        'insert into "pgbeat".dependency_to_check (downstream) values (new.periodic_task);',
        "null;",
    ),
    "what ends while a row is due is forgotten": Mutant(
        ("decided_after",), 'insert into "pgbeat".dependency_to_check (downstream) values (new.name);', ""
    ),
    "the rounds of several tasks are mixed": Mutant(
        ("due_after",), "if occurrences[used[place]] < occurrence then", "if false then"
    ),
    "what is under way up to an occurrence does not count": Mutant(
        ("undone_from",), "job.periodic_task = stored.name and job.origin <> 'backfill'", "false"
    ),
    "the failure of a job is not noted": Mutant(
        ("active_job_gone",), "final.state in ('failed', 'lost')", "final.state in ('expired')"
    ),
}
FUNCTIONS = {
    *("ask", "promote_first", "periodic_task_written", "start", "mark", "confirm", "is_as_decided"),
    *("finish", "pick_up", "release", "work_changed"),
    *("why_held", "why_stopped", "next_in", "most_active", "active_job_gone", "active_job_waits"),
    *("settle_downstream", "lets_go_on", "first_end", "due_after", "decided_after", "undone_from"),
}


def mutate(mutant: Mutant, database: Database) -> Callable[[str, str], str]:
    """Mutate functions in the database, and return how statements are loaded from now on."""
    functions = FUNCTIONS.intersection(mutant.where)
    for name in functions:
        (row,) = database.execute(
            "select pg_get_functiondef(oid) as text from pg_proc "
            "where proname = %(name)s and pronamespace = 'pgbeat'::regnamespace",
            {"name": name},
        )
        database.execute(mutant.of(row.text).replace("%", "%%"))

    # Now, or a text that is in no statement would fail in the model, as if the model had noticed it.
    others = {name: mutant.of(statement(name, "pgbeat")) for name in mutant.where if name not in functions}

    def mutated(name: str, schema: str) -> str:
        return others.get(name) or statement(name, schema)

    return mutated
