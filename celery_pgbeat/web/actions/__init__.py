"""What a user with that right may change: each action has a page with a form, and is one call of the Python API."""

from __future__ import annotations

from collections.abc import Mapping

from celery_pgbeat.web.actions import backfill, edit, groups, jobs, revert, take_over, tasks
from celery_pgbeat.web.actions.action import Action

ACTIONS: Mapping[str, Action] = {
    "pause": tasks.PAUSE,
    "resume": tasks.RESUME,
    "trigger": tasks.TRIGGER,
    "edit": edit.EDIT,
    "take-over": take_over.TAKE_OVER,
    "revert": revert.REVERT,
    "backfill": backfill.BACKFILL,
    "cancel-backfill": backfill.CANCEL_BACKFILL,
    "cancel-job": jobs.CANCEL_JOB,
    "resend-job": jobs.RESEND_JOB,
    "retry-job": jobs.RETRY_JOB,
    "fail-job": jobs.FAIL_JOB,
    "pick-up": jobs.PICK_UP,
    "release": jobs.RELEASE,
    "finish": jobs.FINISH,
    "limit-group": groups.LIMIT_GROUP,
    "pause-group": groups.PAUSE_GROUP,
    "resume-group": groups.RESUME_GROUP,
}
# What a page says after an action; its address carries only the word.
DONE: Mapping[str, str] = {
    "paused": "It is paused.",
    "resumed": "It is resumed.",
    "triggered": "This job was made. A beat sends it.",
    "edited": "The change is saved. A beat plans the next run if its times differ.",
    "unchanged": "Nothing was changed: the definition already has these values.",
    "taken-over": "It is taken over: it can be edited here, and the code no longer changes it.",
    "reverted": "The definition is what it was before that change. A beat plans the next run if its times differ.",
    "backfilled": "The backfill has begun. Beats send its jobs, the oldest first.",
    "backfill-cancelled": "The backfill is cancelled.",
    "cancelled": "It is cancelled.",
    "resent": "A beat sends it again.",
    "retried": "It runs again: this is the job.",
    "failed": "It was given up.",
    "picked-up": "You have picked it up.",
    "released": "It was given back.",
    "finished": "It is finished.",
    "limited": "The limit is set.",
    "group-paused": "The group is paused.",
    "group-resumed": "The group is resumed.",
}
