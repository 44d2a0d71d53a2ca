"""Commands of one subject, in groups: `group list`, `backfill cancel`. Each also has a name of its own."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import periodic_task_names
from celery_pgbeat.cli.lazy_group import LazyGroup


class BackfillGroup(LazyGroup):
    """`backfill NAME ...` is `backfill start NAME ...`, the command from before there was a group."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the word `start` before a first word that is no command."""
        at = self._place_of_the_command(ctx, args)
        if at is not None and args[at] not in self._summaries:
            args = [*args[:at], "start", *args[at:]]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Return the commands, and the names of periodic tasks."""
        return [*super().shell_complete(ctx, incomplete), *periodic_task_names(ctx, self.params[0], incomplete)]

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
    lazy={
        "list": "List the groups of periodic tasks.",
        "limit": "Set how many jobs of a group may be under way at once.",
        "pause": "Pause the periodic tasks of a group.",
        "resume": "Resume a paused group.",
        "remove": "Remove a group that no periodic task names.",
    },
    places={
        "list": "groups",
        "limit": "limit_group",
        "pause": "pause_group",
        "resume": "resume_group",
        "remove": "remove_group",
    },
    synonyms={"ls": "list", "rm": "remove", "delete": "remove"},
)
def group() -> None:
    """List, limit, pause, resume or remove groups of periodic tasks."""


@click.group(
    cls=BackfillGroup,
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
