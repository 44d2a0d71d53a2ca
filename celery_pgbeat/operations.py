"""The table of operations: what a person can do with periodic tasks, jobs and groups, each said once.

Made from it: the commands of the shell that need nothing of their own (`operation_command.py`), and the actions of the
dashboard and of Django's admin (`web/actions/`). The method of `PgBeat` of the same name says the types, the errors and
an example.

Pure: imports nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operation, beside its subject.

    Attributes:
        name: in SQL and Python, of the option, and of the field of a form.
        type: what Python takes: str, int, bool, datetime, or a list or dict of JSON.
        label: what it is called; of a bool, what it does.
        hint: what may be given, or what becomes of it.
        choices: the values that are allowed, with what they mean. The first is the default; a command has an option for
            each of the others.
        is_required: whether it must be given, if only as no number; a command has it without an option.
        is_long: whether it may be many lines.
        only_shell: whether no page asks for it.
        is_user: whether it names the user; a page that knows its user does not ask for it.
    """

    name: str
    type: Any
    label: str
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    is_required: bool = False
    is_long: bool = False
    only_shell: bool = False
    is_user: bool = False

    @property
    def help(self) -> str:
        """What it is, in a sentence."""
        return f"{self.label}; {self.hint}." if self.hint else f"{self.label}."


@dataclass(frozen=True, slots=True)
class Command:
    """The command of an operation.

    Attributes:
        words: such as `job cancel`.
        said: what it prints, with the arguments. A command without it has a module of its own.
        state: the state that a job has then.
    """

    words: str
    said: str = ""
    state: str = ""

    @property
    def name(self) -> str:
        """The last of its words."""
        return self.words.split()[-1]


@dataclass(frozen=True, slots=True)
class Page:
    """The page with the form of an operation, in the dashboard and in Django's admin.

    Attributes:
        label: of the links to it, and what its heading begins with.
        button: what the button says that carries it out.
        done: the word for it in an address.
        said: what the next page says.
        back: the page of the subject.
        states: those of the subject in which pages link to it; empty for all. A periodic task is `enabled` or `paused`,
            a task for people that a person has is `taken`.
    """

    label: str
    button: str
    done: str
    said: str
    back: Literal["task", "job", "groups", "work"]
    states: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        subject: what it is done to, by its name or id.
        name: of the method in Python, and of the function in SQL if there is one.
        summary: what it does, in a sentence.
        effect: what becomes of the subject; in the help of the command, and on the page above the form.
        command: its command.
        page: its page; None for an operation that no page offers.
        arguments: what it takes beside the subject.
        by_beat: whether a beat carries it out.
        may_be_new: whether it makes a group that is not there.
        role: the least role that may do it.
    """

    subject: Literal["periodic task", "job", "group"]
    name: str
    summary: str
    effect: str
    command: Command
    page: Page | None = None
    arguments: Sequence[Argument] = ()
    by_beat: bool = False
    may_be_new: bool = False
    role: Literal["author", "person"] = "author"

    @property
    def address(self) -> str:
        """Its word in addresses."""
        return self.name.replace("_", "-")


of_task = partial(Operation, "periodic task")
of_job = partial(Operation, "job")
of_group = partial(Operation, "group")
UNSTARTED = ("pending", "sent", "retrying", "buffered", "waiting")
UNSUCCESSFUL = ("failed", "lost", "expired", "revoked")
REASON = Argument("reason", str, "Why", "all who may look see it; up to 1,000 characters")
REASON_OF_JOB = Argument("reason", str, "Why", "recorded in the job's error, with who did it; up to 1,000 characters")
FORCE = Argument("force", bool, "Even if another of its jobs is not final")
ONLY_OWNER = Argument("owner", str, "Only if this person has it", "default: any", only_shell=True)

OPERATIONS: Sequence[Operation] = (
    of_task(
        "trigger",
        "Start a job of periodic tasks now.",
        "A beat sends one job now, independent of the schedule. The next run does not change.",
        Command("trigger"),
        Page("Trigger", "Trigger", "triggered", "A job was made. A beat sends it.", "task"),
        (
            Argument("args", list, "Positional arguments", "a JSON array; empty: those of the periodic task"),
            Argument("kwargs", dict, "Keyword arguments", "a JSON object; empty: those of the periodic task"),
            FORCE,
        ),
        by_beat=True,
    ),
    of_task(
        "pause",
        "Pause periodic tasks.",
        "Occurrences during the pause are skipped and not caught up. Messages already at the broker still run.",
        Command("pause"),
        Page("Pause", "Pause", "paused", "It is paused.", "task", ("enabled",)),
        (
            REASON,
            Argument(
                "until",
                datetime,
                "Until",
                "2026-12-24 18:00, tomorrow, or a duration such as 2d; empty: until a person resumes it",
            ),
        ),
    ),
    of_task(
        "resume",
        "Resume paused periodic tasks.",
        "It continues with its next occurrence; missed ones are not caught up.",
        Command("resume"),
        Page("Resume", "Resume", "resumed", "It is resumed.", "task", ("paused",)),
    ),
    of_group(
        "define_group",
        "Set the rules of a group: a limit, an order, groups that come first.",
        "An option that is left out has no effect on its jobs any more; a pause stays.",
        Command("group define", "The group {name!r}: {rules}."),
        arguments=(
            Argument("max_active", int, "How many of its jobs may be under way at once"),
            Argument("ordered", bool, "Its jobs run one at a time, in order of their scheduled time"),
            Argument("waits_for", list, "A group that must have nothing to do before a job of this one gets its turn"),
            Argument("pause_on_failure", bool, "A job that fails or is lost pauses the group"),
            Argument("rate_limit", str, "How many of its jobs are sent", "10/s, 100/m or 5/h"),
        ),
        may_be_new=True,
    ),
    of_group(
        "limit_group",
        "Set how many jobs of a group may be under way at once.",
        "Other jobs wait, and start in order of their scheduled time. A lower limit ends no job.",
        Command("group limit", "The group {name!r}: {rules}."),
        Page("Limit", "Set the limit", "limited", "The limit is set.", "groups"),
        (
            Argument(
                "max_active", int, "Jobs at once", "in the whole cluster, at least 1; empty: no limit", is_required=True
            ),
        ),
        may_be_new=True,
    ),
    of_group(
        "pause_group",
        "Pause the periodic tasks of a group.",
        "None of its tasks is started until the group is resumed. Messages already at the broker still run.",
        Command("group pause", "Paused the group {name!r} until you resume it."),
        Page("Pause", "Pause the group", "group-paused", "The group is paused.", "groups", ("active",)),
        (REASON,),
    ),
    of_group(
        "resume_group",
        "Resume a paused group, or open a finished one.",
        "Jobs that wait in it go on. Missed runs are not caught up; a paused task stays paused.",
        Command("group resume", "Resumed the group {name!r}."),
        Page("Resume", "Resume the group", "group-resumed", "The group is resumed.", "groups", ("paused", "finished")),
        (Argument("retry", bool, "First rerun the jobs whose failure paused it"),),
    ),
    of_group(
        "finish_group",
        "Finish a group: it takes no new jobs.",
        "Its occurrences are skipped, and `trigger` is refused, until `group resume` opens it. Jobs that wait or are "
        "under way go on.",
        Command("group finish", "The group {name!r} takes no new jobs until you resume it."),
    ),
    of_group(
        "remove_group",
        "Remove a group that no periodic task names.",
        "Its settings and its pause go with it. It is refused if periodic tasks name it, or another group waits for "
        "it.",
        Command("group remove", "Removed the group {name!r}."),
    ),
    of_job(
        "retry_job",
        "Run a job that has failed again.",
        "A job that waits for a decision runs again under its own id. For any other job a new one is made.",
        Command("job retry"),
        Page("Run again", "Run it again", "retried", "It runs again.", "job", ("error", *UNSUCCESSFUL)),
        (FORCE,),
        by_beat=True,
    ),
    of_job(
        "fail_job",
        "Give up a failed job that waits for a decision.",
        "It ends as failed.",
        Command("job fail", "Gave up a job of {name!r}: {job}", "failed"),
        Page("Give up", "Give it up", "failed", "It was given up.", "job", ("error",)),
        (REASON_OF_JOB,),
    ),
    of_job(
        "resend_job",
        "Have a job sent again whose message the broker has lost.",
        "A beat sends its message at once, under the same id. If the first one still exists, the guard starts only one "
        "of the two.",
        Command("job resend", "A beat sends a job of {name!r} again: {job}", "pending"),
        Page("Send again", "Send it again", "resent", "A beat sends it again.", "job", ("sent",)),
        by_beat=True,
    ),
    of_job(
        "pick_up",
        "Take a task for people.",
        "Nobody else can take it until it is finished or given back.",
        Command("work take", "Took a job of {name!r}, as {owner!r}: {job}", "running"),
        Page("Pick up", "Pick it up", "picked-up", "You have picked it up.", "work", ("created",)),
        (
            Argument(
                "owner",
                str,
                "Who",
                "the name by which your application knows this person",
                is_required=True,
                is_user=True,
            ),
            Argument("targets", list, "Roles of this person", only_shell=True),
        ),
        role="person",
    ),
    of_job(
        "finish",
        "Finish a task for people.",
        "It ends as succeeded or failed.",
        Command("work done", "Finished a job of {name!r} as {outcome}: {job}", "{outcome}"),
        Page("Finish", "Finish it", "finished", "It is finished.", "work", ("taken",)),
        (
            Argument(
                "outcome",
                str,
                "Outcome",
                choices={"succeeded": "it is done", "failed": "it could not be done"},
                is_required=True,
            ),
            Argument("note", str, "A note about the result", "up to 1,000 characters", is_long=True),
            ONLY_OWNER,
        ),
        role="person",
    ),
    of_job(
        "release",
        "Give a task for people back.",
        "Then others can pick it up.",
        Command("work release", "Released a job of {name!r}: {job}", "created"),
        Page("Give back", "Give it back", "released", "It was given back.", "work", ("taken",)),
        (ONLY_OWNER,),
        role="person",
    ),
    of_job(
        "cancel_job",
        "Cancel a job that no worker runs, or one for people.",
        "It ends as revoked. If its message is still at the broker, the guard drops it. A job that a worker runs is "
        "refused: revoke it with Celery.",
        Command("job cancel", "Cancelled a job of {name!r}: {job}", "revoked"),
        Page("Cancel", "Cancel it", "cancelled", "It is cancelled.", "job", (*UNSTARTED, "created", "taken")),
        (REASON_OF_JOB,),
    ),
)


def operations_of(group: str) -> Mapping[str, Operation]:
    """Return the operations whose commands are in a group of commands, by their names; in none, if it is empty."""
    return {one.command.name: one for one in OPERATIONS if one.command.words == f"{group} {one.command.name}".strip()}


def offered(subject: str, state: str) -> Sequence[Operation]:
    """Return the operations to which the pages of a subject in this state link."""
    pages = ((one, one.page) for one in OPERATIONS if one.subject == subject and one.page is not None)
    return [one for one, page in pages if not page.states or state in page.states]


def addresses_of(back: str) -> Sequence[str]:
    """Return the words of the addresses of the operations that go back to this page."""
    return [one.address for one in OPERATIONS if one.page is not None and one.page.back == back]
