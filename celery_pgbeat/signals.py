"""Our signals. Connect to them as to Celery's own.

Example:
    >>> from celery_pgbeat.signals import alert
    >>> @alert.connect(weak=False)
    ... def call_on_duty(sender, kind, name, reason, due_at, late_by, **_):
    ...     print(f"{kind}: {name} is late by {late_by}: {reason}")
"""

from __future__ import annotations

from celery.utils.dispatch import Signal

# Sent once for each alert, by the beat that raised it, in a thread that does nothing else; the sender is the app.
# `kind` is overdue, dead_beat or refused; `name` that of the periodic task or the id of the beat; `due_at` an aware
# datetime (of a dead beat: when it was last seen; of a declaration: when it was first refused); `late_by` a timedelta;
# `reason` a sentence.
alert = Signal(name="pgbeat_alert", providing_args={"kind", "name", "reason", "due_at", "late_by"})
