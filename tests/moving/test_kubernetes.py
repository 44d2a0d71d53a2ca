"""Moving CronJobs of Kubernetes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from celery_pgbeat.moving.kinds.kubernetes import text_of_schedule
from celery_pgbeat.schedules import parse
from tests.harness.peers.moving_in import MovingIn
from tests.harness.session import Session


def cron_job(name: str, schedule: str, job: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a manifest."""
    container = {"name": "main", "image": "shop:1", "command": ["report"], "args": ["--all"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {"spec": {"template": {"spec": {"containers": [container]}}, **(job or {})}},
            **spec,
        },
    }


MANIFESTS = [
    cron_job("plain", "0 3 * * *"),
    cron_job("zone", "0 3 * * mon-fri", timeZone="Europe/Berlin", concurrencyPolicy="Forbid"),
    cron_job("replaced", "@hourly", concurrencyPolicy="Replace", startingDeadlineSeconds=120),
    cron_job("limited", "@every 1h30m", {"activeDeadlineSeconds": 600}, suspend=True),
    cron_job("wrong", "0 25 * * *"),
    cron_job("late", "0 3 * * *", startingDeadlineSeconds=1e30),
    cron_job("no container", "0 3 * * *", {"template": {"spec": {"containers": []}}}),
    {"kind": "CronJob", "metadata": {"name": "empty"}},
    {"kind": "CronJob", "metadata": "x"},
    {"kind": "Deployment", "metadata": {"name": "other"}},
]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_cron_jobs_become_rows_of_one_task(migrated_database: str, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"cronjobs.{form}"
    texts = {"json": json.dumps({"kind": "List", "items": MANIFESTS}), "yaml": yaml.safe_dump_all(MANIFESTS)}
    path.write_text(texts[form])
    moving = MovingIn("kubernetes", migrated_database, str(path))

    report = moving.report("--task", "shop.run", "--apply", "--yes")
    rows = {row["name"]: row for row in Session(migrated_database).rows("select * from pgbeat.periodic_task")}

    assert {
        "shop/plain": ("cron: 0 3 * * *", "UTC", "allow", True),
        "shop/zone": ("cron: 0 3 * * mon-fri", "Europe/Berlin", "buffer_one", True),
        "shop/replaced": ("cron: @hourly", "UTC", "terminate_other", True),
        "shop/limited": ("@every 1h30m", "UTC", "allow", False),
    } == {name: (row["schedule"], row["timezone"], row["overlap"], row["enabled"]) for name, row in rows.items()}
    assert {"image": "shop:1", "command": ["report"], "args": ["--all"]} == rows["shop/plain"]["kwargs"]
    assert timedelta(minutes=2) == rows["shop/replaced"]["catchup_window"]
    assert timedelta(minutes=10) == rows["shop/limited"]["max_run_time"]
    assert {
        "shop/wrong": "'cron: 0 25 * * *': hour 25 is not in 0-23",
        "empty": "it is no CronJob of batch/v1: KeyError: 'spec'",
        "a CronJob": "it is no CronJob of batch/v1: KeyError: 'spec'",
        "shop/late": "catchup_window is 1e+30 seconds, which is too long",
        "shop/no container": "it has no container",
    } == {name: row["reason"] for name, row in report.items() if not row["taken"]}
    assert {"equal"} == {row["kind"] for row in moving.report("--task", "shop.run").values() if row["taken"]}


def test_a_step_in_a_day_field_means_either_day_as_in_kubernetes() -> None:
    rule = parse(text_of_schedule("0 3 */2 * mon"))

    assert rule.matches(datetime(2026, 12, 14, 3, tzinfo=timezone.utc))  # a Monday, and an even day
    assert rule.matches(datetime(2026, 12, 15, 3, tzinfo=timezone.utc))  # a Tuesday, and an odd day


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "the manifests are neither JSON nor YAML: "),
        ("kind: Pod", "there is no CronJob in the manifests"),
        ("[" * 100_000, "the manifests are nested too deeply to be read"),
        ("a: &many [x, x]\nb: [*many, *many]", "line 2 of the manifests has the alias *many: write out what it stands"),
        (
            "a: &base {x: 1}\nb: {<<: *base}",
            "line 2 of the manifests has the alias *base: write out what it stands",
        ),
    ],
)
def test_what_is_no_manifest_is_one_sentence(migrated_database: str, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "manifests.yaml"
    path.write_text(text)

    done = MovingIn("kubernetes", migrated_database, str(path)).run()

    assert (1, 1, True) == (done.exit_code, len(done.stderr.splitlines()), words in done.stderr), done.output


def test_control_characters_of_a_source_are_not_printed(migrated_database: str, tmp_path: Path) -> None:
    path = tmp_path / "manifests.json"
    hostile = "\x1b[31mred\r\n"
    path.write_text(
        json.dumps(
            {"items": [cron_job(hostile, "0 3 * * *"), cron_job("x", f"0 {hostile} * * *"), cron_job("\0", "@daily")]}
        )
    )

    shown = MovingIn("kubernetes", migrated_database, str(path)).run("--task", "shop.run").output

    assert "red" in shown
    assert "0 taken" in shown
    assert not set("\x1b\r") & set(shown)
