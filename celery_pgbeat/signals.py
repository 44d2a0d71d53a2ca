"""Signals of ours, connected to as Celery's own are.

Example:
    >>> from celery_pgbeat.signals import alert
    >>> @alert.connect(weak=False)
    ... def page_somebody(sender, kind, name, reason, due_at, late_by, **_):
    ...     print(f"{kind}: {name} is late by {late_by}: {reason}")
"""

from __future__ import annotations

from celery.utils.dispatch import Signal

# Sent once for each alert, in the one beat that raised it, by a thread in which nothing else waits; the sender is the
# app. `kind` is overdue or dead_beat, `name` that of the periodic task or the id of the beat, `due_at` an aware
# datetime (of a dead beat: when it was last seen), `late_by` a timedelta, `reason` a sentence.
alert = Signal(name="pgbeat_alert", providing_args={"kind", "name", "reason", "due_at", "late_by"})
