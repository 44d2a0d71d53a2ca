"""A beat moved by hand: what users' tests see is what a beat does, on a real Postgres, without a broker."""

from __future__ import annotations

import doctest
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, Task
from celery.beat import BeatLazyFunc

import celery_pgbeat.testing.assertions
import celery_pgbeat.testing.kit
from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.embedded import ServerUnavailable
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.testing import PgBeatTest, at, upcoming
from celery_pgbeat.testing.temporary_schema import PREFIX
from tests.harness.kits import MakeKit

NOON = "2026-03-28 12:00 Europe/Berlin"  # before the night in which Berlin's clocks go forward

Make = Callable[..., PgBeatTest]


def shop(schedule: dict[str, Any] | None = None, **conf: Any) -> Celery:
    """An app; without results, so that Celery adds no entry of its own, and whose servers are nowhere."""
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(
        result_expires=None,
        beat_schedule=schedule or {},
        timezone="Europe/Berlin",
        pgbeat_url="postgresql://nowhere.invalid/shop",
        **conf,
    )
    return app


def entry(schedule: Any, *args: Any, task: str = "shop.report", **ours: Any) -> dict[str, Any]:
    return {"task": task, "schedule": schedule, "args": args, "pgbeat": ours}


def nightly(**ours: Any) -> Celery:
    return shop({"nightly": entry("0 3 * * *", **ours)})


@pytest.fixture
def database(postgres_server: str) -> Iterator[Database]:
    made = Database(postgres_server)
    yield made
    made.close()


@pytest.fixture
def make(make_kit: MakeKit) -> Make:
    """Make the only kit of a test, in a schema that is there already."""

    def made(source: Any, now: str = NOON, **rest: Any) -> PgBeatTest:
        return make_kit(source, now, **rest)

    return made


@pytest.fixture
def make_own(postgres_server: str) -> Make:
    """Make a kit on the tests' own server, which makes and drops a schema of its own."""

    def made(source: Any, **rest: Any) -> PgBeatTest:
        return PgBeatTest(source, postgres_server, NOON, **rest)

    return made


def schemas(database: Database) -> set[str]:
    return {row[0] for row in database.execute("select nspname from pg_namespace")}


# What is sent.


def test_a_range_is_filled_by_the_beat_that_is_moved_by_hand(make: Make) -> None:
    with make(nightly(), finishing=False) as kit:
        kit.beat.pause("nightly")
        backfill = kit.beat.backfill("nightly", at("2026-03-01T00:00Z"), at("2026-03-04T00:00Z"), max_active=2)

        first = kit.tick()
        kit.finish(first[0])
        then = kit.tick()

        assert [("backfill", 1), ("backfill", 2)] == [(sent.origin, sent.scheduled_for.day) for sent in first]
        assert [3] == [sent.scheduled_for.day for sent in then]
        assert ("finished", 3) == (kit.beat.backfills(id=backfill.id)[0].state, kit.beat.backfills()[0].submitted)


@pytest.mark.parametrize("action", ["defer", "skip"])
def test_a_job_that_waited_until_a_blackout_window_had_opened_is_sent_when_it_closes(make: Make, action: str) -> None:
    """Made at 12:00, promoted at 13:00, and from 12:30 to 17:30 nothing may start."""
    waits = {"overlap": "buffer_one", "blackout": "30 12 * * * PT5H", "blackout_action": action}
    app = shop({"hourly": entry("0 11,12 * * *", **waits)})
    with make(app, "2026-03-28 10:30 Europe/Berlin", finishing=False) as kit:
        (first,) = kit.run_until("2026-03-28 12:05 Europe/Berlin")
        assert kit.start(first)
        assert [] == kit.run_until("2026-03-28 13:00 Europe/Berlin")
        kit.finish(first)

        assert [] == kit.run_until("2026-03-28 17:29 Europe/Berlin")
        explained = kit.beat.explain("hourly")
        (second,) = kit.run_until("2026-03-28 18:00 Europe/Berlin")

    assert "is held back by its blackout windows until 2026-03-28 16:30" in explained
    assert at("2026-03-28 12:00 Europe/Berlin") == second.scheduled_for
    assert at("2026-03-28 17:30 Europe/Berlin") <= second.sent_at < at("2026-03-28 17:31 Europe/Berlin")


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (NOON, "2026-03-29 12:00 Europe/Berlin"),
        ("2026-10-24 12:00 Europe/Berlin", "2026-10-25 12:00 Europe/Berlin"),  # an hour that is there twice
    ],
)
def test_what_a_beat_sends_is_what_the_code_said_it_would(make: Make, since: str, until: str) -> None:
    app = shop(
        {
            "nightly": entry("30 2 * * *"),
            "poll": entry(every("45m")),
            "spread": entry("0 * * * *", jitter="10m"),
            "deferred": entry("20 */2 * * *", blackout="0 0 * * * PT5H"),
            "passed over": entry("40 * * * *", blackout="0 0 * * * PT5H", blackout_action="skip"),
            "thrice": entry("50 * * * *", max_runs=3),
            "first": entry("55 5 * * *", run_on_start=True),
        }
    )

    with make(app, since) as kit:
        sent = kit.run_until(until)

    told = upcoming(app, since, until)
    assert len(told) > 80
    assert Counter((run.due_at, run.periodic_task) for run in told) == Counter(
        (one.sent_at, one.periodic_task) for one in sent
    )


def test_a_message_is_the_one_that_celery_would_write(make: Make) -> None:
    app = shop(
        {"poll": {**entry(every("5m"), 1, task="mail.poll"), "kwargs": {"b": 2}, "options": {"expires": 60}}},
        task_routes={"mail.*": {"queue": "mail"}},
    )

    with make(app) as kit:
        (sent,) = kit.advance("5m")

    assert ("poll", "mail.poll", [1], {"b": 2}) == (sent.periodic_task, sent.task, sent.args, sent.kwargs)
    assert ("mail", "schedule", 0) == (sent.queue, sent.origin, sent.run)
    assert at("2026-03-28 12:05 Europe/Berlin") == sent.scheduled_for == sent.sent_at
    assert at("2026-03-28 12:06 Europe/Berlin") == sent.options["expires"]
    assert str(sent.id) == sent.options["headers"]["pgbeat"]["job"]


def test_a_tasks_own_options_and_its_own_way_of_sending_count(make: Make) -> None:
    app = shop()
    beat = PgBeat(app)

    class Loud(Task):  # type: ignore[misc]
        abstract = True

        def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
            return super().apply_async(args, {**(kwargs or {}), "loud": True}, **options)

    @beat.periodic_task(every("5m"), name="poll", max_run_time="1m")
    @app.task(name="mail.poll", shared=False, base=Loud, expires=90)
    def poll(loud: bool = False) -> None: ...

    with make(beat) as kit:
        (sent,) = kit.advance("5m")

    assert ({"loud": True}, 90) == (sent.kwargs, sent.options["expires"])
    assert (60.0, 120.0) == (sent.options["soft_time_limit"], sent.options["time_limit"])


def test_arguments_that_are_made_late_are_made(make: Make) -> None:
    app = shop({"poll": entry(every("5m"), BeatLazyFunc(lambda: 42))})

    with make(app) as kit:
        (sent,) = kit.advance("5m")

    assert [42] == sent.args


def test_arguments_that_the_task_does_not_take_are_refused_and_the_failure_says_so(make_own: Make) -> None:
    app = shop({"poll": {**entry(every("5m"), task="mail.poll"), "kwargs": {"bax": 1}}})

    @app.task(name="mail.poll", shared=False)
    def poll(box: int) -> None: ...

    with pytest.raises(InvalidPeriodicTask, match="unexpected keyword argument 'bax'"), make_own(app):
        pass
    app.conf.beat_schedule = {}
    with make_own(app) as kit:
        schema = kit.beat.settings.schema
        call = f"select {schema}.schedule('poll', 'mail.poll', 'every 5m', kwargs => '{{\"bax\": 1}}')"
        kit.beat.database.execute(call)
        assert [] == kit.advance("6m")
        assert 3 == len(kit.refused)
        assert "lost" == kit.jobs("poll")[0].state
        with pytest.raises(AssertionError, match=r"'poll' was not sent\n  refused .*TypeError: .*'?bax'?"):
            kit.assert_sent("poll")


def test_tasks_that_tests_run_at_once_are_not_run(make: Make) -> None:
    app = shop({"poll": entry(every("5m"), task="mail.poll")}, task_always_eager=True)
    ran = []

    @app.task(name="mail.poll", shared=False)
    def poll() -> None:
        ran.append(1)

    with make(app) as kit:
        assert 1 == len(kit.advance("5m"))

    assert [] == ran
    assert app.conf.task_always_eager


def test_messages_sent_beside_the_job_are_not_touched(make: Make) -> None:
    app = shop({"poll": entry(every("5m"), task="mail.poll")})
    # All tests of a process share the broker in memory: no other one may use this queue.
    app.conf.update(broker_url="memory://", task_default_queue="chatty")

    class Chatty(Task):  # type: ignore[misc]
        abstract = True

        def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
            self.app.send_task("shop.other")
            return super().apply_async(args, kwargs, **options)

    @app.task(name="mail.poll", shared=False, base=Chatty)
    def poll() -> None: ...

    with make(app) as kit:
        assert ["mail.poll"] == [sent.task for sent in kit.advance("5m")]
    with app.connection_for_read() as connection:
        message = connection.default_channel.basic_get("chatty")
        assert "shop.other" == message.headers["task"]
    app.close()


def test_a_task_that_is_not_allowed_is_skipped(make: Make) -> None:
    with make(shop(pgbeat_allowed_tasks=("shop.*",))) as kit:
        schema = kit.beat.settings.schema
        kit.beat.database.execute(f"select {schema}.schedule('shell', 'os.system', '0 3 * * *')")
        assert [] == kit.advance("1d")
        kit.assert_skipped("shell", reason="not_allowed")


# Time.


def test_two_kits_that_do_the_same_see_the_same_to_the_ids_of_the_jobs(make_own: Make) -> None:
    runs = []
    for _ in range(2):
        with make_own(nightly()) as kit:
            runs.append(kit.advance("3d"))

    assert 3 == len(runs[0])
    assert runs[0] == runs[1]


def test_a_tick_does_only_what_is_due_now_and_does_it_once(make: Make) -> None:
    with make(nightly()) as kit:
        assert [] == kit.tick()
        kit.clock.set("2026-03-29 02:59:59 UTC")
        assert 1 == len(kit.tick())
        assert [] == kit.tick()
        assert kit.sent == tuple(kit.assert_sent("nightly", times=1))


def test_all_is_done_in_the_tests_own_thread(make: Make) -> None:
    before = threading.active_count()

    with make(nightly()) as kit:
        kit.advance("2d")
        assert before == threading.active_count()


def test_when_no_beat_runs_catch_up_decides_afterwards(make: Make) -> None:
    with make(shop({"hourly": entry("0 * * * *", catchup="latest")})) as kit:
        kit.tick()
        kit.clock.advance("5h30m")
        (sent,) = kit.tick()
        (skipped,) = kit.assert_skipped("hourly", reason="too_late")

    assert ("catchup", at("2026-03-28 17:00 Europe/Berlin")) == (sent.origin, sent.scheduled_for)
    assert at("2026-03-28 17:30 Europe/Berlin") == sent.sent_at
    assert (4, at("2026-03-28 13:00 Europe/Berlin")) == (skipped.occurrences, skipped.scheduled_for)


def test_only_the_rows_of_the_test_run_and_new_code_changes_nothing_about_that(make: Make) -> None:
    app = shop({"nightly": entry("0 3 * * *"), "often": entry("every 1m")})

    with make(app, only=["nightly"]) as kit:
        assert ["nightly"] == [sent.periodic_task for sent in kit.advance("1d")]
        kit.sync()
        assert ["nightly"] == [sent.periodic_task for sent in kit.advance("1d")]
        assert "not in `only`, the rows of this test" == kit.beat.get("often").pause_reason


def test_a_name_in_only_that_the_code_does_not_declare_is_an_error(make_own: Make, database: Database) -> None:
    before = schemas(database)

    with (
        pytest.raises(LookupError, match=r"^only: the code declares no 'nihgtly', but 'nightly'$"),
        make_own(nightly(), only=["nihgtly"]),
    ):
        pass

    assert before == schemas(database)


def test_a_pause_that_ends_is_noticed_while_time_passes(make: Make) -> None:
    with make(shop({"hourly": entry("0 * * * *")})) as kit:
        kit.beat.pause("hourly", until=at("2026-03-28 15:30 Europe/Berlin"))
        kit.advance("5h")
        kit.assert_sent("hourly", at=["2026-03-28 16:00 Europe/Berlin", "2026-03-28 17:00 Europe/Berlin"])


def test_the_clock_goes_forward_only(make: Make) -> None:
    with make(nightly()) as kit:
        kit.clock.advance(timedelta(hours=1))
        with pytest.raises(ValueError, match="cannot go back to 2026-03-28T11:00:00"):
            kit.clock.set(NOON)
        with pytest.raises(ValueError, match="is over"):
            kit.run_until(NOON)
        with pytest.raises(ValueError, match="duration"):
            kit.advance("soon")
        assert at("2026-03-28 13:00 Europe/Berlin") == kit.now


def test_a_beat_that_finds_no_rest_is_an_error_and_not_a_hang(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_pgbeat.testing.kit, "MOST_CYCLES", 1)
    with make(nightly()) as kit, pytest.raises(RuntimeError, match="after 1 cycles there is still something to do"):
        kit.tick()


def test_too_many_instants_are_an_error_and_not_a_long_wait(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_pgbeat.testing.kit, "MOST_INSTANTS", 20)
    with make(shop({"poll": entry(every("1s"))})) as kit, pytest.raises(ValueError, match="more than 20 instants"):
        kit.advance("1m")


# What workers would say.


def test_a_job_that_does_not_end_is_in_the_way_of_the_next(make: Make) -> None:
    with make(nightly(), finishing=False) as kit:
        (first,) = kit.advance("1d")
        assert kit.start(first)
        assert [] == kit.advance("1d")
        (skipped,) = kit.assert_skipped("nightly", reason="overlap")
        assert first.id == skipped.blocked_by
        kit.finish(first)
        assert 1 == len(kit.advance("1d"))


def test_what_waits_goes_out_when_the_one_before_it_has_ended(make: Make) -> None:
    with make(nightly(overlap="buffer_one"), finishing=False) as kit:
        (first,) = kit.advance("1d")
        kit.start(first)
        assert [] == kit.advance("1d")
        kit.finish(first, "failed", error="out of paper")
        (second,) = kit.tick()

    assert at("2026-03-30 03:00 Europe/Berlin") == second.scheduled_for
    assert at("2026-03-30 13:00 Europe/Berlin") == second.sent_at  # two days, of which one has an hour less


def test_what_waits_goes_out_in_the_same_tick_where_jobs_end_at_once(make: Make) -> None:
    with make(shop({"hourly": entry("0 * * * *", catchup="all")})) as kit:
        kit.tick()
        kit.clock.advance("3h30m")
        assert [13, 14, 15] == [sent.scheduled_for.hour + 1 for sent in kit.tick()]


@pytest.mark.parametrize(("on_lost", "runs"), [("give_up", [0]), ("rerun", [0, 1])])
def test_after_a_worker_died_on_lost_decides(make: Make, on_lost: str, runs: list[int]) -> None:
    with make(nightly(on_lost=on_lost), finishing=False) as kit:
        (first,) = kit.advance("1d")
        kit.start(first, worker_dies=True)
        again = kit.advance("1m")

        assert runs == [sent.run for sent in (first, *again)]
        assert {first.id} == {sent.id for sent in (first, *again)}
        assert ("lost" if on_lost == "give_up" else "sent") == kit.jobs("nightly")[0].state


def test_a_message_that_no_worker_picks_up_is_sent_again_three_times_and_lost(make: Make) -> None:
    with make(shop({"once": entry("2026-03-28 13:00")}), finishing=False) as kit:
        sent = kit.advance("10d")
        assert 4 == len(sent)
        assert 1 == len({one.id for one in sent})
        assert "lost" == kit.jobs("once")[0].state


def test_a_job_past_its_time_limit_is_given_up(make: Make) -> None:
    with make(nightly(max_run_time="30m"), finishing=False) as kit:
        (first,) = kit.advance("1d")
        kit.start(first)
        kit.advance("31m")
        assert "running" == kit.jobs("nightly")[0].state
        kit.advance("1m")
        assert "lost" == kit.jobs("nightly")[0].state


def test_a_start_within_the_min_gap_is_dropped(make: Make) -> None:
    with make(shop({"hourly": entry("0 * * * *", min_gap="90m")})) as kit:
        assert 3 == len(kit.advance("3h"))
        kit.assert_skipped("hourly", reason="min_gap", scheduled_for=["2026-03-28 14:00 Europe/Berlin"])


def test_a_row_whose_runs_fail_is_paused_at_its_limit_and_goes_on_when_it_is_resumed(make: Make) -> None:
    with make(nightly(pause_after_failures=3), finishing=False) as kit:
        for ending in ("failed", "failed", "succeeded", "failed", "failed", "failed"):
            (sent,) = kit.advance("1d")
            kit.finish(sent, ending)
        assert [] == kit.advance("5d")
        row = kit.beat.get("nightly")
        assert (False, "pgbeat") == (row.enabled, row.paused_by)
        assert f"3 failed jobs in a row, the last at 2026-04-03 11:00:00Z: {sent.id}" == row.pause_reason

        kit.beat.resume("nightly")
        for _ in range(3):
            (sent,) = kit.advance("1d")
            kit.finish(sent, "failed")
        assert [] == kit.advance("5d")


def test_a_job_ends_once_and_in_a_state_that_there_is(make: Make) -> None:
    with make(nightly(), finishing=False) as kit:
        (first,) = kit.advance("1d")
        with pytest.raises(ValueError, match="state is 'done'"):
            kit.finish(first, "done")
        kit.finish(first.id)
        assert not kit.start(first)
        with pytest.raises(ValueError, match="is succeeded: it cannot end as failed now"):
            kit.finish(first, "failed")
        with pytest.raises(LookupError, match="There is no job"):
            kit.start(UUID(int=1))


# The rows.


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_either_driver_will_do(postgres_server: str, driver: str) -> None:
    url = postgres_server.replace("postgresql://", f"postgresql+{driver}://")
    with PgBeatTest(nightly(), url, NOON) as kit:
        kit.beat.pause("nightly", until=at("2026-03-29 12:00 Europe/Berlin"))
        kit.advance("2d")
        kit.assert_sent("nightly", at=["2026-03-30 03:00 Europe/Berlin"])
        assert "PgBeatTest('shop', now='2026-03-30T11:00:00+00:00')" == repr(kit)


def test_the_kits_api_uses_the_kits_schema_and_the_app_keeps_its_own(make: Make) -> None:
    app = nightly()
    with make(app) as kit:
        kit.beat.schedule("poll", "mail.poll", every("1h"), args=[1])
        job = kit.beat.trigger("nightly")
        (sent,) = kit.tick()
        assert ("nightly", "manual", job) == (sent.periodic_task, sent.origin, sent.id)
        assert 12 == len(kit.advance("12h"))
        kit.assert_sent("poll", times=12, args=(1,))

    assert "postgresql://nowhere.invalid/shop" == app.conf.pgbeat_url


def test_jobs_that_are_started_with_arguments_of_their_own_are_sent_with_them(make: Make) -> None:
    with make(nightly()) as kit:
        kit.beat.schedule("staged", "mail.poll", overlap="allow", args=[1])
        jobs = kit.beat.trigger_many(jobs=[{"name": "staged", "args": [number]} for number in (2, 3)])
        with kit.beat.database.engine.execution_options(isolation_level="READ COMMITTED").connect() as theirs:
            kit.beat.trigger_many(jobs=[{"name": "staged"}], connection=theirs)
            assert set(jobs) == {sent.id for sent in kit.tick()}
            theirs.rollback()

        assert [] == kit.tick()
        assert {(jobs[0], (2,)), (jobs[1], (3,))} == {(sent.id, tuple(sent.args)) for sent in kit.sent}


def test_new_code_is_synced_as_by_a_beat_that_starts_with_it(make: Make) -> None:
    app = nightly()
    with make(app) as kit:
        kit.beat.pause("nightly", reason="stocktaking")
        app.conf.beat_schedule = {"nightly": entry("0 3 * * *", 7), "new": entry("0 4 * * *")}
        kit.sync()

        assert ([7], False, "stocktaking") == (
            (row := kit.beat.get("nightly")).args,
            row.enabled,
            row.pause_reason,
        )
        assert ["new"] == [sent.periodic_task for sent in kit.advance("1d")]


def test_a_wrong_declaration_is_an_error_and_leaves_nothing_behind(make_own: Make, database: Database) -> None:
    before = schemas(database)

    with (
        pytest.raises(InvalidPeriodicTask, match=r"'nightly' in code is refused: .*hour 25"),
        make_own(shop({"nightly": entry("0 25 * * *")})),
    ):
        pass

    assert set() == {name for name in schemas(database) - before if name.startswith(PREFIX)}


def test_the_schema_is_unique_and_is_dropped_whatever_happens(make_own: Make, database: Database) -> None:
    with make_own(nightly()) as one, make_own(nightly()) as other:
        made = {kit.beat.settings.schema for kit in (one, other)}
        assert 2 == len(made)
        assert made <= schemas(database)

    def fail() -> None:
        with make_own(nightly()) as kit:
            made.add(kit.beat.settings.schema)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert 3 == len(made)
    assert not made & schemas(database)


def test_a_schema_can_be_named_for_ones_own_sql_but_never_one_that_is_there(
    make_own: Make, database: Database, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    with make_own(nightly(), schema=name) as kit:
        database.execute(f"select {name}.schedule('poll', 'mail.poll', 'every 1h')")
        kit.advance("1h")
        kit.assert_sent("poll", task="mail.poll", times=1)
        with pytest.raises(ValueError, match="is there already"), make_own(nightly(), schema=name):
            pass
        assert name in schemas(database)
    assert name not in schemas(database)


def test_without_a_url_it_brings_a_server_of_its_own() -> None:
    try:
        with PgBeatTest(nightly(), now=NOON) as kit:
            kit.advance("1d")
            kit.assert_sent("nightly", times=1)
    except ServerUnavailable as error:
        pytest.skip(str(error))


# The claims.


def test_a_claim_that_does_not_hold_says_what_is_missing_and_what_else_is_known(make: Make) -> None:
    with make(nightly(), finishing=False) as kit:
        (first,) = kit.advance("1d")
        kit.start(first)
        kit.advance("1d")
        with pytest.raises(AssertionError) as failure:
            kit.assert_sent("nightly", at=["2026-03-29 02:00 UTC"])

    assert [
        "'nightly' was sent at other instants",
        "  missing     Sun 2026-03-29 04:00:00+02:00",
        "  unexpected  Sun 2026-03-29 03:00:00+02:00",
        "  sent        Sun 2026-03-29 03:00:00+02:00: shop.report args=[] kwargs={} queue='celery'",
        f"  skipped     Mon 2026-03-30 03:00:00+02:00: overlap, by job {first.id}",
        "  row         0 3 * * * (Europe/Berlin), next Tue 2026-03-31 03:00:00+02:00",
        "  clock       Mon 2026-03-30 13:00:00+02:00",
    ] == str(failure.value).splitlines()


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (lambda kit: kit.assert_sent("nightly", times=1), "sent 2 times, not once"),
        (lambda kit: kit.assert_not_sent("nightly"), "sent 2 times, not 0 times"),
        (lambda kit: kit.assert_sent("nightly", queue="q"), "not sent with queue='q'"),
        (lambda kit: kit.assert_sent("nightly", at=[]), "at other instants\n  unexpected"),
        (lambda kit: kit.assert_sent("nightly", scheduled_for=[NOON]), "for other occurrences\n  missing"),
        (lambda kit: kit.assert_skipped("nightly"), "'nightly' was not skipped\n"),
        (lambda kit: kit.assert_skipped("nightly", reason="overlap"), "not skipped for 'overlap'"),
        (lambda kit: kit.assert_skipped("nightly", scheduled_for=[NOON]), "skipped for other occurrences"),
        (lambda kit: kit.assert_sent("paused"), "not sent\n  row         is paused: holidays"),
        (lambda kit: kit.assert_sent("wrong"), "not sent\n  row         cannot be planned: .*no blackout window"),
        (lambda kit: kit.assert_sent("over"), "not sent\n  row         is finished"),
    ],
)
def test_each_claim_fails_when_it_should(make: Make, claim: Callable[[PgBeatTest], Any], reason: str) -> None:
    app = shop(
        {
            "nightly": entry("0 3 * * *"),
            "paused": entry("0 3 * * *"),
            "wrong": entry("0 3 * * *", blackout="window: nobody"),
            "over": entry("2020-01-01"),
        }
    )
    with make(app) as kit:
        kit.beat.pause("paused", reason="holidays")
        kit.advance("2d")
        with pytest.raises(AssertionError, match=reason):
            claim(kit)


def test_a_claim_about_a_value_that_no_message_has_does_not_hold_by_its_typo(make: Make) -> None:
    with make(nightly()) as kit:
        with pytest.raises(TypeError, match=r"no message has 'qeueue'\. Did you mean 'queue'"):
            kit.assert_not_sent("nightly", qeueue="reports")
        kit.assert_not_sent("nightly", priority=3, countdown=5)


def test_a_claim_about_a_name_that_never_was_does_not_hold_by_its_typo(make: Make) -> None:
    with make(nightly()) as kit:
        with pytest.raises(UnknownPeriodicTask, match="Did you mean 'nightly'"):
            kit.assert_not_sent("nigthly")
        kit.advance("1d")
        kit.beat.unschedule("nightly")
        kit.assert_sent("nightly", times=1)


def examples() -> Iterator[doctest.DocTest]:
    for module in (celery_pgbeat.testing.kit, celery_pgbeat.testing.assertions):
        for found in doctest.DocTestFinder(exclude_empty=True).find(module):
            if found.examples:
                yield found


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_the_examples_of_the_documentation_run(example: doctest.DocTest, make: Make, postgres_server: str) -> None:
    app = shop()
    beat = PgBeat(app)

    @beat.periodic_task(cron("0 3 * * *", timezone="UTC"), name="nightly")
    @app.task(name="shop.report", shared=False)
    def report() -> None: ...

    by_hand = example.name.endswith((".start", ".finish"))
    with make(app, "2026-12-07T12:00Z", finishing=not by_hand) as kit:
        example.globs = {**example.globs, "app": app, "url": postgres_server, "kit": kit}
        if by_hand and example.name.endswith(".finish"):
            kit.beat.trigger("nightly")
            (example.globs["sent"],) = kit.tick()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        result = doctest.DocTestRunner(verbose=False, optionflags=flags).run(example, clear_globs=False)

    assert result.failed == 0
    assert result.attempted > 0
