"""`doctor`: looks for problems, and prints how to fix each. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand, is_denied, said_by_postgres
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.values import as_json, print_json, say, text

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command(cls=ApiCommand)
@as_json
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look for problems in the schema, the clocks, the nodes, the rows, the history and the broker's settings.

    Each finding is an error (something is wrong now), a warning (something may go wrong) or a note, and says how to fix
    it. Tasks, workers and the broker are checked only with an app (-A). The command changes nothing.

    Exit codes: 0 only notes, or nothing; 1 errors or warnings; 3 the database is out of reach.
    """
    target = Target.current()
    examination = Examination(target.as_typed)
    for check, look in _checks(target):
        examination.make(check, look)
    if as_json:
        print_json(examination.as_dict())
    else:
        examination.print()
    ctx.exit(1 if examination.is_bad else 0)


class Examination:
    """The checks that were made, what they found, and the checks that could not be made.

    Args:
        as_typed: returns a text with its commands as they have to be typed here.
    """

    def __init__(self, as_typed: Callable[[str], str] = str) -> None:
        self._as_typed = as_typed
        self._findings: list[tuple[str, Any]] = []
        self._done: list[str] = []
        self._skipped: dict[str, str] = {}

    @property
    def is_bad(self) -> bool:
        """Whether there is an error or a warning."""
        return any(finding.severity != "note" for _, finding in self._findings)

    def make(self, check: str, look: Callable[[], Iterable[Any]] | str) -> None:
        """Make one check, or note why it cannot be made. With a wrong schema most checks cannot be made."""
        from celery_pgbeat.cli.doctor.finding import ERROR, Finding
        from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError

        if isinstance(look, str):
            self._skipped[check] = look
            return
        if check not in ("schema", "grants") and any(found == "schema" for found, _ in self._findings):
            self._skipped[check] = "fix the schema first"
            return
        try:
            self._findings += [(check, replace(found, mend=self._as_typed(found.mend))) for found in look()]
        except DatabaseUnavailable:
            raise
        except Exception as error:
            said = str(error) if isinstance(error, PgBeatError) else said_by_postgres(error)
            if is_denied(error):  # not wrong: another user sees more
                self._skipped[check] = f"this user lacks a right: {said}"
                return
            if said is None and not check.startswith("app"):
                raise
            said = said or f"{type(error).__name__}: {error}"
            mend = "Fix this first, and run doctor again: other problems may be hidden behind it."
            self._findings.append((check, Finding(ERROR, f"This check failed: {text(said)}", mend)))
        self._done.append(check)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "well": not self.is_bad,
            "findings": [
                {"check": check, "severity": finding.severity, "what": finding.what, "mend": finding.mend}
                for check, finding in self._findings
            ],
            "checked": self._done,
            "skipped": self._skipped,
        }

    def print(self) -> None:
        """Print the findings, the worst first."""
        order = list(COLOURS)
        for _, finding in sorted(self._findings, key=lambda found: order.index(found[1].severity)):
            say(finding.what, label=finding.severity, colour=COLOURS[finding.severity])
            say(finding.mend, indent=4)
        for check, why in self._skipped.items():
            say(f"Not checked: {check}: {why}", err=True)
        if not self._findings:
            say("No problems found.")


def _checks(target: Target) -> list[tuple[str, Callable[[], Iterable[Any]] | str]]:
    """Return the checks by name, in order; for a check that cannot be made, the reason."""
    from celery_pgbeat.cli.doctor import app, clocks, code, cron_texts, schema, storage, work

    operators, settings, celery = target.operators(), target.beat().settings, target.app
    checks: list[tuple[str, Callable[[], Iterable[Any]] | str]] = [
        ("schema", lambda: schema.version(operators)),
        ("grants", lambda: schema.grants(operators)),
        ("search path", lambda: schema.search_path(operators)),
        ("clock", lambda: clocks.node_clock(operators)),
        ("zones", lambda: clocks.zones(operators)),
        ("stored runs", lambda: clocks.stored_runs(operators, settings, target.timezone)),
        ("nodes", lambda: work.nodes(operators)),
        ("apps", lambda: code.apps(operators, celery)),
        ("declarations", lambda: code.refused(operators, settings, celery)),
        ("stuck", lambda: work.stuck(operators)),
        ("due together", lambda: work.due_together(operators)),
        ("bloat", lambda: storage.bloat(operators)),
        ("history", lambda: storage.days(operators, settings)),
        ("croniter", lambda: cron_texts.compared_with_croniter(operators)),
    ]
    if celery is None:
        return [*checks, *((check, "no app was named (-A)") for check in APP_CHECKS)]
    return [
        *checks,
        ("app rows", lambda: code.of_other_managers(operators, settings, celery)),
        ("app scheduler", lambda: app.scheduler(celery)),
        ("app broker", lambda: app.broker(operators, celery)),
        ("app tasks", lambda: app.tasks(operators, settings, celery)),
        ("app calls", lambda: app.calls(operators, celery)),
        ("app fanouts", lambda: app.fanouts(operators, celery)),
        ("app workers", lambda: app.workers(operators, celery)),
    ]


APP_CHECKS = ("app rows", "app scheduler", "app broker", "app tasks", "app calls", "app fanouts", "app workers")
