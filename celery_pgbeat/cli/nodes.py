"""`nodes`: the beats and workers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import from_now, instant, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, text

KEYS = ("id", "role", "hostname", "pid", "version", "started_at", "last_seen_at", "tracking", "mode", "alive", "jobs")


@click.command(cls=ApiCommand)
@click.option("--role", type=Choice(("beat", "worker")), help="Only beats, or only workers.")
@click.option("--alive/--dead", default=None, help="Only nodes that are alive, or only dead ones.")
@with_utc
@as_json
def nodes(role: str | None, alive: bool | None, as_json: bool) -> None:
    """List the beats and workers that have sent a heartbeat within the last day.

    A node without a heartbeat for longer than pgbeat_dead_after counts as dead. JOBS counts the jobs that a worker
    runs, or that a beat is sending. A worker without tracking runs no guard: it may start a job twice. MODE is that of
    a beat: sends, shadow (pgbeat_shadow: it only records what it would send), or waits, while beats in shadow live.

    Exit code 0.
    """
    found = [
        node
        for node in Target.current().operators().nodes()
        if role in (None, node["role"]) and alive in (None, node["alive"])
    ]
    if as_json:
        print_json([{**{column: node[column] for column in KEYS}, "silent_for": _silent_for(node)} for node in found])
        return
    print_table(COLUMNS, found)


def _tracking(node: Mapping[str, Any]) -> str:
    return EMPTY if node["role"] == "beat" else "yes" if node["tracking"] else "no"


def _silent_for(node: Mapping[str, Any]) -> timedelta:
    silence: timedelta = node["now"] - node["last_seen_at"]
    return max(silence, timedelta(0))


COLUMNS = (
    Column("ROLE", "role", lambda node: node["role"]),
    Column("HOST", "hostname", lambda node: text(node["hostname"]), whole=True),
    Column("PID", "pid", lambda node: str(node["pid"])),
    Column(
        "STATE",
        "alive",
        lambda node: "alive" if node["alive"] else "dead",
        colours={"alive": "green", "dead": "red"},
    ),
    Column("LAST SEEN", "silent_for", lambda node: from_now(min(node["last_seen_at"], node["now"]), node["now"])),
    Column("JOBS", "jobs", lambda node: str(node["jobs"])),
    Column("TRACKING", "tracking", _tracking, colours={"no": "yellow"}),
    Column("MODE", "mode", lambda node: node["mode"] or EMPTY, colours={"shadow": "yellow", "waits": "red"}),
    Column("VERSION", "version", lambda node: text(node["version"]), rank=1),
    Column("STARTED", "started_at", lambda node: instant(node["started_at"]), rank=2),
    Column("ID", "id", lambda node: text(node["id"]), rank=3),
)
