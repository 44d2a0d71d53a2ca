"""How the pages say things: instants, durations, states, nodes. Pure; Jinja or this escapes what comes from a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from markupsafe import Markup, escape

from celery_pgbeat.process.node import NodeId
from celery_pgbeat.texts.safe_text import one_line

NONE = Markup('<span class="none">–</span>')
IN_SQL = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)Z")  # an instant, as the sentences of Postgres have it
JOB_ID = re.compile(r"\bjob (([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")

# Of each state the class of its colour, and its shape: a person who cannot see colours needs the shape.
MARKS: Mapping[str, tuple[str, str]] = {
    "succeeded": ("ok", "✓"),
    "running": ("run", "▮"),
    "retrying": ("run", "↻"),
    "failed": ("bad", "✗"),
    "lost": ("bad", "✗"),
    "expired": ("bad", "✗"),
    "revoked": ("bad", "✗"),
    "error": ("late", "?"),
    "skipped": ("late", "◌"),
    "untracked": ("idle", "→"),
    "sent": ("idle", "→"),
    "pending": ("idle", "→"),
    "buffered": ("idle", "…"),
    "waiting": ("idle", "…"),
    "created": ("idle", "☺"),
}
# What the words of a periodic task's state begin with, by importance.
TASK_MARKS = (
    (("problem", "overdue", "silent"), ("bad", "✗")),
    (("error",), ("late", "?")),
    (("paused", "group paused", "decided ahead"), ("late", "‖")),
    (("running", "retrying"), ("run", "▮")),
    (("queued", "to be sent"), ("idle", "→")),
)


def duration(value: timedelta | None) -> str:
    """Return a duration as a person reads it at once, such as `40 ms`, `1.2 s`, `4m12s`, `3h05m`, `2 d 4 h`.

    Example:
        >>> [duration(timedelta(seconds=s)) for s in (0.0042, 1.24, 42, 252, 11_100, 187_200, 864_000)]
        ['4 ms', '1.2 s', '42 s', '4m12s', '3h05m', '2 d 4 h', '10 d']
    """
    if value is None:
        return "–"
    seconds = max(value.total_seconds(), 0.0)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h" if hours and days < 10 else f"{days:,} d"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest} s"


def in_full(value: datetime) -> str:
    """Return an instant in UTC, to the second."""
    return f"{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def clock(value: datetime | None, now: datetime) -> Markup:
    """Return an instant in UTC, of another day with the day; the script shows it in the viewer's zone."""
    if value is None:
        return NONE
    utc = value.astimezone(timezone.utc)
    today = now.astimezone(timezone.utc)
    if utc.date() == today.date():
        text, form = f"{utc:%H:%M:%S}", "time"
    elif abs(utc.year - today.year) <= 1 and abs(utc - today) < timedelta(days=180):
        text, form = f"{utc:%a} {utc.day} {utc:%b %H:%M}", "day"
    else:
        text, form = f"{utc.date().isoformat()} {utc:%H:%M}", "date"
    return Markup('<time datetime="{}" title="{}" data-form="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), in_full(utc), form, text
    )


def from_now(value: datetime | None, now: datetime) -> str:
    """Return how far an instant is from now.

    Example:
        >>> noon = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
        >>> from_now(noon + timedelta(minutes=4), noon), from_now(noon - timedelta(hours=2), noon), from_now(noon, noon)
        ('in 4m00s', '2h00m ago', 'now')
    """
    if value is None:
        return "–"
    distance = value - now
    if abs(distance) < timedelta(seconds=1):
        return "now"
    return f"in {duration(distance)}" if distance > timedelta(0) else f"{duration(-distance)} ago"


def sentence(text: Any, now: datetime, job_url: str) -> Markup:
    """Return a sentence of Postgres: its instants as the viewer reads them, its jobs as links.

    Args:
        text: the sentence; whatever it quotes is escaped.
        now: the time.
        job_url: the address of a job's page, to which the id is added.
    """
    safe = str(escape(one_line(str(text))))
    safe = IN_SQL.sub(lambda found: str(_clock_of(found[1], now)), safe)
    return Markup(JOB_ID.sub(rf'job <a href="{escape(job_url)}\1" title="\1"><code>\2</code></a>', safe))  # noqa: S704 - escaped


def _clock_of(text: str, now: datetime) -> Markup | str:
    try:
        return clock(datetime.fromisoformat(f"{text}+00:00"), now)
    except ValueError:
        return f"{text}Z"  # an author's text that looks like an instant


def mark(state: str | None) -> Markup:
    """Return the sign of a job's state."""
    return _sign(*MARKS.get(str(state), ("idle", "○")))


def task_mark(state: str) -> Markup:
    """Return the sign of a periodic task's state, by the most serious of its words."""
    words = [word.strip() for word in state.split(",")]
    for beginnings, sign in TASK_MARKS:
        if any(word.startswith(beginnings) for word in words):
            return _sign(*sign)
    return _sign("idle", "○")


def _sign(kind: str, shape: str) -> Markup:
    return Markup('<span class="mark {}" aria-hidden="true">{}</span>').format(kind, shape)


def node(id: str | None) -> str:
    """Return the host and the process of a node's id."""
    if id is None:
        return "–"
    known = NodeId.parse(id)
    return id if known is None else f"{known.hostname}:{known.pid}"


def number(count: int, word: str) -> str:
    """Return a number with its word.

    Example:
        >>> number(1, "beat"), number(2000, "beat")
        ('1 beat', '2,000 beats')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def safe(value: Any) -> Any:
    """Return what a template puts out: a text on one line, without control characters and marks of direction."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value
