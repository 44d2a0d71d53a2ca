"""The introduction of the demo: its addresses, and the periodic tasks that are declared in Python and in SQL.

It shows exactly what runs: the end of app.py, and the statements that are executed.
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
    """Return the addresses of the servers, and a statement to try."""
    return "\n".join(
        [
            f"Postgres  {servers.shown_url}",
            f"broker    {servers.shown_broker}",
            f"psql      {servers.psql_command}",
            f"try       {TRY.format(schema=servers.schema)}",
        ]
    )


def python() -> str:
    """Return the source of the tasks that are declared in Python."""
    source = resources.files("celery_pgbeat.cli.demo") / "app.py"
    return source.read_text(encoding="utf-8").partition(SHOWN_FROM)[2].strip()


def names_in_python() -> set[str]:
    """Return the names of the rows that the beats will declare."""
    return set(DECLARED.findall(python()))


def sql(servers: Servers) -> str:
    """Return the statements that insert the other rows."""
    return INSERT.format(schema=servers.schema)


def introduction(servers: Servers) -> str:
    """Return the whole introduction."""
    return "\n\n".join(
        [
            "Three beats and one worker, all of them real processes. Everything ends with the demo.",
            addresses(servers),
            "Periodic tasks declared in Python:",
            _indented(python()),
            "and in SQL:",
            _indented(sql(servers)) + "\n",
        ]
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
