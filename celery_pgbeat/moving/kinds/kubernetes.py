"""Kubernetes: CronJobs, from their manifests. A task of the mover's own does what a container did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from celery_pgbeat.declare.timing import Timing
from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.moving.answers import Answer, Taken, answered
from celery_pgbeat.moving.kind import Kind, Request
from celery_pgbeat.moving.kinds.commands import named
from celery_pgbeat.moving.readers.manifests import manifests
from celery_pgbeat.moving.readers.text_files import text_of
from celery_pgbeat.texts.safe_text import type_of

WHAT = "manifests of CronJobs, such as kubectl get cronjobs -A -o json prints"
# A run that Forbid holds back starts when the last one has ended, if its deadline allows that.
POLICIES = {"Allow": "allow", "Forbid": "buffer_one", "Replace": "terminate_other"}
DEFAULT_ZONE = "UTC"
DAYS = {2: "1-31", 4: "0-6"}  # the day fields, and their ranges
CONTAINER = (
    "The task gets image, command and args of the first container as keywords. What else a pod has (environment, "
    "volumes, resources, backoffLimit) is not imported."
)
POLICY = "concurrencyPolicy becomes overlap: Allow allow, Forbid buffer_one, Replace terminate_other."
ZONE = "A CronJob without a timeZone gets UTC, which is the zone of most control planes."
NIGHTS = "On the nights when the clocks change, a time that does not exist runs right after the gap: there it is lost."


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the CronJobs."""
    found = [manifest for manifest in manifests(text_of(request.source, WHAT)) if manifest.get("kind") == "CronJob"]
    if not found:
        raise InvalidSource("there is no CronJob in the manifests")
    for manifest in found:
        yield named(request, answered(_name(manifest), partial(answer_of, manifest), "it is no CronJob of batch/v1"))


def answer_of(manifest: Mapping[str, Any]) -> Answer:
    """Return what becomes of a CronJob; without a task yet."""
    spec = manifest["spec"]
    job = spec["jobTemplate"]["spec"]
    schedule, policy = spec["schedule"], spec.get("concurrencyPolicy") or "Allow"
    if not isinstance(schedule, str):
        raise ValueError(f"its schedule is {type_of(schedule)}, not text")
    if not job["template"]["spec"]["containers"]:
        raise ValueError("it has no container")
    container, *others = job["template"]["spec"]["containers"]
    columns = {
        "kwargs": {key: container[key] for key in ("image", "command", "args") if container.get(key) is not None},
        "overlap": POLICIES[policy],
        "catchup_window": spec.get("startingDeadlineSeconds"),
        "max_run_time": job.get("activeDeadlineSeconds"),
    }
    changes = (f"{len(others)} more of its containers are left out",) if others else ()
    zone = spec.get("timeZone") or DEFAULT_ZONE
    timing = Timing(text_of_schedule(schedule), zone)
    return Taken(_name(manifest), None, timing, columns, changes, bool(spec.get("suspend")))


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    parts = (metadata.get(key) for key in ("namespace", "name")) if isinstance(metadata, Mapping) else ()
    return "/".join(part for part in parts if part and isinstance(part, str)) or "a CronJob"


def text_of_schedule(schedule: str) -> str:
    """Return the text of a schedule.

    In a day field Kubernetes counts only `*` as any day, cron all that begins with it. So a step is written as a range.

    Example:
        >>> text_of_schedule("0 3 */2 * mon"), text_of_schedule("@every 1h")
        ('cron: 0 3 1-31/2 * mon', '@every 1h')
    """
    if schedule.startswith("@every"):
        return schedule
    fields = schedule.split()
    if len(fields) == 5:
        for at, days in DAYS.items():
            parts = fields[at].split(",")
            fields[at] = ",".join(days + part[1:] if part[:2] in ("*/", "?/") else part for part in parts)
    return f"cron: {' '.join(fields)}"


KUBERNETES = Kind("kubernetes", read, (CONTAINER, ZONE, NIGHTS, POLICY), own_overlap=True)
