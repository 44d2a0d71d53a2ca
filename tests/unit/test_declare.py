"""What people declare in Python, and what becomes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args, get_type_hints
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from celery import Celery, Task, chain, group
from celery.beat import BeatLazyFunc
from celery.schedules import BaseSchedule, crontab, schedule
from celery.utils.time import remaining

import celery_pgbeat
from celery_pgbeat import cron, every
from celery_pgbeat.beat.upkeep.declared import read_declared, why
from celery_pgbeat.columns import DECLARED, PeriodicTask
from celery_pgbeat.declare import KNOWN_OPTIONS, Columns, Definition, Timing, app_timezone, define, task_of, timing_of
from celery_pgbeat.declare.call import plain
from celery_pgbeat.declare.columns import READERS
from celery_pgbeat.declare.entry import entry_of
from celery_pgbeat.declare.signature import check_call
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule, InvalidSetting
from celery_pgbeat.schedules import parse
from celery_pgbeat.settings import Settings
from tests.harness.values import UNSHOWABLE, nested

UTC = timezone.utc
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app() -> Iterator[Celery]:
    made = Celery("shop", broker="memory://", set_as_current=False)
    yield made
    made.close()


def row(
    when: Any = "@daily", task: Any = "shop.report", settings: Settings | None = None, **columns: Any
) -> Definition:
    return define("nightly", task, when, columns, settings or Settings())


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (cron("0 3 * * *"), "0 3 * * *"),
        (every("5m"), "every 5m"),
        (every("every 5 minutes"), "every 5 minutes"),
        (every("PT1H"), "PT1H"),
        (every(timedelta(hours=1, minutes=30)), "every 1h30m"),
        (every(0.5), "every 0.5s"),
        ("  @hourly ", "@hourly"),
        (timedelta(days=1), "every 1d"),
        (90, "every 1m30s"),
        (datetime(2030, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")), "2030-01-01T11:00:00Z"),
        (datetime(2030, 1, 1, 12), "2030-01-01T12:00:00"),
        (date(2030, 1, 1), "2030-01-01"),
        (schedule(timedelta(minutes=2)), "every 2m"),
        (crontab(), "crontab: * * * * *"),
        (crontab(0, 4), "crontab: 0 4 * * *"),
        (crontab("*/15", "8-17", "mon-fri", "1,15", "*/3"), "crontab: */15 8-17 1,15 */3 mon-fri"),
        (crontab(day_of_week="monday,Sunday", month_of_year="1-3"), "crontab: * * * 1-3 mon,sun"),
        (crontab(minute={30, 0}, hour=[8, 9, 10], day_of_month="1, 2"), "crontab: 0,30 8-10 1,2 * *"),
        (crontab(minute=range(60)), "crontab: 0-59 * * * *"),
    ],
)
def test_a_declared_schedule_becomes_text_that_the_engine_reads(declared: Any, text: str) -> None:
    timing = timing_of(declared, "Europe/Berlin")

    assert text == timing.text
    assert parse(timing.text, timing.timezone or "UTC")


def test_what_carries_no_zone_gets_that_of_the_app() -> None:
    assert timing_of(crontab(), "Europe/Berlin").timezone == "Europe/Berlin"
    assert timing_of(cron("@daily"), "Europe/Berlin").timezone == "Europe/Berlin"
    assert timing_of(cron("@daily", timezone="Asia/Tokyo"), "Europe/Berlin").timezone == "Asia/Tokyo"


def test_a_crontab_keeps_the_zone_that_it_was_given() -> None:
    by_clock = crontab(nowfun=lambda: datetime.now(ZoneInfo("Asia/Tokyo")))
    by_attribute = crontab()
    by_attribute.tz = ZoneInfo("America/New_York")
    naive_clock = crontab(nowfun=datetime.now)

    assert timing_of(by_clock, "UTC").timezone == "Asia/Tokyo"
    assert timing_of(by_attribute, "UTC").timezone == "America/New_York"
    assert timing_of(naive_clock, "Europe/Berlin").timezone == "Europe/Berlin"


def test_a_crontab_of_a_fixed_offset_is_refused_because_it_knows_no_daylight_saving_time() -> None:
    fixed = crontab(nowfun=lambda: datetime.now(timezone(timedelta(hours=2))))

    with pytest.raises(InvalidSchedule, match=r"UTC\+02:00.*no time zone with an IANA name"):
        timing_of(fixed)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("Europe/Berln", "'Europe/Berln': there is no time zone of that name; did you mean 'Europe/Berlin'?"),
        ("+02:00", "'+02:00': there is no time zone of that name; an offset is not a time zone"),
        (timezone(timedelta(hours=1)), "'UTC+01:00': no time zone with an IANA name"),
    ],
)
def test_an_invalid_zone_of_the_app_is_refused_with_the_name_of_the_setting(zone: Any, said: str) -> None:
    app = Celery(set_as_current=False)
    app.conf.timezone = zone

    with pytest.raises(InvalidSetting, match="^Celery's setting timezone: " + re.escape(said)):
        app_timezone(app)


RELATIVE = [  # what Celery 5.7 says for a last run at that instant, where it and the grid agree
    ("Europe/Berlin", timedelta(days=1), "2026-03-28T12:00", ["2026-03-28T23:00", "2026-03-29T22:00"]),
    ("Europe/Berlin", timedelta(days=1), "2026-10-24T12:00", ["2026-10-24T22:00", "2026-10-25T23:00"]),
    ("Europe/Berlin", timedelta(hours=1), "2026-03-28T12:10", ["2026-03-28T13:00", "2026-03-28T14:00"]),
    ("Asia/Kolkata", timedelta(hours=1), "2026-03-28T12:10", ["2026-03-28T12:30", "2026-03-28T13:30"]),
    ("Asia/Kathmandu", timedelta(hours=1), "2026-03-28T12:10", ["2026-03-28T12:15", "2026-03-28T13:15"]),
    ("America/New_York", timedelta(days=1), "2026-03-07T12:00", ["2026-03-08T05:00", "2026-03-09T04:00"]),
    ("UTC", timedelta(minutes=1), "2026-03-28T12:00:30", ["2026-03-28T12:01", "2026-03-28T12:02"]),
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(("zone", "length", "since", "expected"), RELATIVE)
@pytest.mark.parametrize("kind", ["object", "entry"])
def test_a_relative_interval_keeps_to_the_wall_clock_of_the_zone_as_in_celery(
    zone: str, length: timedelta, since: str, expected: list[str], kind: str
) -> None:
    given: dict[str, Any] = {"task": "t", "schedule": length, "relative": True}
    entry = entry_of("a", given if kind == "entry" else {"task": "t", "schedule": schedule(length, relative=True)})
    row = define("a", "t", entry.schedule, entry.columns, Settings(), zone)

    assert row.schedule is not None
    ours = parse(row.schedule, zone, anchor=row.anchor)
    assert [utc(instant) for instant in expected] == list(ours.occurrences(utc(since), limit=2))
    last = utc(since)
    for instant in expected:
        left = remaining(last.astimezone(ZoneInfo(zone)), length, last, relative=True)
        assert utc(instant) == last + left, "Celery's own answer"
        last = utc(instant)


def test_relative_beside_text_counts_from_midnight_and_beside_a_crontab_says_nothing() -> None:
    text = entry_of("a", {"task": "t", "schedule": "every 6h", "relative": True})
    fields = entry_of("a", {"task": "t", "schedule": crontab(minute=5), "relative": True})

    assert define("a", "t", text.schedule, text.columns, Settings(), "Asia/Kolkata").anchor == datetime(
        2024, 1, 1, tzinfo=ZoneInfo("Asia/Kolkata")
    )
    assert define("a", "t", fields.schedule, fields.columns, Settings(), "Asia/Kolkata").anchor is None
    assert timing_of(schedule(timedelta(hours=1))).anchor is None


def test_solar_is_written_with_its_place() -> None:
    # Celery's own needs an extra to be made; only the name of the class and its fields matter.
    solar = type("solar", (BaseSchedule,), {"__module__": "celery.schedules", "event": "sunset", "lat": 52.52})
    solar.lon = 13.4  # type: ignore[attr-defined]

    assert timing_of(solar()).text == "solar: sunset 52.52 13.4"


@pytest.mark.parametrize(
    "wrong", [0, -1, float("nan"), float("inf"), True, 1e300, timedelta(0), timedelta(days=40_000)]
)
def test_an_interval_must_be_a_length_of_time(wrong: Any) -> None:
    with pytest.raises(InvalidSchedule, match="interval"):
        every(wrong)


def test_a_task_that_cannot_even_be_shown_is_refused() -> None:
    with pytest.raises(InvalidPeriodicTask, match="task is something nested too deeply to be shown, neither"):
        task_of(nested(UNSHOWABLE))


@pytest.mark.parametrize("wrong", [object(), ["@daily"], b"@daily"])
def test_a_value_that_is_not_a_schedule_is_refused_by_its_type(wrong: Any) -> None:
    with pytest.raises(InvalidSchedule, match="is not a schedule: use cron"):
        timing_of(wrong)


def test_cron_and_every_refuse_at_once_what_can_never_work() -> None:
    with pytest.raises(InvalidSchedule, match="hour 25 is not in 0-23"):
        cron("0 25 * * *")
    with pytest.raises(InvalidSchedule, match="no time zone of that name"):
        cron("@daily", timezone="Mars/Olympus")
    with pytest.raises(InvalidSchedule, match="not a cron expression"):
        cron("every 5m")
    with pytest.raises(InvalidSchedule, match="'parsecs' is not a unit of time"):
        every("5 parsecs")
    with pytest.raises(InvalidSchedule, match="not text"):
        cron(5)  # type: ignore[arg-type]


def test_a_call_is_told_by_a_task_a_name_or_a_signature(app: Celery) -> None:
    @app.task(shared=False, name="shop.add")
    def add(x: int, y: int) -> int:
        return x + y

    signature = add.s(1, y=2).set(queue="fast", expires=60)

    assert task_of("shop.add").task == "shop.add"
    assert task_of(add).task == "shop.add"
    assert task_of(signature) == ("shop.add", (1,), {"y": 2}, {"queue": "fast", "expires": 60})


def test_a_signature_of_several_tasks_and_a_plain_function_are_refused(app: Celery) -> None:
    @app.task(shared=False, name="shop.add")
    def add(x: int) -> int:
        return x

    with pytest.raises(
        InvalidPeriodicTask, match="task is a chain; a row holds the call of one task: call a small task"
    ):
        task_of(chain(add.s(1), add.s()))
    app.add_periodic_task(60, chain(add.s(1), add.s()), name="both")
    with pytest.raises(InvalidPeriodicTask, match=r"task is 'celery\.chain', which is not a real task; a row holds"):
        task_of(app.conf.beat_schedule["both"]["task"])
    with pytest.raises(InvalidPeriodicTask, match="neither a Celery task nor the name of one"):
        task_of(lambda: None)


@pytest.mark.parametrize("canvas", [chain, group])
def test_a_canvas_that_celery_makes_a_task_of_is_refused_with_the_way_out(app: Celery, canvas: Any) -> None:
    @app.task(shared=False, name="shop.add")
    def add(x: int) -> int:
        return x

    app.add_periodic_task(60, canvas(add.s(1), add.s(2)), name="both")
    entry = entry_of("both", app.conf.beat_schedule["both"])

    with pytest.raises(
        InvalidPeriodicTask, match="not a real task; a row holds the call of one task: call a small task"
    ):
        row(entry.schedule, entry.task, **entry.columns)


@pytest.fixture
def tasks(app: Celery) -> Celery:
    @app.task(shared=False, name="shop.add")
    def add(x: int, y: int = 0) -> None: ...

    @app.task(shared=False, name="shop.bound", bind=True)
    def bound(self: Any, x: int) -> None: ...

    @app.task(shared=False, name="shop.free", typing=False)
    def free(x: int) -> None: ...

    class Filling(Task):
        def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
            return super().apply_async((*(args or ()), 1), kwargs, **options)

    @app.task(shared=False, name="shop.filled", base=Filling)
    def filled(x: int) -> None: ...

    app.finalize()
    return app


@pytest.mark.parametrize(
    ("task", "columns", "wrong"),
    [
        ("shop.add", {}, "add() missing 1 required positional argument: 'x'"),
        ("shop.add", {"args": [1, 2, 3]}, "add() takes from 1 to 2 positional arguments but 3 were given"),
        ("shop.add", {"args": [1], "kwargs": {"z": 1}}, "add() got an unexpected keyword argument 'z'"),
        ("shop.bound", {"args": [1, 2]}, "bound() takes 2 positional arguments but 3 were given"),
        (
            "shop.add",
            {"kwargs": {"z": 1}, "sensitive": True},
            "does not match the task 'shop.add': <sensitive>",
        ),
    ],
)
def test_a_call_that_does_not_match_its_task_is_refused(
    tasks: Celery, task: str, columns: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(InvalidPeriodicTask) as refused:
        check_call(row(task=task, **columns), tasks)

    assert wrong in str(refused.value)


@pytest.mark.parametrize(
    ("task", "columns"),
    [
        ("shop.add", {"args": [1]}),
        ("shop.add", {"kwargs": {"x": 1, "y": 2}}),
        ("shop.bound", {"args": [1]}),
        ("shop.free", {}),
        ("shop.filled", {}),
        ("shop.unknown", {"args": [1]}),
    ],
)
def test_a_call_that_matches_or_that_celery_does_not_check_is_let_through(
    tasks: Celery, task: str, columns: dict[str, Any]
) -> None:
    check_call(row(task=task, **columns), tasks)
    check_call(row(task=task, **columns), None)


def test_an_app_is_not_finalised_by_the_check_of_a_call() -> None:
    early = Celery("early", broker="memory://", set_as_current=False)

    check_call(row(task="shop.add"), early)

    assert not early.finalized


def test_a_signature_says_arguments_options_and_queue_unless_the_row_does(app: Celery) -> None:
    @app.task(shared=False, name="shop.add")
    def add(x: int) -> int:
        return x

    signature = add.s(1).set(queue="fast", priority=3, expires=60)

    said = row(task=signature)
    overruled = row(task=signature, args=[2], queue="slow", options={"expires": 5})

    assert ("[1]", "fast", 3, '{"expires": 60}') == (said.args, said.queue, said.priority, said.options)
    assert ("[2]", "slow", '{"expires": 5}') == (overruled.args, overruled.queue, overruled.options)


def test_arguments_are_written_as_celery_writes_them_and_come_back_the_same() -> None:
    args = [NEW_YEAR, UUID(int=7), Decimal("1.50"), {"ü": [1, None, "\x01\\u0000"]}]

    assert args == plain(row(args=args).args)


def test_json_that_only_looks_like_a_celery_type_is_left_as_it_is() -> None:
    assert plain('{"__type__": "orbit", "__value__": 1}') == {"__type__": "orbit", "__value__": 1}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"args": [1, object()]}, r"args\[1\] is an object that is not JSON"),
        ({"kwargs": {"when": lambda: None}}, r"kwargs\['when'\] is a function that is not JSON"),
        ({"kwargs": {"share": float("nan")}}, r"kwargs\['share'\] .* not JSON compliant"),
        ({"kwargs": {1: 2}}, "kwargs has the key 1"),
        ({"args": "abc"}, "args is a str, not a list or tuple"),
        ({"args": 3}, "args is an int, not a list or tuple"),
        ({"kwargs": [1]}, "kwargs is a list, not a dict"),
        ({"args": ["a\0b"]}, r"args\[0\] holds the character NUL"),
        ({"args": ["\ud800"]}, r"args\[0\] .* surrogates"),
        ({"args": ["x" * 65_536]}, "args and kwargs have 65542 bytes together, more than 65536"),
        ({"queue": ""}, "queue is empty"),
        ({"queue": object()}, "queue is .*, not text"),
        ({"subject": "a\0"}, "subject is .*; Postgres stores neither NUL"),
        ({"priority": 256}, "priority 256 is not in 0-255"),
        ({"min_gap": 10**400}, r"min_gap is 10{76}\.\.\. seconds, which is too long"),
        ({"jitter": "x" * 10_000}, r"jitter is 'x{76}\.\.\.: "),
        ({"blackout": [nested(UNSHOWABLE)]}, r"blackout\[0\] is something nested too deeply to be shown, not text"),
        ({"overlap": nested(UNSHOWABLE)}, "overlap is something nested too deeply to be shown, not one of skip"),
        ({"x" * 10_000: 1}, r"there is no column 'x{76}\.\.\."),
        ({"priority": 10**5000}, "priority a number of thousands of digits is not in 0-255"),
        ({"max_runs": 10**5000}, "max_runs is a number of thousands of digits, not a whole number"),
        ({"options": {"time_limit": 10**5000}}, "is a number of thousands of digits, not a number of seconds from 0"),
        ({"options": {"time_limit": 10**400}}, r"is 10{76}\.\.\., not a number of seconds from 0 to 31622400"),
        ({"priority": True}, "priority is True, not a whole number"),
        ({"overlap": "maybe"}, "overlap is 'maybe', not one of skip, buffer_one, buffer_all"),
        ({"overlap": "skp"}, "terminate_other, allow. Did you mean 'skip'?"),
        ({"on_lost": "re-run"}, "on_lost is 're-run', not one of give_up, rerun. Did you mean 'rerun'?"),
        ({"overlap": None}, "overlap is None; leave it out for the default, 'skip'"),
        ({"catchup": "some"}, "catchup is 'some', not one of none, latest, earliest, all"),
        ({"catchup_limit": 0}, "catchup_limit is 0, not at least 1"),
        ({"catchup_limit": True}, "catchup_limit is True, not a whole number up to"),
        ({"jitter": -1}, "jitter is -1; it must be at least 0"),
        ({"jitter": "367d"}, "jitter is '367d'; it must be at most 366 days"),
        ({"jitter": "P1M"}, "jitter is 'P1M'; months and years have no fixed length"),
        ({"blackout": 5}, "blackout is 5, neither text nor a list of texts"),
        ({"blackout": b"0 0 * * * PT5H"}, "blackout is b'0 0 .*, neither text nor a list of texts"),
        ({"blackout": {"0 0 * * * PT5H": 1}}, "blackout is {.*, neither text nor a list of texts"),
        ({"blackout": ["window: a", None]}, r"blackout\[1\] is None, not text"),
        ({"blackout": "window: \0"}, "blackout is 'window: .*'; Postgres stores neither NUL"),
        ({"blackout_action": "wait"}, "blackout_action is 'wait', not one of defer, skip"),
        ({"blackout_action": None}, "blackout_action is None; leave it out for the default, 'defer'"),
        ({"dst": "ignore"}, "dst is 'ignore'"),
        ({"on_lost": "cry"}, "on_lost is 'cry'"),
        ({"tracking": "none"}, "tracking is 'none'"),
        ({"max_runs": 0}, "max_runs is 0, not at least 1"),
        ({"max_runs": 2**31}, "max_runs is 2147483648, not a whole number up to"),
        ({"max_run_time": 0}, "max_run_time is 0; it must be more than 0"),
        ({"max_run_time": "0%"}, "max_run_time is '0%'; it must be more than 0"),
        ({"max_run_time": "soon"}, "max_run_time is 'soon'.*use a timedelta"),
        ({"max_run_time": "P1M"}, "max_run_time is 'P1M'; months and years have no fixed length"),
        ({"max_run_time": timedelta(days=367)}, "max_run_time is .*; it must be at most 366 days"),
        ({"max_run_time": "40000%"}, "max_run_time is .*days=400.*; it must be at most 366 days"),
        ({"catchup_window": -1}, "catchup_window is -1; it must be at least 0"),
        ({"catchup_window": timedelta(days=36_001)}, "catchup_window is .*; it must be at most 36000 days"),
        ({"catchup_window": [1]}, r"catchup_window is \[1\]; use a timedelta"),
        ({"catchup_window": 1e300}, "catchup_window is 1e.300 seconds, which is too long"),
        ({"start_at": "2026-01-01"}, "start_at is '2026-01-01', not a datetime"),
        ({"start_at": datetime(1, 1, 1), "timezone": "UTC"}, "start_at is .*, outside the years 1 to 9999"),
        ({"start_at": NEW_YEAR, "end_at": NEW_YEAR - timedelta(seconds=1)}, "end_at .* is before start_at"),
        ({"overlpa": "skip"}, "there is no column 'overlpa'. Did you mean 'overlap'?"),
        ({"options": [1]}, "options is a list, not a dict"),
        ({"options": {"task_id": "x"}}, "options has 'task_id', which a periodic task cannot set; known are"),
        ({"options": {"exprires": 1}}, "options has 'exprires'.*Did you mean 'expires'?"),
        ({"options": {"serializer": "pickle"}}, r"options\['serializer'\] is 'pickle', not 'json', the only one"),
        ({"options": {"countdown": -1}}, r"options\['countdown'\] is -1, not a number of seconds"),
        ({"options": {"retry": "yes"}}, r"options\['retry'\] is 'yes', not true or false"),
        ({"options": {"headers": []}}, r"options\['headers'\] is \[\], not a dict"),
        ({"options": {"headers": {"x": object()}}}, "options is a dict that is not JSON"),
        ({"options": {"headers": {"pgbeat": 1}}}, "has a header 'pgbeat', which is ours"),
        ({"options": {"priority": 999}}, "priority 999 is not in 0-255"),
    ],
)
def test_a_wrong_column_is_refused_by_name_and_value(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidPeriodicTask, match=said):
        row(**columns)


@pytest.mark.parametrize("secret", [{"args": ["hush", object()]}, {"kwargs": {"token": {"hush": object()}}}])
def test_a_refusal_never_shows_the_arguments(secret: dict[str, Any]) -> None:
    with pytest.raises(InvalidPeriodicTask) as refusal:
        row(**secret)

    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "name is empty"), (None, "name is None"), ("x" * 201, "201 characters, not 1 to 200")],
)
def test_a_name_is_a_text_of_one_to_two_hundred_characters(name: Any, said: str) -> None:
    with pytest.raises(InvalidPeriodicTask, match=said):
        define(name, "shop.report", "@daily", {}, Settings())


def test_a_task_must_be_named_and_allowed() -> None:
    settings = Settings(allowed_tasks=("shop.*",))

    assert row(task="shop.report", settings=settings).task == "shop.report"
    with pytest.raises(InvalidPeriodicTask, match=r"'os.remove' is not in pgbeat_allowed_tasks \(shop.\*\)"):
        row(task="os.remove", settings=settings)
    with pytest.raises(InvalidPeriodicTask, match="task is missing"):
        row(task=None)


def test_an_interval_below_the_shortest_allowed_is_refused_naming_the_setting() -> None:
    slow = Settings(min_interval=timedelta(minutes=1))

    with pytest.raises(InvalidPeriodicTask, match=r"runs every 0\.5 s, and pgbeat_min_interval is 1 s"):
        row(0.5)
    with pytest.raises(InvalidPeriodicTask, match="runs every 10 s, and pgbeat_min_interval is 60 s"):
        row("*/10 * * * * *", settings=slow)
    assert row("* * * * * *").schedule == "* * * * * *"
    assert row("* * * * *", settings=slow).schedule == "* * * * *"


@pytest.mark.parametrize(
    ("given", "duration"),
    [("30m", 1800), ("1h30m", 5400), ("PT5M", 300), ("P1DT1S", 86_401), (2.5, 2.5), (timedelta(hours=1), 3600)],
)
def test_durations_are_timedeltas_seconds_or_text(given: Any, duration: float) -> None:
    assert timedelta(seconds=duration) == row(max_run_time=given).max_run_time
    assert timedelta(seconds=duration) == row(catchup_window=given).catchup_window
    assert timedelta(seconds=duration) == row(jitter=given).jitter


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("cron: 0 0 * * sat P2D; window: night", ["cron: 0 0 * * sat P2D; window: night"]),
        (["0 0 * * sat P2D", "window: night"], ["0 0 * * sat P2D", "window: night"]),
        (("RRULE:FREQ=DAILY;BYHOUR=0 PT30S",), ["RRULE:FREQ=DAILY;BYHOUR=0 PT30S"]),
        ([], []),
        (None, None),
    ],
)
def test_windows_are_a_text_or_a_list_of_texts(given: Any, texts: list[str] | None) -> None:
    declared = row(blackout=given, blackout_action="skip").record()

    assert (texts, "skip") == (declared["blackout"], declared["blackout_action"])


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ("cron: 0 25 * * * PT5H", "'cron: 0 25 .* PT5H': hour 25 is not in 0-23"),
        (["window: night", ""], "'': '' is not a schedule and a duration"),
        ("0 0 * * *", "'0 0 .*' is not a schedule and a duration, such as cron: 0 0 "),
        ("window:", "there is no blackout window named ''"),
        ("* * * * * PT1M", "more than 1,000 windows follow each other without a free moment"),
        (["0 0 * * * PT1M; 9 0 * * * PT1M"] * 10 + ["window: x; 0 0 * * * PT1M"], "there are 21 windows, more than 20"),
    ],
)
def test_a_window_that_can_never_work_is_refused(windows: Any, said: str) -> None:
    with pytest.raises(InvalidSchedule, match=said):
        row(blackout=windows)


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        (["window: night"] * 21, "blackout has 21 elements, more than 20"),
        (["window: night", "", "x" * 4_251], "blackout has an element of 4251 characters, more than 4250"),
    ],
)
def test_windows_have_bounds_before_they_are_read(windows: Any, said: str) -> None:
    with pytest.raises(InvalidPeriodicTask) as refused:
        row(blackout=windows)

    assert said == str(refused.value)


def test_windows_are_judged_in_the_zone_of_the_row() -> None:
    half_days = "CRON_TZ=Asia/Tokyo 0 0 * * * PT12H; 0 12 * * * PT12H"

    assert row("@daily", blackout=half_days).blackout == (half_days,)
    with pytest.raises(InvalidSchedule, match="without a free moment"):
        row(cron("@daily", timezone="Asia/Tokyo"), blackout=half_days)
    with pytest.raises(InvalidSchedule, match="'Mars/Olympus': there is no time zone of that name"):
        row(blackout="CRON_TZ=Mars/Olympus 0 0 * * * PT5H")


def test_a_run_time_may_be_a_share_of_the_interval() -> None:
    assert row(every("10m"), max_run_time="50%").max_run_time == timedelta(minutes=5)
    with pytest.raises(InvalidPeriodicTask, match="the schedule has no interval"):
        row(None, max_run_time="50%")


def test_the_zone_may_be_said_once() -> None:
    assert row(cron("@daily", timezone="Asia/Tokyo")).timezone == "Asia/Tokyo"
    assert row("@daily", timezone="Asia/Tokyo").timezone == "Asia/Tokyo"
    assert row("@daily", timezone=ZoneInfo("Asia/Tokyo")).timezone == "Asia/Tokyo"
    assert row(cron("@daily", timezone=ZoneInfo("Asia/Tokyo"))).timezone == "Asia/Tokyo"
    assert row(None, timezone="Asia/Tokyo").timezone == "Asia/Tokyo"
    with pytest.raises(InvalidPeriodicTask, match="timezone is 'UTC', but the schedule says 'Asia/Tokyo'"):
        row(cron("@daily", timezone="Asia/Tokyo"), timezone="UTC")
    with pytest.raises(InvalidSchedule, match="'Mars/Olympus': there is no time zone of that name"):
        row(None, timezone="Mars/Olympus")


def test_naive_instants_are_read_in_the_zone_of_the_row() -> None:
    read = row("@daily", timezone="Asia/Tokyo", start_at=datetime(2026, 1, 1), anchor=datetime(2026, 1, 1, tzinfo=UTC))

    timing = Timing("every 1h", timezone="Asia/Tokyo", anchor=datetime(2026, 1, 1))

    assert row(timing).record()["anchor"] == "2025-12-31T15:00:00+00:00"
    assert read.record()["start_at"] == "2025-12-31T15:00:00+00:00"
    assert read.record()["anchor"] == "2026-01-01T00:00:00+00:00"


def test_durations_and_instants_among_the_options_become_json() -> None:
    options = json.loads(row(options={"expires": timedelta(minutes=1), "eta": NEW_YEAR, "time_limit": 9.5}).options)

    assert {"expires": 60, "eta": "2026-01-01T00:00:00+00:00", "time_limit": 9.5} == options


def test_a_record_holds_json_that_is_equal_for_equal_declarations() -> None:
    first, again = row(every(60), kwargs={"b": 1, "a": 2}), row(every("1m"), kwargs={"a": 2, "b": 1})

    assert json.dumps(first.record()) == json.dumps(again.record())


def test_the_types_of_the_arguments_name_the_columns_of_the_table() -> None:
    assert list(Columns.__annotations__) == list(READERS)
    assert Columns is celery_pgbeat.Columns
    assert set(READERS) == set(DECLARED) - {"name", "task", "schedule", "managed_by"}


def test_the_types_of_the_arguments_name_the_values_of_the_columns() -> None:
    choices = {name: tuple(column.choices) for name, column in DECLARED.items() if column.choices}

    for of in (Columns, PeriodicTask):
        hints = get_type_hints(of)
        assert choices == {name: get_args(hints[name]) for name in choices}


def test_a_definition_has_the_columns_of_the_table_and_no_other_attribute() -> None:
    assert set(row().values) == set(row().record()) == set(DECLARED)
    assert not hasattr(row(), "colour")


@pytest.mark.parametrize("option", ["link", "link_error", "chain", "chord"])
def test_an_option_that_starts_other_tasks_is_refused_with_the_way_out(app: Celery, option: str) -> None:
    @app.task(shared=False, name="shop.add")
    def add(x: int) -> int:
        return x

    said = f"options has '{option}', and a row holds the call of one task: call a small task of your own"
    for declare in (lambda: row(options={option: add.s(1)}), lambda: row(task=add.s(1).set(**{option: add.s(2)}))):
        with pytest.raises(InvalidPeriodicTask, match=said):
            declare()


def test_no_option_is_known_that_names_links_or_carries_live_objects() -> None:
    refused = {"task_id", "producer", "connection", "publisher", "link", "link_error", "chain", "chord", "group_id"}

    assert not KNOWN_OPTIONS & (refused | {"root_id", "parent_id", "add_to_parent", "queue", "priority", "declare"})


def test_the_zone_of_an_app_is_a_name(app: Celery) -> None:
    other = Celery("other", set_as_current=False)
    other.conf.timezone = "Europe/Berlin"

    assert app_timezone(app) == "UTC"
    assert app_timezone(other) == "Europe/Berlin"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "the entry is an int, not a dict"),
        ({"task": "t", "shedule": 5}, "has 'shedule', which is none of Celery's keys. Did you mean 'schedule'?"),
        (
            {"task": "t", "schedule": 5, "enabled": False},
            "'enabled', which is none of Celery's keys: leave it out. To pau",
        ),
        (
            {"task": "t", "schedule": 5, "description": "x"},
            r"""'description', .*: write {"pgbeat": {"subject": …}} into""",
        ),
        ({"task": "t", "schedule": 5, "queue": "x"}, r"""'queue', .*: write {"pgbeat": {"queue": …}} into the entry"""),
        ({"task": "t"}, "the entry has no 'schedule', and its 'pgbeat' no 'after'"),
        ({"task": "t", "schedule": 5, "pgbeat": 5}, "'pgbeat' is an int, not a dict of columns"),
        ({"task": "t", "schedule": 5, "pgbeat": {"args": [1]}}, "'pgbeat' has 'args': set it in the entry itself"),
    ],
)
def test_a_wrong_entry_of_beat_schedule_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidPeriodicTask, match=said):
        entry_of("a", given)


def test_an_entry_of_beat_schedule_may_carry_our_columns() -> None:
    entry = entry_of(
        "a",
        {
            "task": "t",
            "schedule": crontab(),
            "args": (1,),
            "options": {"queue": "q"},
            "pgbeat": {"overlap": "allow", "run_on_start": True},
        },
    )

    assert {"args": (1,), "options": {"queue": "q"}, "overlap": "allow"} == entry.columns
    assert entry.run_on_start


def test_lazy_arguments_are_not_evaluated_by_a_declaration() -> None:
    lazy = BeatLazyFunc(lambda: pytest.fail("evaluated"))

    assert entry_of("a", {"task": "t", "schedule": 5, "kwargs": {"x": lazy}}).columns["kwargs"] == {"x": lazy}


def test_a_timing_is_a_value() -> None:
    assert cron("@daily") == Timing("@daily")
    assert hash(every("5m")) == hash(every("5m"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"args": 3}, "args is an int, not a list or tuple"),
        ({"args": {1}}, "args is a set, not a list or tuple"),
        ({"args": "abc"}, "args is a str, not a list or tuple"),
        ({"kwargs": [1]}, "kwargs is a list, not a dict"),
        ({"kwargs": 5}, "kwargs is an int, not a dict"),
        ({"args": 3, "kwargs": [1]}, "args is an int, not a list or tuple"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused_in_words_of_ours(call: dict[str, Any], said: str) -> None:
    app = Celery("shop", set_as_current=False)
    app.conf.beat_schedule = {"x": {"task": "t", "schedule": 60, **call}}

    assert said == why(read_declared(app, Settings()).refused["x"])
    with pytest.raises(InvalidPeriodicTask, match=said):
        define("x", {"task": "t", **call}, "every 1m", {}, Settings())
