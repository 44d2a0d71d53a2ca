"""The jobs: what was decided, the latest first, and what may be done about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from django.contrib import admin

from celery_pgbeat.django.admin.acting import ActingAdmin
from celery_pgbeat.django.admin.keyset import (
    LookOnly,
    Read,
    choice_filter,
    instance_of,
    line,
    text_filter,
)
from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.django.models import Job
from celery_pgbeat.operations import addresses_of
from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.pages.jobs import LOOKS, REASONS, STATES, read_jobs
from celery_pgbeat.web.words import duration, node


class JobAdmin(ActingAdmin, LookOnly):
    """Jobs, and occurrences that were skipped."""

    list_display = (
        "short_id",
        line("periodic_task"),
        "scheduled_for",
        "state",
        "reason",
        "took",
        "where",
        "shown_error",
    )
    list_filter = (
        choice_filter("state", "state", ((state, state) for state in STATES)),
        choice_filter("reason", "reason of a skip", ((reason, reason) for reason in REASONS)),
        choice_filter(
            "look", "how far back", ((look, "to the first one" if look == "all" else look) for look in LOOKS)
        ),
        text_filter("name", "periodic task"),
        text_filter("task", "Celery task"),
        text_filter("queue", "queue"),
        text_filter("group", "group"),
    )
    page_parameters = ("before", "before_at")
    acts: ClassVar = addresses_of("job")

    def read_page(self, beat: JoinedBeat, query: Query) -> Read:
        """Read the jobs that the dashboard would show."""
        page = read_jobs(beat, query).values
        more, since = page["more"], page["since"]
        rows = []
        for run in page["runs"]:
            job = instance_of(Job, asdict(run.job), beat.database.alias)
            job.run = run
            rows.append(job)
        following = {"before": str(more.id), "before_at": more.created_at.isoformat()} if more else None
        return Read(rows, following, f"Looked back to {since:%Y-%m-%d %H:%M} UTC." if since else "")

    @admin.display(description="job")
    def short_id(self, job: Any) -> str:
        """Return the beginning of its id."""
        return str(job.pk)[:8]

    @admin.display(description="took")
    def took(self, job: Any) -> str:
        """Return how long it ran, or has been running."""
        return duration(job.run.took)

    @admin.display(description="worker")
    def where(self, job: Any) -> str:
        """Return where it ran."""
        return one_line(node(job.worker))

    @admin.display(description="error")
    def shown_error(self, job: Any) -> str | None:
        """Return its error, in short."""
        return None if job.error is None else one_line(job.error, 120)
