"""`doctor`: looks for whatever is wrong, and says how to mend it. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from celery_pgbeat.cli.failure import ApiCommand, said_by_postgres
from celery_pgbeat.cli.output import as_json, print_json, text
from celery_pgbeat.cli.target import Target

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command(cls=ApiCommand)
@as_json
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look for whatever is wrong: in the schema, the clocks, the nodes, the rows, the history, the broker's settings.

    Each finding is an error (something works wrongly now), a warning (something may go wrong) or a note, with how to
    mend it. Tasks, workers and broker are looked at only with an app (-A). Nothing is changed.

    Exit codes: 0 nothing but notes; 1 errors or warnings; 3 the database is out of reach.
    """
    target = Target.current()
    examination = Examination()
    for check, look in _checks(target):
        examination.make(check, look)
    if as_json:
        print_json(examination.as_dict())
    else:
        examination.print()
    ctx.exit(1 if examination.is_bad else 0)


class Examination:
    """What was looked at, what was found, and what could not be looked at."""

    def __init__(self) -> None:
        self._findings: list[tuple[str, Any]] = []
        self._done: list[str] = []
        self._skipped: dict[str, str] = {}

    @property
    def is_bad(self) -> bool:
        """Whether there is anything but notes."""
        return any(finding.severity != "note" for _, finding in self._findings)

    def make(self, check: str, look: Callable[[], Iterable[Any]] | str) -> None:
        """Make one check, or note why it cannot be made; after a schema that does not do most cannot."""
        from celery_pgbeat.cli.doctor.finding import ERROR, Finding
        from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError

        if isinstance(look, str):
            self._skipped[check] = look
            return
        if check not in ("schema", "grants") and any(found == "schema" for found, _ in self._findings):
            self._skipped[check] = "the schema comes first"
            return
        try:
            self._findings += [(check, finding) for finding in look()]
        except DatabaseUnavailable:
            raise
        except Exception as error:
            said = str(error) if isinstance(error, PgBeatError) else said_by_postgres(error)
            if said is None and not check.startswith("app"):
                raise
            said = said or f"{type(error).__name__}: {error}"
            mend = "Mend this first: what else is wrong there cannot be seen."
            self._findings.append((check, Finding(ERROR, f"This cannot be looked at: {text(said)}", mend)))
        self._done.append(check)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
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
        """Print it for people, the worst first."""
        order = list(COLOURS)
        for _, finding in sorted(self._findings, key=lambda found: order.index(found[1].severity)):
            severity = click.style(finding.severity, fg=COLOURS[finding.severity], bold=True)
            click.echo(f"{severity}: {text(finding.what)}")
            click.echo(f"    {text(finding.mend)}")
        for check, why in self._skipped.items():
            click.echo(f"Not looked at: {check}: {why}", err=True)
        if not self._findings:
            click.echo("Nothing is wrong.")


def _checks(target: Target) -> list[tuple[str, Callable[[], Iterable[Any]] | str]]:
    """Return the checks in their order, by name; in place of one that cannot be made the reason."""
    from celery_pgbeat.cli.doctor import app, clocks, cron_texts, schema, storage, work

    operators, settings, celery = target.operators(), target.beat().settings, target.app
    checks: list[tuple[str, Callable[[], Iterable[Any]] | str]] = [
        ("schema", lambda: schema.version(operators)),
        ("grants", lambda: schema.grants(operators)),
        ("search path", lambda: schema.search_path(operators)),
        ("clock", lambda: clocks.node_clock(operators)),
        ("zones", lambda: clocks.zones(operators)),
        ("nodes", lambda: work.nodes(operators, settings)),
        ("stuck", lambda: work.stuck(operators, settings)),
        ("bloat", lambda: storage.bloat(operators)),
        ("history", lambda: storage.days(operators, settings)),
        ("croniter", lambda: cron_texts.compared_with_croniter(target.beat())),
    ]
    if celery is None:
        return [*checks, *((check, "no app was named (-A)") for check in APP_CHECKS)]
    return [
        *checks,
        ("app scheduler", lambda: app.scheduler(celery)),
        ("app broker", lambda: app.broker(operators, celery)),
        ("app tasks", lambda: app.tasks(operators, settings, celery)),
        ("app workers", lambda: app.workers(operators, settings, celery)),
    ]


APP_CHECKS = ("app scheduler", "app broker", "app tasks", "app workers")
