"""A group whose commands are imported when they are called, and not before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from celery_pgbeat.cli.command_line.encoding import as_utf8, escape_what_stdout_lacks
from celery_pgbeat.cli.command_line.target_options import target_options
from celery_pgbeat.operations import Operation
from celery_pgbeat.texts.suggestions import did_you_mean


class LazyGroup(click.Group):
    """A group of commands, each of which is imported when it is called.

    Args:
        lazy: the commands by name, each with its line in the help.
        places: where commands are, as `module:attribute` in `celery_pgbeat.cli`. By default the command `a-b` is the
            attribute `a_b` of the module `a_b`; that of `import` is `import_`.
        operations: of the table of operations, by the names of their commands. They come after `lazy` in the help.
        sections: the parts of the help, each with the names of its commands in order.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str],
        places: Mapping[str, str] | None = None,
        operations: Mapping[str, Operation] | None = None,
        sections: Mapping[str, Collection[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.params[:0] = target_options()
        self._operations = dict(operations or {})
        self._summaries = {**lazy, **{name: one.summary for name, one in self._operations.items()}}
        self._places = dict(places or {})
        self._sections = dict(sections or {"Commands": list(self._summaries)})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, in whatever locale it was typed."""
        escape_what_stdout_lacks()
        return super().parse_args(ctx, [as_utf8(argument) for argument in args])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Return the names in the order of the help."""
        return [name for names in self._sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command."""
        if cmd_name not in self._summaries:
            return None
        operation = self._operations.get(cmd_name)
        if operation is not None and operation.command.said:
            from celery_pgbeat.cli.command_line.operation_command import command_of

            return command_of(operation)
        own = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        module, _, attribute = self._places.get(cmd_name, own).partition(":")
        command: click.Command = getattr(import_module(f"celery_pgbeat.cli.{module}"), attribute or module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest a similar one if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            hint = did_you_mean(args[0], self._summaries) or f"; {ctx.command_path} --help lists them."
            raise click.UsageError(f"No such command {args[0]!r}{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        widest = max(map(len, self.list_commands(ctx)))
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), self._summaries[name]) for name in names])
