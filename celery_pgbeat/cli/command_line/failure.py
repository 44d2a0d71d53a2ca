"""Errors on the command line: one line on stderr, no traceback, and an exit code for each kind.

If one place of a text is wrong, two more lines point at it.
"""

from __future__ import annotations

import os
import re
import sys
from typing import IO, Any

import click

from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.command_line.target_options import target_options
from celery_pgbeat.cli.output.values import lines_of, text
from celery_pgbeat.errors import DatabaseUnavailable, InvalidSchedule, InvalidSetting, PgBeatError
from celery_pgbeat.operations import OPERATIONS
from celery_pgbeat.texts.safe_text import one_line

UNHEALTHY = 3  # exit code of a probe that fails and of a database out of reach
AROUND = 40  # characters of a long text that are shown on each side of the wrong place
# What a refusal may advise, by the name of the function: it is the same text for SQL, Python and the shell.
COMMANDS = {"schedule": "add", "unschedule": "remove", **{one.name: one.command.words for one in OPERATIONS}}
FUNCTION = re.compile(rf"(?<![.\w])({'|'.join(COMMANDS)})\(\)")


class Failure(click.ClickException):
    """Ends a command with a message; exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to stderr; its line breaks are ours, the rest may come from a row."""
        stream = file or sys.stderr
        sentence, *places = map(one_line, self.format_message().split("\n"))
        message = "\n".join([*lines_of(f"Error: {sentence}", stream), *places])
        colour = False if os.environ.get("NO_COLOR") else None
        click.echo(message.replace("Error", click.style("Error", fg="red"), 1), file=stream, color=colour)


class WrongSettings(Failure):
    """A setting, or its environment variable, is missing or wrong; exit code 2, as for any wrong usage."""

    exit_code = 2


class OutOfReach(Failure):
    """The database cannot be used; exit code 3."""

    exit_code = UNHEALTHY


class ApiCommand(click.Command):
    """A command whose errors become a Failure, and that takes the options of the target."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += target_options(hidden=True)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except PgBeatError as error:
            raise _as_typed(ctx, _with_commands(failure_of(error))) from error
        except Failure as failure:
            raise _as_typed(ctx, failure) from failure.__cause__
        except Exception as error:
            said = said_by_postgres(error)
            if said is None:
                raise
            refused = f"Postgres refuses: {_with_role(ctx, error) if is_denied(error) else said}"
            raise _as_typed(ctx, Failure(refused)) from None


def _as_typed(ctx: click.Context, failure: Failure) -> Failure:
    return type(failure)(Target.of(ctx).as_typed(failure.message))


def _with_commands(failure: Failure) -> Failure:
    return type(failure)(FUNCTION.sub(lambda found: f"`celery-pgbeat {COMMANDS[found[1]]}`", failure.message))


def failure_of(error: PgBeatError) -> Failure:
    """Return the Failure for an error."""
    if isinstance(error, DatabaseUnavailable):
        return OutOfReach(str(error))
    if isinstance(error, InvalidSchedule):
        return Failure("\n".join([str(error), *pointing_at(error)]))
    return WrongSettings(str(error)) if isinstance(error, InvalidSetting) else Failure(str(error))


def pointing_at(error: InvalidSchedule) -> list[str]:
    """Return the refused text, and below it a caret at the wrong place; nothing if no single place is wrong."""
    if error.position is None or not error.text.strip():
        return []
    before, after = error.text[: error.position], error.text[error.position :]
    line_before, line_after = before.rpartition("\n")[2], after.partition("\n")[0]
    shown_before = text(line_before if len(line_before) <= AROUND else f"…{line_before[1 - AROUND :]}")
    shown_after = text(line_after if len(line_after) <= AROUND else f"{line_after[: AROUND - 1]}…")
    return [f"  {shown_before}{shown_after}", f"  {' ' * len(shown_before)}^"]


def is_denied(error: Exception) -> bool:
    """Return whether the user lacks a right."""
    from celery_pgbeat.postgres.database import NO_RIGHT, sqlstate

    return sqlstate(getattr(error, "orig", None)) == NO_RIGHT


def _with_role(ctx: click.Context, error: Exception) -> str:
    from celery_pgbeat.cli.command_line.rights import role_needed
    from celery_pgbeat.postgres.database import reason

    words = ctx.command_path.split()
    command = " ".join(words[-2:]) if words[-2] in ("job", "group", "backfill", "work") else words[-1]
    role = f"{Target.of(ctx).beat().settings.schema}_{role_needed(command, ctx.params)}"
    return f"{reason(getattr(error, 'orig', None))} `{command}` needs a member of {role} (`celery-pgbeat sql --roles`)"


def said_by_postgres(error: Exception) -> str | None:
    """Return the message of the database's error on one line, without the statement and its parameters."""
    origin = getattr(error, "orig", None)
    return None if origin is None else " ".join(str(origin).split())
