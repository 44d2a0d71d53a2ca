"""What an app will send, told from its code alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.testing import at, occurrences, upcoming

NOON = "2026-03-28T12:00Z"  # before the night in which Berlin's clocks go forward
NEXT_NOON = "2026-03-29T12:00Z"


def shop(schedule: dict[str, Any] | None = None, **conf: Any) -> Celery:
    """An app; without results, so that Celery adds no entry of its own, and whose servers are nowhere."""
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(
        result_expires=None, beat_schedule=schedule or {}, pgbeat_url="postgresql://nowhere.invalid/shop", **conf
    )
    return app


def entry(schedule: Any, **ours: Any) -> dict[str, Any]:
    return {"task": "shop.report", "schedule": schedule, "pgbeat": ours}


def dues(app: Celery, since: str = NOON, until: str = NEXT_NOON, **rest: Any) -> list[datetime]:
    return [run.due_at for run in upcoming(app, since, until, **rest)]


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-29 03:00 Europe/Berlin",
        "2026-03-29T03:00+02:00",
        "2026-03-29T01:00:00Z",
        " 2026-03-29 01:00 UTC ",
        datetime(2026, 3, 29, 3, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_an_instant_may_be_written_in_several_ways(written: datetime | str) -> None:
    read = at(written)

    assert (datetime(2026, 3, 29, 1, tzinfo=timezone.utc), timezone.utc) == (read, read.tzinfo)


def test_of_a_wall_time_that_occurs_twice_the_first_is_taken_unless_an_offset_is_given() -> None:
    assert at("2026-10-25T02:30+02:00") == at("2026-10-25 02:30 Europe/Berlin")
    assert timedelta(hours=1) == at("2026-10-25T02:30+01:00") - at("2026-10-25 02:30 Europe/Berlin")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("2026-03-29 03:00", "has no zone"),
        (datetime(2026, 3, 29), "has no zone"),
        ("tomorrow", "is no instant"),
        ("2026-03-29 02:30 Europe/Berlin", "never is"),
        ("2026-03-29T03:00+02:00 Europe/Berlin", "an offset and a zone"),
        ("2026-03-29 03:00 Europe/Berlim", "Europe/Berlim"),
    ],
)
def test_an_invalid_instant_is_refused_with_the_reason(written: datetime | str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        at(written)


def test_a_nightly_run_in_the_spring_gap_is_sent_right_after_it_with_a_note() -> None:
    app = shop({"nightly": entry(crontab(minute=30, hour=2))}, timezone="Europe/Berlin")

    (run,) = upcoming(app, NOON, NEXT_NOON)

    assert ("nightly", "shop.report", "Europe/Berlin") == (run.periodic_task, run.task, run.timezone)
    assert at("2026-03-29 03:00 Europe/Berlin") == run.due_at == run.scheduled_for
    assert "2026-03-29T03:00:00+02:00" == run.local.isoformat()
    assert "02:30 does not exist" in str(run.note)
    assert str(run).startswith("nightly at Sun 2026-03-29 03:00:00+02:00 (the clocks go forward")


def test_all_ways_of_declaring_count_and_the_earliest_run_comes_first() -> None:
    app = shop({"late": entry(cron("0 9 * * *"))})
    beat = PgBeat(app)

    @beat.periodic_task("0 6 * * *", name="early", args=(1,), kwargs={"a": 2}, queue="q")
    @app.task(name="shop.early", shared=False)
    def early(*_: Any, **__: Any) -> None: ...

    @app.on_after_finalize.connect
    def add(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(crontab(minute=0, hour=7), sender.signature("shop.middle"), name="middle")

    runs = upcoming(beat, NOON, NEXT_NOON)

    assert [("early", 6), ("middle", 7), ("late", 9)] == [(run.periodic_task, run.due_at.hour) for run in runs]
    assert ("shop.early", [1], {"a": 2}, "q") == (runs[0].task, runs[0].args, runs[0].kwargs, runs[0].queue)
    assert ["middle"] == [run.periodic_task for run in upcoming(beat, NOON, NEXT_NOON, name="middle")]


def test_what_celery_adds_itself_is_sent_too() -> None:
    app = Celery("shop", set_as_current=False)

    assert ["celery.backend_cleanup"] == [run.periodic_task for run in upcoming(app, NOON, NEXT_NOON)]


def test_an_interval_is_counted_from_the_deployment_and_its_end_is_inclusive() -> None:
    app = shop({"poll": entry(every("5m"))})

    assert [at("2026-03-28T12:06Z"), at("2026-03-28T12:11Z")] == dues(app, "2026-03-28T12:01Z", "2026-03-28T12:11Z")


def test_a_row_that_runs_when_it_is_new_runs_first_at_the_deployment() -> None:
    app = shop({"warm-up": entry("0 * * * *", run_on_start=True)})

    runs = upcoming(app, "2026-03-28T12:30Z", "2026-03-28T13:00Z")

    assert [at("2026-03-28T12:30Z"), at("2026-03-28T13:00Z")] == [run.due_at for run in runs]
    assert [None, at("2026-03-28T13:00Z")] == [run.scheduled_for for run in runs]


def test_bounds_windows_and_jitter_are_respected() -> None:
    app = shop(
        {
            "ends": entry("0 * * * *", end_at=datetime(2026, 3, 28, 14, tzinfo=timezone.utc)),
            "twice": entry("30 * * * *", max_runs=2),
            "deferred": entry("0 2 * * *", blackout="0 0 * * * PT5H"),
            "named": entry("15 2 * * *", blackout="window: night"),
            "spread": entry("0 6 * * *", jitter="10m"),
        },
    )
    night = {"night": "0 0 * * * PT4H"}

    assert [13, 14] == [due.hour for due in dues(app, name="ends")]
    assert [12, 13] == [due.hour for due in dues(app, name="twice", windows=night)]
    (deferred,) = upcoming(app, NOON, NEXT_NOON, name="deferred")
    assert (at("2026-03-29T05:00Z"), at("2026-03-29T02:00Z")) == (deferred.due_at, deferred.scheduled_for)
    assert [at("2026-03-29T04:00Z")] == dues(app, name="named", windows=night)
    (spread,) = upcoming(app, NOON, NEXT_NOON, name="spread")
    assert at("2026-03-29T06:00Z") < spread.due_at <= at("2026-03-29T06:10Z")
    with pytest.raises(InvalidSchedule, match="no blackout window named 'night'"):
        upcoming(app, NOON, NEXT_NOON)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry("0 25 * * *"), "'nightly' in code is refused: '0 25 .*hour 25 is not in 0-23"),
        ({"task": "shop.report", "shedule": 5}, "'nightly' in code is refused: .*'shedule'"),
        (entry("@hourly", overlap="never"), "'nightly' in code is refused: .*'never'"),
    ],
)
def test_a_declaration_that_a_beat_would_only_log_is_an_error_here(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidPeriodicTask, match=reason):
        upcoming(shop({"nightly": wrong}), NOON, NEXT_NOON)


def test_a_name_that_the_code_does_not_declare_is_an_error_and_not_an_empty_list() -> None:
    with pytest.raises(LookupError, match="declares no 'nigthly', only 'nightly'"):
        upcoming(shop({"nightly": entry("@daily")}), NOON, NEXT_NOON, name="nigthly")


def test_more_runs_than_the_limit_are_an_error() -> None:
    app = shop({"poll": entry(every("1s"))})

    assert 10 == len(upcoming(app, NOON, "2026-03-28T12:00:10Z", limit=10))
    with pytest.raises(ValueError, match="more than 10 runs"):
        upcoming(app, NOON, "2026-03-28T12:00:11Z", limit=10)
    with pytest.raises(ValueError, match="more than 10000 occurrences"):
        occurrences(every("1s"), NOON, NEXT_NOON)


@pytest.mark.parametrize("source", [PgBeat(url="postgresql://localhost/shop"), "shop"])
def test_a_source_without_an_app_is_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="is no Celery app"):
        upcoming(source, NOON, NEXT_NOON)


@pytest.mark.parametrize(
    "schedule", [crontab(minute="*/20"), cron("*/20 * * * *"), every("20m"), timedelta(minutes=20)]
)
def test_occurrences_of_a_schedule_alone(schedule: Any) -> None:
    found = occurrences(schedule, NOON, "2026-03-28T12:40Z")

    assert [at("2026-03-28T12:20Z"), at("2026-03-28T12:40Z")] == found


def test_a_schedule_alone_is_read_on_the_clocks_of_the_zone() -> None:
    found = occurrences("30 2 * * *", NOON, NEXT_NOON, timezone="Europe/Berlin")

    assert [at("2026-03-29 03:00 Europe/Berlin")] == found


def test_a_row_without_a_schedule_is_expected_after_those_of_the_code() -> None:
    app = shop({"hourly": entry("0 * * * *"), "night": entry("0 3 * * *", run_on_start=True)}, timezone="UTC")
    beat = PgBeat(app)

    def declare(name: str, **columns: Any) -> None:
        @beat.periodic_task(None, name=name, **columns)
        @app.task(name=f"shop.{name}", shared=False)
        def task() -> None: ...

    declare("report", after=["hourly", "night"], queue="q")
    declare("mail", after=["report"])
    declare("later", after=["hourly"], blackout=["cron: 0 0 * * * PT23H"])
    declare("of another app", after=["elsewhere"])
    declare("around", after=["in a circle"])
    declare("in a circle", after=["around"])

    (report,) = upcoming(app, NOON, NEXT_NOON, name="report")
    assert (at("2026-03-29T03:00Z"), at("2026-03-29T03:00Z")) == (report.due_at, report.scheduled_for)
    assert "report at Sun 2026-03-29 03:00:00+00:00 (expected after 'hourly' and 'night')" == str(report)
    assert ("shop.report", "q") == (report.task, report.queue)
    (mail,) = upcoming(app, NOON, NEXT_NOON, name="mail")
    assert report.due_at == mail.due_at
    assert {at("2026-03-28T23:00Z")} == set(dues(app, NOON, "2026-03-28T23:30Z", name="later"))
    assert [] == [dues(app, name=name) for name in ("of another app", "around", "in a circle") if dues(app, name=name)]
