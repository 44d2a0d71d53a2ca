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

# Sent once for each job of a task for people that can be picked up, by one of the beats, in a thread that does nothing
# else, within a heartbeat; the sender is the app. Not sent for a job that a person has picked up before that. A beat
# that is killed at this moment loses it: `my_work` lists what is open. `job` is the id; `periodic_task` the name;
# `scheduled_for` an aware datetime; `target` who may pick it up, None for anybody; `due_by` when it is overdue, or
# None. Connect to it before the beat starts: without a receiver a beat does not look.
work_created = Signal(
    name="pgbeat_work_created", providing_args={"job", "periodic_task", "scheduled_for", "target", "due_by"}
)
