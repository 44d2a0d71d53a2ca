"""`export --to`: what has been moved in goes back, and the other scheduler's own code runs it at the same times."""

from __future__ import annotations

import ast
import re
import runpy
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis
from celery.app.utils import find_app
from celery.schedules import crontab, schedule
from click.testing import CliRunner, Result

from celery_pgbeat import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.cli import main
from celery_pgbeat.moving.places import BACK
from celery_pgbeat.settings import Settings
from tests.harness.peers.moving_in import AUTUMN, WEEK, MovingIn
from tests.harness.peers.our_runs import differing, our_runs
from tests.harness.peers.run_peer import peer_runs
from tests.harness.processes import Cluster
from tests.harness.rows import sql
from tests.harness.session import Session
from tests.harness.wait import eventually

WORD = re.compile(r'"(?:[^"\\]|\\.)*"')
EVERYTHING = """
insert into pgbeat.periodic_task (name, task, schedule, timezone, overlap, jitter) values
    ('jitter', 'shop.work', 'every 1h', 'UTC', 'allow', '30 s'),
    ('skips', 'shop.work', 'every 1h', 'UTC', 'skip', null);
insert into pgbeat.periodic_task (name, task, schedule, timezone, overlap) values
    ('either day', 'shop.work', '0 0 1 * mon', 'UTC', 'allow'),
    ('seconds', 'shop.work', '30 0 9 * * *', 'UTC', 'allow'),
    ('both days', 'shop.work', 'crontab: 0 0 1-7 * mon', 'UTC', 'allow'),
    ('nickname', 'shop.work', '@daily', 'UTC', 'allow'),
    ('rule', 'shop.work', 'RRULE:FREQ=DAILY', 'UTC', 'allow'),
    ('elsewhere', 'shop.work', '0 9 * * *', 'Asia/Tokyo', 'allow'),
    ('of code', 'shop.work', '0 9 * * *', 'UTC', 'allow');
insert into pgbeat.periodic_task (name, task, schedule, timezone, overlap, enabled, end_at) values
    ('paused', 'shop.work', '0 9 * * *', 'UTC', 'allow', false, null),
    ('ends', 'shop.work', '0 9 * * *', 'UTC', 'allow', true, '2999-01-01Z');
insert into pgbeat.periodic_task (name, task, timezone) values ('no schedule', 'shop.work', 'UTC');
insert into pgbeat.periodic_task (name, task, schedule, timezone, overlap, args, kwargs, queue, options) values
    ('typed', 'shop.work', 'every 1h', 'UTC', 'allow', '[{"__type__": "uuid", "__value__": "1"}]', '{}', null, '{}'),
    ('call', 'shop.work', 'crontab: */5 9 * * *', 'UTC', 'allow', '[1, "ü''"]', '{"a": null}', 'slow',
     '{"expires": 60}');
update pgbeat.periodic_task set managed_by = 'code:shop' where name = 'of code';
"""


def export(url: str, to: str, *words: str) -> Result:
    """Run `export --to`."""
    return CliRunner().invoke(main, [*words, "--url", url, "export", "--to", to])


def test_what_came_from_django_celery_beat_goes_back(migrated_database: str) -> None:
    moving = MovingIn("django-celery-beat", migrated_database)
    moving.filled_by("django_peer", AUTUMN)
    moving.report("--apply", "--yes", "--cut-over")
    session = Session(migrated_database)
    kept = "select name, args, kwargs, queue, priority, headers, expire_seconds, exchange, expires, start_time, enabled"
    before = session.rows(
        f"{kept} from django_celery_beat_periodictask where name in ('with everything', 'routed') order by 1"
    )

    script = export(migrated_database, "django-celery-beat")
    session.rows("delete from django_celery_beat_periodictask")
    run_script(migrated_database, script.stdout)

    assert (0, "") == (script.exit_code, script.stderr)
    theirs = peer_runs("django_peer", migrated_database, AUTUMN, AUTUMN + WEEK)
    assert {"cron 05": ([], ["10-25 01:00:00", "10-25 01:30:00"])} == differing(
        theirs, our_runs(migrated_database, AUTUMN + WEEK)
    )
    assert 66 == session.value("select count(*) from django_celery_beat_periodictask")
    after = session.rows(
        f"{kept} from django_celery_beat_periodictask where name in ('with everything', 'routed') order by 1"
    )
    assert [{**row, "enabled": True} for row in before] == after
    run_script(migrated_database, script.stdout)  # what is there already is brought up to date
    assert 66 == session.value("select count(*) from django_celery_beat_periodictask")


def run_script(url: str, script: str) -> None:
    """Run a script as psql does."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    connection.cursor().execute(script)
    connection.close()


def test_what_came_from_redbeat_goes_back(migrated_database: str, redis_url: str) -> None:
    app = "tests.harness.peers.shop_in_berlin"
    moving = MovingIn("redbeat", migrated_database, redis_url, app=app)
    moving.filled_by("redbeat_peer", AUTUMN)
    moving.report("--apply", "--yes")

    commands = export(migrated_database, "redbeat", "-A", app)
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        for line in commands.stdout.splitlines():
            client.execute_command(*(ast.literal_eval(f"b{word}") for word in WORD.findall(line)))

    assert 1 == commands.exit_code
    assert "'rule of days' is left out: Celery has no schedule with the times of 'DTSTART" in commands.stderr
    theirs = peer_runs("redbeat_peer", redis_url, AUTUMN, AUTUMN + WEEK)
    assert 18 == len(theirs)
    assert {"cron 01": ([], ["10-25 01:00:00", "10-25 01:30:00"])} == differing(
        theirs, our_runs(migrated_database, AUTUMN + WEEK)
    )


@pytest.fixture
def database(migrated_database: str) -> str:
    """A database with rows of all kinds."""
    Session(migrated_database).rows(EVERYTHING)
    return migrated_database


def test_code_gets_what_an_entry_in_code_can_say(database: str) -> None:
    done = export(database, "beat-schedule")
    module: dict[str, Any] = {}
    exec(compile(done.stdout, "beat_schedule.py", "exec"), module)

    assert {"jitter", "skips", "typed", "both days", "nickname", "call"} == module["beat_schedule"].keys()
    assert {
        "task": "shop.work",
        "schedule": crontab(minute="*/5", hour="9"),
        "args": (1, "ü'"),
        "kwargs": {"a": None},
        "options": {"expires": 60, "queue": "slow"},
    } == module["beat_schedule"]["call"]
    assert (
        crontab(minute=0, hour=0, day_of_month="1-7", day_of_week=1)
        == (module["beat_schedule"]["both days"]["schedule"])
    )
    assert schedule(3600) == schedule(module["beat_schedule"]["skips"]["schedule"])


def test_what_is_left_out_and_what_has_no_counterpart_is_named(database: str) -> None:
    done = export(database, "beat-schedule")

    assert 1 == done.exit_code
    assert {
        "'either day' is left out: Celery's crontab has other times than '0 0 1 * 1'.",
        "'elsewhere' is left out: its zone is Asia/Tokyo, and crontabs in code have the app's, UTC.",
        "'ends' is left out: it has end_at, and an entry in code cannot.",
        "'jitter' loses what has no counterpart there: jitter.",
        "'no schedule' is left out: it has no schedule.",
        "'paused' is left out: it is paused, and an entry in code cannot be.",
        "'rule' is left out: Celery has no schedule with the times of 'RRULE:FREQ=DAILY'.",
        "'seconds' is left out: Celery's crontab has other times than '30 0 9 * * *'.",
        "'skips' loses what has no counterpart there: overlap.",
        "Left out: 1 row of the code of the app 'shop'. Only that app knows which of them Celery's own schedulers get "
        "from the code: name it with -A.",
    } == set(done.stderr.splitlines())


CODE = "tests.harness.peers.way_back_app"
BY_CELERY = {"in beat_schedule", "added"}
BY_US_ALONE = {"decorated", "with our schedule", "with our key"}


def test_celerys_own_beat_sends_what_code_declares_to_us_alone(cluster: Cluster, tmp_path: Path) -> None:
    ours = cluster.beat(app=CODE)
    eventually(lambda: 5 == len(sql(cluster.database, "select name from pgbeat.periodic_task")), 30, "the rows")
    ours.stop()

    done = export(cluster.database, "beat-schedule", "-A", CODE)
    printed = tmp_path / "printed.py"
    printed.write_text(done.stdout)
    words = ("-S", "celery.beat:PersistentScheduler", "-s", str(tmp_path / "celerybeat-schedule"))
    cluster.beat(app=CODE, arguments=words, environment={"PRINTED": str(printed)})
    cluster.worker(app=CODE)

    assert BY_US_ALONE == runpy.run_path(str(printed))["beat_schedule"].keys()
    assert "Left out: 2 rows of code, which beat_schedule there declares too." in done.stderr
    eventually(lambda: _sent_by_another(cluster) == BY_CELERY | BY_US_ALONE, 30, "a run of each by Celery's own beat")


def _sent_by_another(cluster: Cluster) -> set[str]:
    return {run.label for run in cluster.probe.runs() if run.scheduled_for is None}


@pytest.mark.parametrize("to", BACK)
def test_another_scheduler_gets_from_us_only_what_the_code_does_not_give_it(migrated_database: str, to: str) -> None:
    with closing(PgBeat(url=migrated_database)) as beat:
        CodeSchedules(find_app(CODE), beat.database, Settings()).sync()
        beat.pause("added")
    done = export(migrated_database, to, "-A", CODE)

    assert (0, BY_US_ALONE) == (done.exit_code, {name for name in BY_CELERY | BY_US_ALONE if name in done.stdout})
    assert "'added' is paused here, and runs there: beat_schedule in the code declares it." in done.stderr


def test_arguments_that_only_code_can_make_do_not_go_back(migrated_database: str) -> None:
    Session(migrated_database).rows(
        "insert into pgbeat.periodic_task (name, task, schedule, timezone, kwargs)"
        """ values ('lazy', 'shop.work', 'every 1h', 'UTC', '{"at": "<BeatLazyFunc>"}')"""
    )
    done = export(migrated_database, "beat-schedule")

    reason = "a BeatLazyFunc makes its arguments for each message, and only code can declare one."
    assert (1, f"'lazy' is left out: {reason}\n") == (done.exit_code, done.stderr)


def test_redbeat_gets_a_paused_row_and_texts_of_any_script(database: str) -> None:
    done = export(database, "redbeat")

    assert "'typed' is left out: its arguments have a 'uuid', which RedBeat cannot store." in done.stderr
    assert '\\"enabled\\": false' in next(line for line in done.stdout.splitlines() if "redbeat:paused" in line)
    (call,) = (line for line in done.stdout.splitlines() if line.startswith('"HSET" "redbeat:call"'))
    words = [ast.literal_eval(f"b{word}") for word in WORD.findall(call)]
    assert b'"args": [1, "\\u00fc\'"]' in words[3]
