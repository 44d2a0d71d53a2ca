"""`doctor` without a database: what it makes of an app's settings, and how it tells."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from click.testing import CliRunner, Result
from kombu import Exchange, Queue
from kombu.common import Broadcast

from celery_pgbeat.cli import doctor as command
from celery_pgbeat.cli import main
from celery_pgbeat.cli.doctor import Examination, app, schema, storage, work
from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.output.values import number
from celery_pgbeat.errors import DatabaseUnavailable, SchemaMissing
from celery_pgbeat.settings import Settings

OUT_OF_REACH = "postgresql://shop:hush@127.0.0.1:1/shop"
AT = datetime(2026, 12, 7, tzinfo=timezone.utc)


class Told:
    """AdminQueries' statements with answers that a test gives."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self._answers[name]


def shop(url: str = "redis://127.0.0.1:1", **conf: Any) -> Celery:
    made = Celery("shop", broker=url, set_as_current=False)
    made.conf.update(conf)
    return made


def brief(findings: Any) -> list[str]:
    return [f"{finding.severity}: {finding.what}" for finding in findings]


def waits(max_run_time: float = 0.0, countdown: float = 0.0) -> Any:
    waits = {"max_run_time": timedelta(seconds=max_run_time), "countdown": timedelta(seconds=countdown)}
    return Told(longest_waits=waits)


def test_a_redis_without_time_limits_is_noted_and_one_with_them_switched_off_is_an_error() -> None:
    noted = list(app.broker(waits(), shop()))
    switched_off = list(app.broker(waits(), shop(broker_transport_options={"socket_timeout": None})))

    assert [NOTE] == [found.severity for found in noted]
    assert ["error: socket_timeout is off: a frozen Redis blocks a beat forever."] == brief(switched_off)
    assert [] == list(app.broker(waits(), shop(broker_transport_options={"socket_timeout": 5})))


def test_a_visibility_timeout_shorter_than_the_longest_run_or_countdown_is_a_warning() -> None:
    careful = {"socket_timeout": 5}

    assert [] == list(app.broker(waits(3600, 3600), shop(broker_transport_options=careful)))
    assert [
        "warning: The visibility_timeout of Redis is 3600 s, and the longest max_run_time is 7200 s: a message that is "
        "not acknowledged by then is delivered again, and once more each time.",
        "warning: The visibility_timeout of Redis is 3600 s, and the longest countdown is 3601 s: a message that is "
        "not acknowledged by then is delivered again, and once more each time.",
    ] == brief(app.broker(waits(7200, 3601), shop(broker_transport_options=careful)))
    longer = {**careful, "visibility_timeout": 7200}
    assert [] == list(app.broker(waits(7200), shop(broker_transport_options=longer)))


def test_a_rabbitmq_without_confirms_is_noted_and_with_confirms_switched_off_is_an_error() -> None:
    def found(**options: Any) -> list[str]:
        rabbit = shop("amqp://127.0.0.1:1", broker_transport_options=options)
        return [one.partition(":")[0] for one in brief(app.broker(waits(), rabbit))]

    assert [["note"], ["error"], []] == [found(), found(confirm_publish=False), found(confirm_publish=True)]


def test_an_untested_transport_is_noted() -> None:
    (found,) = app.broker(waits(), shop("memory://"))

    assert (NOTE, True) == (found.severity, "'memory'" in found.what)


def test_calls_that_do_not_match_their_task_are_a_warning() -> None:
    here = shop("memory://")

    @here.task(name="shop.lights", shared=False)
    def lights(room: str) -> None: ...

    def shape(positions: int, *keywords: str, **more: Any) -> dict[str, Any]:
        call = {"task": "shop.lights", "positions": positions, "keywords": keywords, "sensitive": False}
        return {**call, "rows": 1, "name": "off", **more}

    used = [
        shape(0),
        shape(1),
        shape(0, "room"),
        shape(0, "secret", rows=3, sensitive=True),
        {**shape(0), "task": "no"},
    ]
    found = brief(app.calls(Told(calls_in_use=used), here))  # type: ignore[arg-type]

    assert [
        "warning: The call does not match the task 'shop.lights', which 'off' names: lights() missing 1 required "
        "positional argument: 'room'.",
        "warning: The call does not match the task 'shop.lights', which 'off' and 2 others name: <sensitive>.",
    ] == found


def test_tracked_rows_whose_messages_a_fanout_exchange_copies_are_a_warning() -> None:
    queues = (Broadcast("to-all"), Queue("celery"), Queue("half", exchange=Exchange("halves", type="fanout")))
    here = shop("memory://", task_queues=queues, task_routes={"shop.reload": {"queue": "to-all"}})

    def route(task: str, queue: str | None = None, exchange: str | None = None) -> dict[str, Any]:
        return {"task": task, "queue": queue, "exchange": exchange, "routing_key": None, "rows": 2, "name": "row"}

    copied = [
        route("shop.a", "to-all"),
        route("shop.b", "half"),
        route("shop.c", exchange="to-all"),
        route("shop.reload"),
    ]
    others = [route("shop.d"), route("shop.e", "celery"), route("shop.f", "new"), route("shop.reload", "celery")]

    def found(app_: Celery, rows: list[dict[str, Any]]) -> list[str]:
        return [one.split("'")[1] for one in brief(app.fanouts(Told(routes_in_use=rows), app_))]  # type: ignore[arg-type]

    assert [row["task"] for row in copied] == found(here, [*others, *copied])
    assert [] == found(shop("memory://"), copied)


def test_a_router_that_is_a_function_is_not_asked_where_messages_go() -> None:
    def router(*_: Any, **__: Any) -> None:
        raise AssertionError

    here = shop("memory://", task_queues=(Broadcast("to-all"), Queue("celery")), task_routes=router)
    row = {"task": "shop.a", "queue": None, "exchange": None, "routing_key": None, "rows": 1, "name": "row"}

    assert [] == list(app.fanouts(Told(routes_in_use=[row]), here))  # type: ignore[arg-type]


def test_a_beat_that_is_not_ours_is_a_warning() -> None:
    assert [WARNING] == [found.severity for found in app.scheduler(shop())]
    assert [] == list(app.scheduler(shop(beat_scheduler="pgbeat")))


def test_an_app_whose_beats_cannot_start_is_an_error() -> None:
    (found,) = app.scheduler(shop(beat_scheduler="pgbeat", timezone="Europe/Berln"))

    assert (ERROR, True) == (found.severity, found.what.startswith("No beat of this app can start: Celery's setting"))


def test_unknown_tasks_and_those_that_may_not_be_sent_are_errors() -> None:
    here = shop("memory://")

    @here.task(name="shop.known")
    def known() -> None: ...

    used = [
        {"task": "shop.known", "rows": 1, "name": "a"},
        {"task": "shop.unknown", "rows": 1, "name": "b"},
        {"task": "evil.task", "rows": 3, "name": "c"},
    ]

    found = brief(app.tasks(Told(tasks_in_use=used), Settings(allowed_tasks=("shop.*",)), here))  # type: ignore[arg-type]

    assert [
        "error: The task 'evil.task', which 'c' and 2 others name, is not in pgbeat_allowed_tasks: it is never sent.",
        "error: This app does not know the task 'shop.unknown', which 'b' names.",
        "error: This app does not know the task 'evil.task', which 'c' and 2 others name.",
    ] == found


def test_of_many_unknown_tasks_the_first_are_named_and_the_others_counted() -> None:
    used = [{"task": f"app.{n}", "rows": 1, "name": "x"} for n in range(app.MOST_SHOWN + 2)]

    *named, last = brief(app.tasks(Told(tasks_in_use=used), Settings(), shop("memory://")))  # type: ignore[arg-type]

    assert app.MOST_SHOWN == len(named)
    assert "error: This app does not know 2 more tasks that rows name." == last


def test_a_task_that_a_worker_knows_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_registered_by_workers", lambda _: {"shop.elsewhere"})
    used = [{"task": name, "rows": 1, "name": "x"} for name in ("shop.elsewhere", "shop.nowhere")]

    found = brief(app.tasks(Told(tasks_in_use=used), Settings(), shop("memory://")))  # type: ignore[arg-type]

    assert [
        "error: Neither this app nor any worker that replied knows the task 'shop.nowhere', which 'x' names."
    ] == found


def test_a_schema_in_which_strangers_may_create_objects_is_a_warning_that_says_how_to_repair_it() -> None:
    rows = [
        {"schema": "public", "ours": False, "grantees": ["public"], "role": "shop"},
        {"schema": "pgbeat", "ours": True, "grantees": ["anna", "bert"], "role": "shop"},
        {"schema": "pgbeat", "ours": True, "grantees": ["bert", "public"], "role": "shop"},
    ]

    found = list(schema.search_path(Told(open_schemas=rows)))  # type: ignore[arg-type]

    assert [
        "warning: Every user may create functions in the schema public, which is in the search_path of the user shop: "
        "a function that fits better than Postgres' own runs instead, with the rights of this user.",
        "warning: Other users than its owner may create objects in our schema pgbeat: anna, bert.",
        "warning: Other users than its owner may create objects in our schema pgbeat: every user.",
    ] == brief(found)
    assert [
        "Revoke that right, as the schema's owner: revoke create on schema public from public; or change the path: "
        "alter role shop set search_path = ''",
        "Revoke that right, as the schema's owner: revoke create on schema pgbeat from anna, bert",
        "Revoke that right, as the schema's owner: revoke create on schema pgbeat from bert, public",
    ] == [finding.mend for finding in found]
    assert [] == list(schema.search_path(Told(open_schemas=[])))  # type: ignore[arg-type]


def test_workers_that_answer_and_do_not_track_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    here = shop("memory://")
    monkeypatch.setattr(here.control, "ping", lambda **_: [{"a": 1}, {"b": 1}])
    node = {"role": "worker", "alive": True, "tracking": True}

    assert ["warning: Of 2 workers that replied to Celery's ping, 1 have our tracker."] == brief(
        app.workers(Told(nodes=[node, {**node, "alive": False}]), here)  # type: ignore[arg-type]
    )
    assert [] == list(app.workers(Told(nodes=[node, node]), here))  # type: ignore[arg-type]


def test_a_broker_out_of_reach_is_an_error_within_seconds() -> None:
    (found,) = app.workers(Told(nodes=[]), shop())  # type: ignore[arg-type]

    assert (ERROR, True) == (found.severity, found.what.startswith("The broker cannot be reached from here: "))


def test_a_number_has_its_noun() -> None:
    assert ["1 row", "2 rows"] == [number(1, "row"), number(2, "row")]


def test_every_kind_of_hang_is_reported() -> None:
    row = {"number": 2, "name": "x", "since": None, "detail": "why"}
    told = [hang.found(row) for hang in work.TROUBLES.values()]

    assert len(told) == len({finding.what for finding in told})
    assert all("2 " in finding.what and finding.mend.strip() for finding in told)


def run(monkeypatch: pytest.MonkeyPatch, *words: str, **checks: Any) -> Result:
    """Run the command with these checks; each is a list of findings, an error, or why it is skipped."""

    def look(answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = [
        (name, answer if isinstance(answer, str) else lambda answer=answer: look(answer))
        for name, answer in checks.items()
    ]
    monkeypatch.setattr(command, "_checks", lambda _: made)
    return CliRunner().invoke(main, ["--url", OUT_OF_REACH, "doctor", *words])


def test_nothing_but_notes_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    note = Finding(NOTE, "Something.", "Nothing to do.")

    assert (0, "No problems found.\n") == ((result := run(monkeypatch, stuck=[])).exit_code, result.output)
    assert (0, "note: Something.\n    Nothing to do.\n") == (
        (result := run(monkeypatch, stuck=[note])).exit_code,
        result.output,
    )


def test_the_worst_is_reported_first_and_ends_with_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Finding(severity, f"{severity}.", "Mend.") for severity in (NOTE, WARNING, ERROR)]

    result = run(monkeypatch, stuck=found, tasks="no app was named (-A)")

    assert 1 == result.exit_code
    assert ["error: error.", "warning: warning.", "note: note."] == result.stdout.splitlines()[::2]
    assert "Not checked: tasks: no app was named (-A)\n" == result.stderr


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Exception()
    refused.orig = "permission denied for table node"  # type: ignore[attr-defined]
    checks: dict[str, Any] = {"nodes": refused, "stuck": SchemaMissing("no schema"), "app tasks": ZeroDivisionError()}

    printed = json.loads(run(monkeypatch, "--json", **checks).stdout)

    assert list(checks) == printed["checked"] == [finding["check"] for finding in printed["findings"]]
    assert "This check failed: permission denied for table node" == printed["findings"][0]["what"]


def test_an_error_of_ours_in_a_check_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(run(monkeypatch, stuck=ZeroDivisionError()).exception, ZeroDivisionError)


def test_a_database_that_goes_away_ends_it_with_exit_code_three(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 3 == run(monkeypatch, stuck=DatabaseUnavailable("gone")).exit_code


def test_an_unusable_schema_is_reported_before_what_depends_on_it() -> None:
    examination = Examination()
    examination.make("schema", lambda: [Finding(ERROR, "Old.", "Migrate.")])
    examination.make("stuck", lambda: pytest.fail("looked at"))

    assert {"stuck": "fix the schema first"} == examination.as_dict()["skipped"]


@pytest.mark.parametrize(
    ("waited", "beats", "told"),
    [
        (timedelta(minutes=2), 1, "note: Still to be planned: 2000 rows, "),
        (timedelta(minutes=11), 1, "error: Not planned: 2000 rows, "),
        (timedelta(minutes=2), 0, "error: Not planned: 2000 rows, "),
    ],
)
def test_rows_that_living_beats_are_still_planning_are_only_a_note(waited: timedelta, beats: int, told: str) -> None:
    row = {"number": 2000, "name": "x", "since": AT, "detail": None}
    beat = {"role": "beat", "alive": True, "now": AT + waited}
    operators: Any = Told(
        stuck={"unplanned": row}, nodes=[{**beat, "alive": False}, {**beat, "role": "worker"}, *[beat] * beats]
    )

    (found,) = brief(work.stuck(operators))

    assert found.startswith(told)


def test_a_server_without_autovacuum_is_one_finding_not_one_for_each_table() -> None:
    table = {"live": 10, "dead": 0, "autovacuum": False, "vacuumed_by_itself": True}
    told = Told(tables=[{**table, "name": "node"}, {**table, "name": "alert"}], oldest_transaction=None)
    told.database = SimpleNamespace(schema="pgbeat")

    assert ["warning: Autovacuum is off in the whole server."] == brief(storage.bloat(told))
