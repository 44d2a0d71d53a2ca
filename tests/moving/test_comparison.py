"""What another scheduler has sent, read and compared with what ours would have sent."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.cli import main
from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.moving.comparison import Compared, _matched, compare, unsent
from celery_pgbeat.moving.readers.sent_lines import sent_in
from celery_pgbeat.moving.recorder import Recorder
from tests.harness.cli_shapes import WITH_WORDS, fault
from tests.harness.session import Session
from tests.harness.shell import Run

NOON = datetime(2026, 12, 24, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def after(*seconds: float) -> list[datetime]:
    return [NOON + one * SECOND for one in seconds]


def compared(
    theirs: Sequence[datetime], ours: Sequence[datetime], period: float = 0, since: datetime = NOON - HOUR
) -> Compared:
    periods = {"a": period * SECOND} if period else {}
    (found,) = compare({"a": theirs}, {"a": ours}, periods, 5 * SECOND, since, NOON + HOUR)
    return found


def seconds(instants: Sequence[datetime]) -> list[float]:
    return [(one - NOON).total_seconds() for one in instants]


# Matching.


def test_runs_are_matched_one_to_one() -> None:
    found = compared(after(0, 60, 120, 180), after(1, 58, 61, 240))

    assert (2, [120, 180], [61, 240]) == (found.both, seconds(found.only_theirs), seconds(found.only_ours))


def test_the_same_interval_from_another_instant_is_equal_and_another_interval_is_not() -> None:
    assert not compared(after(*range(0, 600, 60)), after(*range(31, 600, 60)), period=60).differs
    assert compared(after(*range(0, 600, 60)), after(*range(0, 600, 90)), period=60).differs


def drifting(period: float, each: float, *, without: int | None = None) -> list[datetime]:
    """Return an hour of runs of a beat that counts from its last run and sends each one this many seconds late."""
    count = int(3_600 / (period + each))
    return after(*(number * (period + each) for number in range(count) if number != without))


def test_an_interval_that_drifts_and_leaves_out_no_run_is_equal() -> None:
    ours = after(*range(0, 3_600, 2))

    drifted = compared(drifting(2, 0.01), ours, 2, NOON)
    left_out = compared(drifting(2, 0.01, without=700), ours, 2, NOON)
    otherwise = compared(drifting(2, 0.3), ours, 2, NOON)
    stopped = compared(drifting(2, 0.01)[:1_000], ours, 2, NOON)

    assert (False, True) == (drifted.differs, 5 < drifted.drifted < 12)
    assert [True, True, True] == [left_out.differs, otherwise.differs, stopped.differs]


def test_what_is_near_the_ends_is_left_out() -> None:
    edge = 3_600
    found = compared(after(-edge + 2, 0, edge - 2), after(0))
    assert (1, False) == (found.both, found.differs)

    assert compared(after(edge - 2), []).is_open
    assert not compared(after(edge - 6), []).is_open


SOME = st.lists(st.integers(0, 60), max_size=7).map(sorted)


@given(SOME, SOME, st.integers(0, 20))
def test_as_many_runs_are_matched_as_can_be(theirs: list[int], ours: list[int], tolerance: int) -> None:
    def most(left: tuple[int, ...], right: tuple[int, ...]) -> int:
        if not left:
            return 0
        pairs = [at for at, one in enumerate(right) if abs(one - left[0]) <= tolerance]
        taken = [1 + most(left[1:], right[:at] + right[at + 1 :]) for at in pairs[:1] + pairs[-1:]]
        return max([most(left[1:], right), *taken])

    both, only_theirs, only_ours = _matched(after(*theirs), after(*ours), tolerance * SECOND)

    assert most(tuple(theirs), tuple(ours)) == both
    assert (len(theirs) - both, len(ours) - both) == (len(only_theirs), len(only_ours))


# Reading.


@pytest.mark.parametrize(
    ("theirs", "period", "left"),
    [
        ([0.1, 10.1], 10, [20, 30]),
        ([3, 13], 10, [20, 30]),  # counted from another instant: the next one there would have come at 23
        ([7, 17], 10, [30]),  # at 27
        ([], 10, [0, 10, 20, 30]),
        ([0.1, 9.9], 0, [20, 30]),  # not an interval: it was sent a little early
        ([30.1], 0, []),
    ],
)
def test_what_was_due_after_the_last_run_of_the_other_scheduler_is_unsent(
    theirs: list[float], period: float, left: list[float]
) -> None:
    periods = {"a": period * SECOND} if period else {}

    found = unsent({"a": after(*theirs)}, {"a": after(0, 10, 20, 30)}, periods, 5 * SECOND)

    assert left == seconds(found.get("a", []))


def test_lines_of_the_recorder_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    sender = SimpleNamespace(scheduler=SimpleNamespace(apply_async=lambda _entry: SimpleNamespace(id="7")))
    Recorder(path).watch(sender)
    before = datetime.now(timezone.utc)
    sender.scheduler.apply_async(SimpleNamespace(name="nightly", task="shop.report"))

    found = sent_in([str(path)], None)

    assert found.since is not None
    assert found.since <= before <= found.instants["nightly"][0] <= datetime.now(timezone.utc)
    line = json.loads(path.read_text().splitlines()[1])
    assert ("nightly", "shop.report", "7") == (line["name"], line["task"], line["id"])


def test_a_message_that_failed_is_not_recorded_and_a_full_disk_stops_no_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_entry: Any) -> None:
        raise ConnectionError

    def end(_entry: Any) -> None:
        raise SystemExit

    path = tmp_path / "sent.jsonl"
    broken = SimpleNamespace(scheduler=SimpleNamespace(apply_async=refuse))
    Recorder(path).watch(broken)
    with pytest.raises(ConnectionError):
        broken.scheduler.apply_async(SimpleNamespace(name="nightly", task="shop.report"))
    assert 1 == len(path.read_text().splitlines())

    ending = SimpleNamespace(scheduler=SimpleNamespace(apply_async=end))
    Recorder(path).watch(ending)
    with pytest.raises(SystemExit):
        ending.scheduler.apply_async(SimpleNamespace(name="nightly", task="shop.report"))
    assert ["nightly"] == list(sent_in([str(path)], None).instants), "the broker may have it"

    caplog.set_level(logging.ERROR)
    well = SimpleNamespace(scheduler=SimpleNamespace(apply_async=lambda _entry: "sent"))
    Recorder(tmp_path / "no folder" / "sent.jsonl").watch(well)
    assert "sent" == well.scheduler.apply_async(SimpleNamespace(name="nightly", task="shop.report"))
    assert 1 == len(caplog.messages), "once"


def test_a_log_of_beat_is_read_in_the_zone_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "beat.log"
    path.write_text(
        "celery beat v5.6.0 is starting.\n"
        "[2026-12-24 13:00:00,123: INFO/MainProcess] Scheduler: Sending due task every (odd) name (shop.report)\n"
        "[2026-12-24 13:00:01,000: INFO/MainProcess] beat: Waking up in 5.00 minutes.\n"
    )

    found = sent_in([str(path)], ZoneInfo("Europe/Berlin"))

    assert {"every (odd) name": after(0.123)} == found.instants


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello\n", "neither a line of record_sent"),
        ('{"name": "a"}\n', "line 1"),
        ('{"name": "a", "sent_at": "2026-12-24T12:00:00"}\n', "line 1"),
        ('{"name": 7, "sent_at": "2026-12-24T12:00:00Z"}\n', "line 1"),
        ("{\n", "line 1"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "sent"
    path.write_text(text)
    with pytest.raises(InvalidSource, match=said):
        sent_in([str(path)], None)


def test_a_line_that_is_being_written_is_left_out_and_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sent"
    path.write_text('{"name": "a", "sent_at": "2026-12-24T12:00:00Z"}\n{"name": "a", "sent')
    assert 1 == len(sent_in([str(path)], None).instants["a"])
    with pytest.raises(InvalidSource, match="No such file"):
        sent_in([str(tmp_path / "other")], None)


# The command.


@pytest.fixture
def session(migrated_database: str) -> Session:
    return Session(migrated_database)


@pytest.fixture
def run(migrated_database: str, tmp_path: Path) -> Run:
    def run(sent: dict[str, list[datetime]], *words: str) -> Result:
        path = tmp_path / "sent.jsonl"
        lines = [{"recording_since": (NOON - HOUR).isoformat()}]
        lines += [{"name": name, "sent_at": one.isoformat()} for name, some in sent.items() for one in some]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        ends = ("--since", "2026-12-24T11:00Z", "--until", "2026-12-24T13:00Z")
        return CliRunner().invoke(main, ["compare", str(path), *ends, *words], env={"PGBEAT_URL": migrated_database})

    return run


def recorded(session: Session, name: str, instants: Sequence[datetime], reason: str | None = "shadow") -> None:
    session.insert(name, schedule="every 1m" if name == "poll" else "0 12 * * *")
    for instant in instants:
        session.rows(
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, reason, task, "
            "created_at, finished_at) values (gen_random_uuid(), %s, %s, 'schedule', %s, %s, 'a', %s, %s)",
            *(name, instant, "skipped" if reason else "succeeded", reason, instant, instant),
        )


def test_equal_runs_are_equal_whether_they_were_sent_or_only_recorded(run: Run, session: Session) -> None:
    recorded(session, "noon", after(0))
    recorded(session, "poll", after(*range(20, 600, 60)), reason=None)
    recorded(session, "late", after(0), reason="too_late")

    done = run({"noon": after(0.2), "poll": after(*range(50, 650, 60))})

    said = "From 2026-12-24 11:00:00Z to 2026-12-24 13:00:00Z: 11 runs by both, 0 only by the other scheduler, 0 only "
    assert (0, f"{said}by ours.\n") == (done.exit_code, done.stdout)


def test_differences_are_listed_by_name_and_the_exit_code_is_1(run: Run, session: Session) -> None:
    recorded(session, "noon", after(0))
    recorded(session, "new", after(0, 300))

    done = run({"noon": after(0.2), "old": after(7)}, "--json")

    assert 1 == done.exit_code
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert [(0, 0, 2), (1, 0, 0), (0, 1, 0)] == [
        (rows[name]["both"], len(rows[name]["only_theirs"]), len(rows[name]["only_ours"]))
        for name in ("new", "noon", "old")
    ]
    shown = run({"noon": after(0.2), "old": after(7)})
    assert ["NAME", "new", "old", "From"] == [line.split()[0] for line in shown.stdout.splitlines()]


def test_without_any_run_of_one_side_nothing_is_compared(run: Run, session: Session) -> None:
    recorded(session, "late", after(0), reason="too_late")
    nothing = run({"noon": after(0)})
    assert (1, True) == (nothing.exit_code, "our beats sent nothing, and recorded nothing in shadow" in nothing.stderr)


def test_what_no_scheduler_has_sent_is_listed_with_the_command_that_sends_it(
    run: Run, session: Session, migrated_database: str, tmp_path: Path
) -> None:
    recorded(session, "poll", after(20, 80, 140, 200, 260))
    session.rows("update pgbeat.periodic_task set anchor = %s, timezone = 'UTC' where name = 'poll'", *after(20))
    recorded(session, "noon", after(0))
    recorded(session, "at night", after(230))
    sent = {"noon": after(0.2), "poll": after(20.1, 80.2, 140.3)}  # stopped before 200

    done = run(sent, "--unsent", "--within", "1")

    assert [
        "NAME      UNSENT  FIRST                 LAST",
        "at night  1       2026-12-24 12:03:50Z  2026-12-24 12:03:50Z",
        "poll      2       2026-12-24 12:03:20Z  2026-12-24 12:04:20Z",
        "To send them:",
        "celery-pgbeat backfill 'at night' 2026-12-24T12:03:50Z 2026-12-24T12:03:50Z",
        "celery-pgbeat backfill poll 2026-12-24T12:03:20Z 2026-12-24T12:04:20Z",
        "Since 2026-12-24 11:00:00Z: 3 runs that no scheduler has sent.",
    ] == done.stdout.splitlines()
    assert 1 == done.exit_code

    printed = json.loads(run(sent, "--unsent", "--within", "1", "--json").stdout)
    assert fault(WITH_WORDS["compare --unsent"], printed) is None
    assert [("at night", 1), ("poll", 2)] == [(row["name"], len(row["scheduled_for"])) for row in printed["unsent"]]

    path = tmp_path / "sent.jsonl"
    soon = CliRunner().invoke(main, ["compare", str(path), "--unsent"], env={"PGBEAT_URL": migrated_database})
    assert "Since 2026-12-24 12:02:10Z: 3 runs" in soon.stdout, "that is when it sent last, less the 10 s of --within"

    earlier = ["compare", str(path), "--unsent", "--until", "2026-12-24T12:04Z", "--json"]
    until = json.loads(CliRunner().invoke(main, earlier, env={"PGBEAT_URL": migrated_database}).stdout)
    assert [("at night", 1), ("poll", 1)] == [(row["name"], len(row["scheduled_for"])) for row in until["unsent"]]

    words = ["backfill", "poll", "2026-12-24T12:03:20Z", "2026-12-24T12:04:20Z"]
    made = CliRunner().invoke(main, words, env={"PGBEAT_URL": migrated_database})
    assert "2026-12-24 12:04:20+00, which is still to come" in made.stderr, "it is understood"
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'poll', at, 'backfill', 'succeeded', 'a', %s, %s "
        "from unnest(%s::timestamptz[]) as at",
        *after(300, 301),
        after(200, 260),
    )
    assert ["at night"] == [
        row["name"] for row in json.loads(run(sent, "--unsent", "--within", "1", "--json").stdout)["unsent"]
    ]


def test_what_is_unsent_needs_to_know_when_the_other_scheduler_stopped(migrated_database: str, tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    path.write_text(json.dumps({"recording_since": NOON.isoformat()}) + "\n")

    done = CliRunner().invoke(main, ["compare", str(path), "--unsent"], env={"PGBEAT_URL": migrated_database})

    assert (1, True) == (done.exit_code, "from when on did it send nothing? Give --since" in done.stderr)


def test_a_beat_of_ours_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    ours = Scheduler(Celery("shop", set_as_current=False), lazy=True)

    Recorder(path).watch(SimpleNamespace(scheduler=ours))

    assert not path.exists()
    assert "apply_async" not in vars(ours)
