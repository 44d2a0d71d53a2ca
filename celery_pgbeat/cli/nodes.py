"""`nodes`: the beats and workers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from celery_pgbeat.cli.choices import Choice
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, instant, print_json, print_table, text
from celery_pgbeat.cli.target import Target

COLOURS = {"alive": "green", "dead": "red", "no": "yellow"}
COLUMNS = ("id", "role", "hostname", "pid", "version", "started_at", "last_seen_at", "tracking", "alive", "jobs")


@click.command(cls=ApiCommand)
@click.option("--role", type=Choice(("beat", "worker")), help="Only beats, or only workers.")
@click.option("--alive/--dead", default=None, help="Only nodes that are alive, or only dead ones.")
@as_json
def nodes(role: str | None, alive: bool | None, as_json: bool) -> None:
    """List the beats and workers that have sent a heartbeat within the last day.

    A node without a heartbeat for longer than pgbeat_dead_after counts as dead. JOBS counts the jobs that a worker
    runs, or that a beat is sending. A worker without tracking runs no guard: it may start a job twice. Exit code 0.
    """
    target = Target.current()
    found = [
        node
        for node in target.operators().nodes(target.beat().settings.dead_after)
        if role in (None, node["role"]) and alive in (None, node["alive"])
    ]
    if as_json:
        print_json(
            [{**{column: node[column] for column in COLUMNS}, "silent_for": _silent_for(node)} for node in found]
        )
        return
    headings = ("ROLE", "HOST", "PID", "STATE", "LAST SEEN", "STARTED", "VERSION", "TRACKING", "JOBS")
    print_table(headings, [_cells(node) for node in found], COLOURS)


def _cells(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        node["role"],
        text(node["hostname"]),
        str(node["pid"]),
        "alive" if node["alive"] else "dead",
        f"{_silent_for(node).total_seconds():.0f} s ago",
        instant(node["started_at"]),
        text(node["version"]),
        "-" if node["role"] == "beat" else "yes" if node["tracking"] else "no",
        str(node["jobs"]),
    )


def _silent_for(node: Mapping[str, Any]) -> timedelta:
    silence: timedelta = node["now"] - node["last_seen_at"]
    return max(silence, timedelta(0))
