"""What a user with that right may change: each action has a page with a form, and is one call of the Python API."""

from __future__ import annotations

from collections.abc import Mapping

from celery_pgbeat.operations import OPERATIONS
from celery_pgbeat.web.actions import backfill, edit, operation, revert, take_over
from celery_pgbeat.web.actions.action import Action

ACTIONS: Mapping[str, Action] = {
    **operation.actions(),
    "edit": edit.EDIT,
    "take-over": take_over.TAKE_OVER,
    "revert": revert.REVERT,
    "backfill": backfill.BACKFILL,
    "cancel-backfill": backfill.CANCEL_BACKFILL,
}
# What a page says after an action; its address carries only the word.
DONE: Mapping[str, str] = {
    **{one.page.done: one.page.said for one in OPERATIONS if one.page is not None},
    "edited": "The change is saved. A beat plans the next run if its times differ.",
    "unchanged": "Nothing was changed: the definition already has these values.",
    "taken-over": "It is taken over: it can be edited here, and the code no longer changes it.",
    "reverted": "The definition is what it was before that change. A beat plans the next run if its times differ.",
    "backfilled": "The backfill has begun. Beats send its jobs, the oldest first.",
    "backfill-cancelled": "The backfill is cancelled.",
}
