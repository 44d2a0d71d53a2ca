"""Commands of one subject, in groups: `group list`, `backfill cancel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.lazy_group import LazyGroup
from celery_pgbeat.operations import operations_of

Completion = Callable[[click.Context, click.Parameter, str], list[Any]]


class DefaultGroup(LazyGroup):
    """A group with a command that is meant where none is named: `job ID` is `job show ID`.

    Args:
        default: that command.
        completes: what completes its first argument.
    """

    def __init__(self, *args: Any, default: str, completes: Completion | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._default = default
        self._completes = completes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command before a first word that is no command."""
        at = self._place_of_the_command(ctx, args)
        if at is not None and args[at] not in self._summaries:
            args = [*args[:at], self._default, *args[at:]]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Return the commands, and what completes the default one."""
        more = self._completes(ctx, self.params[0], incomplete) if self._completes else []
        return [*super().shell_complete(ctx, incomplete), *more]

    def _place_of_the_command(self, ctx: click.Context, args: list[str]) -> int | None:
        """Return the place of the first word behind our own options; None if there is none, or help is wanted."""
        own = [name for param in self.params for name in param.opts]
        at = 0
        while at < len(args) and args[at] not in ctx.help_option_names:
            if args[at] in own:
                at += 2
            elif args[at].startswith(tuple(f"{name}=" for name in own)):
                at += 1
            else:
                return at
        return None


@click.group(
    cls=LazyGroup,
    lazy={"list": "List the groups of periodic tasks."},
    places={"list": "groups"},
    operations=operations_of("group"),
)
def group() -> None:
    """List, define, pause, resume, finish or remove groups of periodic tasks."""


@click.group(
    cls=DefaultGroup,
    default="start",
    completes=periodic_task_names,
    lazy={
        "start": "Submit the occurrences of a time range.",
        "list": "List the backfills and their progress.",
        "cancel": "Cancel a backfill; jobs that it has submitted go on.",
    },
    places={"start": "backfill", "list": "backfills", "cancel": "cancel_backfill"},
)
def backfill() -> None:
    """Submit the occurrences of a time range, each as a job of its own, such as missed ones.

    `backfill NAME SINCE UNTIL` is short for `backfill start NAME SINCE UNTIL`. If a periodic task is called start, list
    or cancel, write `backfill start` before its name.
    """


@click.group(
    cls=DefaultGroup,
    default="show",
    lazy={"show": "Show one job in full."},
    places={"show": "job", "retry": "retry_job"},
    operations=operations_of("job"),
)
def job() -> None:
    """Show one job, run it again, have it sent again, cancel it, or decide about it.

    `job ID` is short for `job show ID`. `jobs` lists the jobs.
    """


@click.group(
    cls=LazyGroup,
    lazy={"list": "List what a person has, and may take."},
    places={"list": "my_work"},
    operations=operations_of("work"),
)
def work() -> None:
    """List, take, give back or finish tasks for people (kind = 'human').

    `job cancel` cancels one.
    """
