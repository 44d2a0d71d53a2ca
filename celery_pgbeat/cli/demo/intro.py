"""What is shown before the play begins: where it takes place, and what is periodic by Python and what by SQL.

What is shown is what runs: the end of app.py to the letter, and the very statements that are executed.
"""

from __future__ import annotations

import re
from importlib import resources

from celery_pgbeat.cli.demo.servers import Servers

SHOWN_FROM = "# The demo shows the file from here on.\n"
DECLARED = re.compile(r'@beat\.periodic_task\(.*\bname="([^"]+)"')

INSERT = """\
insert into {schema}.periodic_task (name, task, schedule, overlap) values
    ('ship-orders',  'demo.count', 'every 1s',                       'allow'),
    ('send-mails',   'demo.count', 'R/PT1S',                         'allow'),
    ('poll-inbox',   'demo.count', '*:*:0/2',                        'allow'),
    ('rotate-keys',  'demo.count', 'RRULE:FREQ=SECONDLY;INTERVAL=5', 'allow');
insert into {schema}.periodic_task (name, task, schedule, overlap)
    select 'shop-' || n, 'demo.count', '* * * * * *', 'allow' from generate_series(1, 5) as n;"""

TRY = (
    "insert into {schema}.periodic_task (name, task, schedule, overlap) "
    "values ('mine', 'demo.count', 'every 2s', 'allow');"
)


def addresses(servers: Servers) -> str:
    """Return where everything is, and how to join in."""
    return "\n".join(
        [
            f"Postgres  {servers.shown_url}",
            f"broker    {servers.shown_broker}",
            f"psql      {servers.psql_command}",
            f"try       {TRY.format(schema=servers.schema)}",
        ]
    )


def python() -> str:
    """Return the source of the tasks that are periodic by Python."""
    source = resources.files("celery_pgbeat.cli.demo") / "app.py"
    return source.read_text(encoding="utf-8").partition(SHOWN_FROM)[2].strip()


def names_in_python() -> set[str]:
    """Return the names of the rows that the beats will declare."""
    return set(DECLARED.findall(python()))


def sql(servers: Servers) -> str:
    """Return the statements that make further rows."""
    return INSERT.format(schema=servers.schema)


def introduction(servers: Servers) -> str:
    """Return all of it."""
    return "\n\n".join(
        [
            "Three beats, one worker, all of them real processes. Everything ends with the demo.",
            addresses(servers),
            "Tasks that are periodic by Python:",
            _indented(python()),
            "and by SQL:",
            _indented(sql(servers)) + "\n",
        ]
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
