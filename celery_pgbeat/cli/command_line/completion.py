"""What a shell completes besides commands and options: names of periodic tasks and groups, zones, values.

A completion never fails and never asks: without a database there are no names.

Shells put a completion into the line as it is: bash would run `nightly;rm` of a name, fish ends one at a comma, bash
begins a new word at a colon, and `--yes` would be an option. Who writes a row chooses its name, so such names are
typed by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import click
from click.shell_completion import CompletionItem

from celery_pgbeat.cli.command_line.target import Target

MOST = 100  # suggestions
PLAIN = re.compile(r"[\w./][\w./@%+=-]*")  # letters of every alphabet, and what needs no quotes in any shell
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completing(find: Callable[[Target, str], Iterable[str]]) -> Complete:
    """Make a completion of a function that finds the words which begin with a text."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with ctx.scope(cleanup=False):
            target = Target.current()
            try:
                plain = (word for word in find(target, incomplete) if PLAIN.fullmatch(word))
                return [CompletionItem(word) for word in islice(plain, MOST)]
            except Exception:  # noqa: BLE001  a shell would print the traceback into the line that is typed
                return []
            finally:
                target.close()

    return complete


def _periodic_tasks(target: Target, begin: str) -> Iterable[str]:
    return target.operators().names_that_begin_with(begin, MOST)


def _groups(target: Target, begin: str) -> Iterable[str]:
    return (group.name for group in target.beat().groups() if group.name.startswith(begin))


def _running_backfills(target: Target, begin: str) -> Iterable[str]:
    found = (str(one.id) for one in target.beat().backfills(state="running", limit=MOST))
    return (one for one in found if one.startswith(begin))


def _tasks(target: Target, begin: str) -> Iterable[str]:
    app = target.app
    if app is None:
        return ()
    app.loader.import_default_modules()
    return sorted(name for name in app.tasks if name.startswith(begin) and not name.startswith("celery."))


def _zones(_target: Target, begin: str) -> Iterable[str]:
    from zoneinfo import available_timezones

    return sorted(name for name in available_timezones() if name.lower().startswith(begin.lower()))


periodic_task_names = _completing(_periodic_tasks)
group_names = _completing(_groups)
running_backfills = _completing(_running_backfills)
task_names = _completing(_tasks)
zone_names = _completing(_zones)


def one_of(words: Sequence[str]) -> Complete:
    """Complete one of these words."""
    return _completing(lambda _target, begin: (word for word in words if word.startswith(begin)))
