"""The pages. Each reads what it shows in one transaction and returns it; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.pages.groups import read_groups
from celery_pgbeat.web.pages.jobs import read_job, read_jobs
from celery_pgbeat.web.pages.nodes import read_nodes
from celery_pgbeat.web.pages.problems import read_problems
from celery_pgbeat.web.pages.task import read_task
from celery_pgbeat.web.pages.tasks import read_tasks
from celery_pgbeat.web.pages.timeline import read_timeline
from celery_pgbeat.web.pages.work import read_work
from celery_pgbeat.web.reading import Reader

PAGES: Mapping[str, Callable[[Reader, Query], Page]] = {
    "tasks": read_tasks,
    "task": read_task,
    "jobs": read_jobs,
    "job": read_job,
    "timeline": read_timeline,
    "groups": read_groups,
    "work": read_work,
    "nodes": read_nodes,
    "problems": read_problems,
}
