"""A crontab: of a user (`crontab -l`), or of the system with the user in the sixth field (`/etc/crontab`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from celery_pgbeat.declare.timing import Timing
from celery_pgbeat.moving.answers import Answer, Refused, Taken, answered
from celery_pgbeat.moving.kind import Kind, Request
from celery_pgbeat.moving.kinds.commands import name_of, named
from celery_pgbeat.moving.readers.text_files import text_of

VARIABLE = re.compile(r"""\s*["']?(\w+)["']?\s*=\s*(.*?)\s*""")
LINE = re.compile(r"\s*(@\w+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.+?)\s*")
OF_USER = re.compile(r"(\S+)\s+(.+)")
INPUT = re.compile(r"(?<!\\)%.*")  # what follows an unescaped percent sign is the command's standard input
ZONE = "Lines below a CRON_TZ have its zone. All others get the zone of the app (-A), cron's is that of its machine."
ENVIRONMENT = "Variables such as PATH and MAILTO are not imported: the task decides where and how a command runs."
NIGHTS = "On the nights when the clocks change, the rules are those of Vixie's cron."


def read(request: Request, *, with_user: bool) -> Iterator[Answer]:
    """Iterate over the lines of a crontab."""
    seen: Counter[str] = Counter()
    for answer in answers_of(text_of(request.source, "a crontab"), with_user=with_user):
        seen[answer.name] += 1
        again = f" ({seen[answer.name]})" if seen[answer.name] > 1 else ""
        yield named(request, replace(answer, name=f"{answer.name[: 200 - len(again)]}{again}"))


def answers_of(text: str, *, with_user: bool) -> Iterator[Answer]:
    """Iterate over what becomes of the lines of a crontab; without a task yet.

    Args:
        text: of the crontab.
        with_user: whether the field before the command is a user.

    Example:
        >>> [taken] = answers_of("CRON_TZ=Europe/Berlin\\n0 3 * * * backup --all\\n", with_user=False)
        >>> taken.name, taken.schedule.text, taken.schedule.timezone
        ('backup --all', 'cron: 0 3 * * *', 'Europe/Berlin')
    """
    zone: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if variable := VARIABLE.fullmatch(line):
            zone = variable.group(2).strip("\"'") or None if variable.group(1) == "CRON_TZ" else zone
            continue
        found = LINE.fullmatch(line)
        if found is None:
            yield Refused(f"line {number}", "it is neither five fields and a command nor a variable")
            continue
        yield answered(f"line {number}", partial(_answer, found.group(1), found.group(2), zone, with_user))


def _answer(times: str, command: str, zone: str | None, with_user: bool) -> Answer:
    columns: dict[str, object] = {}
    changes = []
    if with_user:
        user = OF_USER.fullmatch(command)
        if user is None:
            return Refused(name_of(command), "it has no command behind the user")
        command = user.group(2)
        changes.append(f"the user {user.group(1)!r} has no effect: the command runs as the worker does")
    if times == "@reboot":
        return Refused(name_of(command), "@reboot is no time: a worker has no start of the machine")
    if INPUT.search(command):
        changes.append("what follows the first % was the command's standard input, and is left out")
    command = INPUT.sub("", command).replace("\\%", "%").strip()
    columns["args"] = [command]
    return Taken(name_of(command), None, Timing(f"cron: {' '.join(times.split())}", zone), columns, tuple(changes))


DIFFERENCES = (ZONE, ENVIRONMENT, NIGHTS)
CRONTAB = Kind("crontab", partial(read, with_user=False), DIFFERENCES)
SYSTEM_CRONTAB = Kind("system-crontab", partial(read, with_user=True), DIFFERENCES)
