"""The one sentence on top of the first page: the most serious thing that is wrong, or that nothing is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from celery_pgbeat.web.pages.overdue import MANY
from celery_pgbeat.web.words import duration, number

if TYPE_CHECKING:
    from celery_pgbeat.web.pages.now import Now

START = "Nothing is sent until one starts: celery -A your_app beat"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The one sentence on top.

    Attributes:
        kind: `ok`, `late` or `bad`.
        says: the finding.
        then: what follows, or what to do.
        page: where to read more; None for nowhere.
    """

    kind: str
    says: str
    then: str = ""
    page: str | None = None


def verdict_of(it: Now) -> Verdict:
    """Return what matters most."""
    found = (check(it) for check in CHECKS)
    return next((verdict for verdict in found if verdict is not None), Verdict("ok", "Nothing is late.", _alive(it)))


def _no_beat(it: Now) -> Verdict | None:
    if it.no_beat is None:
        return None
    late = it.activity["late"]
    behind = f"{_many(late, 'run')} overdue. " if late else ""
    return Verdict("bad", f"{it.no_beat[0].upper()}{it.no_beat[1:]}.", f"{behind}{START}", "nodes")


def _overdue(it: Now) -> Verdict | None:
    late = it.activity["late"]
    if not late:
        return None
    worst = max((row["late_by"] for row in it.overdue), default=timedelta(0))
    return Verdict("bad", f"{_many(late, 'run')} overdue.", f"The worst by {duration(worst)}. {_alive(it)}", "problems")


def _silent_beat(it: Now) -> Verdict | None:
    many = it.silent_beats
    says = f"{number(many, 'beat')} {'has' if many == 1 else 'have'} fallen silent."
    then = f"The others do {'its' if many == 1 else 'their'} work. {_alive(it)}"
    return Verdict("late", says, then, "nodes") if many else None


def _shadow(it: Now) -> Verdict | None:
    if not it.in_shadow:
        return None
    then = f"The beats record what they would send. {_alive(it)}"
    return Verdict("late", "In shadow: nothing is sent.", then, "nodes")


def _no_tracker(it: Now) -> Verdict | None:
    if it.workers > it.blind or it.in_shadow:
        return None
    if it.workers:
        says = "No worker reports what becomes of the jobs."
        return Verdict("late", says, "Add celery_pgbeat.worker to imports of the workers.", "nodes")
    return Verdict("late", "No worker is running.", "Jobs wait at the broker until one is.", "nodes")


def _undecided(it: Now) -> Verdict | None:
    asking = it.under_way.get("error", 0)
    if not asking:
        return None
    says = f"{number(asking, 'failed job')} {'waits' if asking == 1 else 'wait'} for a decision."
    return Verdict("late", says, _alive(it), "problems")


def _problem(it: Now) -> Verdict | None:
    many = len(it.problems)
    says = f"{many} or more tasks" if many >= it.rows else number(many, "task")
    return Verdict("late", f"{says} cannot be planned.", _alive(it), "problems") if many else None


def _alert(it: Now) -> Verdict | None:
    many = len(it.alerts)
    says = f"{many} or more alerts" if many >= it.rows else number(many, "alert")
    return Verdict("late", f"{says} raised.", _alive(it), "problems") if many else None


CHECKS: Sequence[Callable[[Now], Verdict | None]] = (
    _no_beat,
    _overdue,
    _no_tracker,
    _undecided,
    _problem,
    _silent_beat,
    _alert,
    _shadow,
)


def _alive(it: Now) -> str:
    is_one = it.beats + it.workers == 1
    return f"{number(it.beats, 'beat')} and {number(it.workers, 'worker')} {'is' if is_one else 'are'} alive."


def _many(late: int, word: str) -> str:
    if late >= MANY:
        return f"{MANY:,} or more {word}s are"
    return f"{number(late, word)} {'is' if late == 1 else 'are'}"
