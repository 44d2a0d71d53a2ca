from __future__ import annotations

import json
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.api.configure import Url
from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable, InvalidSetting, MissingDriver
from celery_pgbeat.postgres import engine
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.suggestions import question
from tests.harness.values import UNSHOWABLE, nested

URL = "postgresql://shop:s3cret@localhost/shop"


def test_the_defaults_are_those_that_the_docs_name() -> None:
    settings = Settings.from_mapping({})

    assert (timedelta(seconds=15), timedelta(seconds=1), 1000) == (settings.lease, settings.poll, settings.batch)
    assert timedelta(seconds=32) == settings.on_time


def test_the_configuration_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_LEASE", "7")
    monkeypatch.setenv("PGBEAT_POLL", "0.5")

    settings = Settings.from_mapping({"pgbeat_lease": 5})

    assert (timedelta(seconds=5), timedelta(seconds=0.5)) == (settings.lease, settings.poll)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_URL", "")
    monkeypatch.setenv("PGBEAT_LEASE", "")

    assert Settings() == Settings.from_mapping({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pgbeat_lease", "soon"),
        ("pgbeat_lease", 0),
        ("pgbeat_lease", float("nan")),
        ("pgbeat_lease", 1e9),
        ("pgbeat_poll", -1),
        ("pgbeat_poll", 0.001),
        ("pgbeat_poll", timedelta(hours=2)),
        ("pgbeat_heartbeat", 90_000),
        ("pgbeat_dead_after", 0.01),
        ("pgbeat_pickup_deadline", 1e9),
        ("pgbeat_min_interval", 0.001),
        ("pgbeat_alert_after", 0.5),
        ("pgbeat_retention", 1e6),
        ("pgbeat_batch", "many"),
        ("pgbeat_batch", 0),
        ("pgbeat_schema", 'x"; drop table y; --'),
        ("pgbeat_schema", "Upper"),
        ("pgbeat_schema", "a" * 64),
        ("pgbeat_retention", "0.5"),
        ("pgbeat_auto_migrate", "perhaps"),
        ("pgbeat_guard_error", "ignore"),
        ("pgbeat_allowed_tasks", 7),
        ("pgbeat_url", 7),
        ("pgbeat_alert_after", "late"),
        ("pgbeat_metrics_port", "http"),
        ("pgbeat_metrics_port", 70_000),
        ("pgbeat_metrics_host", 7),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_setting_and_the_value(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings.from_mapping({name: value})

    assert name in str(refused.value)
    assert repr(value) in str(refused.value)


def test_a_duration_out_of_bounds_is_refused_with_its_bounds() -> None:
    with pytest.raises(InvalidSetting, match=r"^pgbeat_lease is '1e9'; it must be from 0\.1 s to 1 day$"):
        Settings.from_mapping({"pgbeat_lease": "1e9"})
    with pytest.raises(InvalidSetting, match=r"^pgbeat_retention is '0\.5'; it must be from 1 day to 36,500 days$"):
        Settings.from_mapping({"pgbeat_retention": "0.5"})


def test_a_missing_url_says_how_to_give_one() -> None:
    with pytest.raises(InvalidSetting, match="PGBEAT_URL"):
        _ = Settings.from_mapping({}).required_url


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "no url at all s3cret", "postgresql+asyncpg://u:s3cret@h/d"])
def test_a_wrong_url_is_refused_without_repeating_its_password(url: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings.from_mapping({"pgbeat_url": url})

    assert "s3cret" not in str(refused.value)


def test_a_password_is_shown_nowhere() -> None:
    settings = Settings.from_mapping({"pgbeat_url": f"{URL}?sslpassword=k3y"})
    database = Database(URL)

    shown = f"{settings!r} {settings} {database!r} {masked(normalise_url(f'{URL}?sslpassword=k3y'))}"

    assert "s3cret" not in shown
    assert "k3y" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:s3cret@Part@localhost/shop",
        "postgresql://shop:s3cret@Part/tail@localhost/shop",
        "postgresql://shop:s3cret@Part?tail@localhost/shop",
        "postgresql://shop:s3cret@Part?x=1@localhost/shop",
        "postgresql://:s3cret@Part:tail@localhost/shop",
    ],
)
def test_a_password_with_an_at_sign_is_refused_with_the_way_to_write_it_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"pgbeat_url has more than one @: .* write @ as %40") as refused:
        Settings.from_mapping({"pgbeat_url": url})

    assert [] == [part for part in ("s3cret", "Part", "tail") if part in f"{refused.value} {Url(url)!r}"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@corp:s3cret@localhost/shop",
        "postgresql://shop:s3%40cret@localhost/my%40shop",
        "postgresql://shop:s3/#?cret@localhost/shop?application_name=shop@one",
        "postgresql://localhost/my@shop?host=@socket",
    ],
)
def test_an_at_sign_elsewhere_in_a_url_is_none_of_the_password(url: str) -> None:
    assert "cret" not in masked(normalise_url(url))


@pytest.mark.parametrize("around", ["{}\n", " {}", "\t{}\r\n"])
def test_white_space_around_a_url_or_a_variable_does_not_count(monkeypatch: pytest.MonkeyPatch, around: str) -> None:
    monkeypatch.setenv("PGBEAT_URL", around.format(URL))
    monkeypatch.setenv("PGBEAT_SCHEMA", around.format("beat"))

    settings = Settings.from_mapping({})

    assert (URL, "beat") == (settings.url, settings.schema)
    assert normalise_url(URL) == normalise_url(around.format(URL))


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_around_a_url_or_a_variable_are_named(monkeypatch: pytest.MonkeyPatch, quote: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^pgbeat_url has quotes around it: write it without them$"):
        Settings.from_mapping({"pgbeat_url": f"{quote}{URL}{quote}"})

    monkeypatch.setenv("PGBEAT_WEB_PASSWORD", f"{quote}s3cret-word{quote}\n")
    with pytest.raises(InvalidSetting, match=r"^PGBEAT_WEB_PASSWORD has quotes around its value: "):
        Settings.from_mapping({})


# What a pod gets for four Services, of which one is called `pgbeat`; each has the port 9464, named `http`.
OF_SERVICES = {
    f"PGBEAT{service}{name}": value
    for service in ("", "_METRICS", "_URL", "_POLL")
    for name, value in {
        "_SERVICE_HOST": "10.96.0.6",
        "_SERVICE_PORT": "9464",
        "_SERVICE_PORT_HTTP": "9464",
        "_PORT": "tcp://10.96.0.6:9464",
        "_PORT_9464_TCP": "tcp://10.96.0.6:9464",
        "_PORT_9464_TCP_PROTO": "tcp",
        "_PORT_9464_TCP_PORT": "9464",
        "_PORT_9464_TCP_ADDR": "10.96.0.6",
    }.items()
}


def test_variables_that_kubernetes_sets_for_a_service_are_no_settings(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    for name, value in OF_SERVICES.items():
        monkeypatch.setenv(name, value)

    assert Settings() == Settings.from_mapping({})
    assert [
        "PGBEAT_METRICS_PORT is tcp://10.96.0.6:9464, which Kubernetes sets for the Service 'pgbeat-metrics': "
        "it is ignored"
    ] == caplog.messages


def test_a_port_that_kubernetes_has_not_set_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_METRICS_PORT", "9464\n")
    assert 9464 == Settings.from_mapping({}).metrics_port

    monkeypatch.setenv("PGBEAT_METRICS_PORT", "http://10.96.0.6:9464")
    with pytest.raises(InvalidSetting, match="not a port number"):
        Settings.from_mapping({})


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ('["shop.count", "mail.*"]', ("shop.count", "mail.*")),
        (" [] ", ()),
        ("shop.count, mail.*", ("shop.count", "mail.*")),
        ("[sm]*.count", ("[sm]*.count",)),
        ("5", ("5",)),
    ],
)
def test_a_variable_may_list_patterns_as_json_or_between_commas(
    monkeypatch: pytest.MonkeyPatch, text: str, patterns: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PGBEAT_ALLOWED_TASKS", text)

    assert patterns == Settings.from_mapping({}).allowed_tasks


@pytest.mark.parametrize("text", ["['shop.count']", '["shop.count"', "[1, 2]", "'a', 'b'"])
def test_a_list_that_is_written_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PGBEAT_ALLOWED_QUEUES", text)

    with pytest.raises(InvalidSetting, match=r"^(pgbeat_allowed_queues|PGBEAT_ALLOWED_QUEUES) "):
        Settings.from_mapping({})


@pytest.mark.parametrize("off", [0, "0", False, "off"])
def test_alerts_are_raised_after_five_minutes_unless_they_are_off(off: Any) -> None:
    assert timedelta(minutes=5) == Settings.from_mapping({}).alert_after
    assert Settings.from_mapping({"pgbeat_alert_after": off}).alert_after is None


@pytest.mark.parametrize("url", ["hooks.example.com/s3cret", "ftp://h/s3cret", "https:///s3cret", "https://h:x/s3cret"])
def test_a_wrong_webhook_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidSetting, match="pgbeat_alert_webhook") as refused:
        Settings.from_mapping({"pgbeat_alert_webhook": url})

    assert "s3cret" not in str(refused.value)


def test_of_a_webhook_only_the_server_is_shown() -> None:
    settings = Settings.from_mapping({"pgbeat_alert_webhook": "https://me:s3cret@hooks.example.com/k3y?token=t0ken"})

    assert "alert_webhook='https://hooks.example.com/***'" in repr(settings)
    assert [] == [secret for secret in ("s3cret", "k3y", "t0ken") if secret in repr(settings)]


def test_a_url_without_a_driver_gets_the_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert normalise_url(URL).drivername == "postgresql+psycopg2"
    assert normalise_url("postgresql+psycopg://localhost/shop").drivername == "postgresql+psycopg"
    real = engine.importlib.util.find_spec
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None if name == "psycopg2" else real(name))
    assert normalise_url(URL).drivername == "postgresql+psycopg"


def test_a_missing_driver_is_named_with_the_package_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(MissingDriver, match="pip install 'psycopg2-binary'"):
        normalise_url(URL)


def test_the_heartbeat_is_lowered_to_a_third_of_dead_after() -> None:
    settings = Settings.from_mapping({"pgbeat_dead_after": 9})

    assert timedelta(seconds=3) == settings.heartbeat_every


def test_task_names_are_allowed_by_pattern() -> None:
    settings = Settings.from_mapping({"pgbeat_allowed_tasks": "shop.*, mail.send"})

    assert [settings.allows(task) for task in ("shop.a.b", "mail.send", "mail.sender")] == [True, True, False]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("40001", DatabaseBusy),
        ("40P01", DatabaseBusy),
        ("55P03", DatabaseBusy),
        ("57014", DatabaseBusy),
        ("57P01", DatabaseUnavailable),
        ("53300", DatabaseUnavailable),
        ("25006", DatabaseUnavailable),
        ("22023", DBAPIError),
    ],
)
def test_what_may_pass_by_itself_is_told_from_what_is_wrong(code: str, expected: type[Exception]) -> None:
    class Origin(Exception):
        pgcode = code

    error = DBAPIError("select 1", None, Origin("trouble"))

    assert expected is type(Database(URL).translated(error))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("no route", "no route."),
        ("read-only\n transaction", "read-only transaction."),
        ("refused\n\tIs it running?\n", "refused. Is it running?"),
        ("FATAL:  no entry\nconnection to b failed\n\tIs it?", "FATAL: no entry. connection to b failed. Is it?"),
        ("All failures were:\n- Host: a", "All failures were: - Host: a."),
        ("Is it running?", "Is it running?"),
        ("It is shutting down.", "It is shutting down."),
    ],
)
@pytest.mark.parametrize("code", ["57P01", "57014"])
def test_what_postgres_says_ends_as_a_sentence_so_that_another_may_follow(code: str, words: str, expected: str) -> None:
    class Origin(Exception):
        pgcode = code

    assert str(Database(URL).translated(DBAPIError("select 1", None, Origin(words)))).endswith(f": {expected}")


def test_an_unknown_setting_is_named_with_a_suggestion(caplog: pytest.LogCaptureFixture) -> None:
    Settings.from_mapping({"pgbeat_leese": 5, "pgbeat_from_the_future": 1, "pgbeat_poll": 2, "task_serializer": "json"})

    assert [
        "pgbeat_from_the_future is not a setting of this version and has no effect",
        "pgbeat_leese is not a setting of this version and has no effect. Did you mean 'pgbeat_lease'?",
    ] == caplog.messages


@pytest.mark.parametrize(
    ("namespace", "names"),
    [
        (
            "CELERY",
            {
                "CELERY_PGBEAT_LEESE": "CELERY_PGBEAT_LEASE",
                "CELERY_PGBEAT_ULR": "CELERY_PGBEAT_URL",
                "PGBEAT_POLL": "CELERY_PGBEAT_POLL",
                "CELERY_PGBEAT_FROM_THE_FUTURE": None,
            },
        ),
        (None, {"PGBEAT_URL": "pgbeat_url", "pgbeat_leese": "pgbeat_lease"}),
    ],
)
def test_a_misspelt_setting_is_named_as_the_configuration_writes_it(
    caplog: pytest.LogCaptureFixture, namespace: str | None, names: dict[str, str | None]
) -> None:
    app = Celery("shop", set_as_current=False)
    right = {"CELERY_PGBEAT_BATCH": 5, "CELERY_TIMEZONE": "UTC"} if namespace else {"pgbeat_batch": 5}
    module = ModuleType("settings")
    vars(module).update({**right, **dict.fromkeys(names, 5)})
    app.config_from_object(module, namespace=namespace)

    settings = Settings.from_mapping(app.conf)

    assert 5 == settings.batch
    assert sorted(
        f"{name} is not a setting of this version and has no effect{'' if meant is None else question(meant)}"
        for name, meant in names.items()
    ) == sorted(caplog.messages)


def test_a_misspelt_environment_variable_is_named_and_those_of_other_programs_are_not(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGBEAT_LEESE", "PGBEAT_TEST_SECONDS", "PGBEAT_POSTGRES_BIN"):
        monkeypatch.setenv(name, "5")

    Settings.from_mapping({})

    assert ["PGBEAT_LEESE is not a setting of this version and has no effect. Did you mean 'PGBEAT_LEASE'?"] == (
        caplog.messages
    )


def test_a_missing_url_names_what_is_set_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGBEAT_URL", raising=False)
    with pytest.raises(
        InvalidSetting, match=r"^pgbeat_url is not set, but pgbeat_ulr is \(did you mean pgbeat_url\?\): "
    ):
        _ = Settings.from_mapping({"pgbeat_ulr": "postgresql://localhost/shop"}).required_url

    monkeypatch.setenv("PGBEAT_ULR", "postgresql://localhost/shop")
    with pytest.raises(
        InvalidSetting, match=r"^pgbeat_url is not set, but PGBEAT_ULR is \(did you mean PGBEAT_URL\?\): "
    ):
        _ = Settings.from_mapping({}).required_url


@pytest.mark.parametrize(
    ("patterns", "task", "allowed"),
    [
        (["celery.*"], "celery.backend_cleanup", True),
        (["celery.*"], "celery.map", False),
        (["celery.*", "celery.map"], "celery.map", True),
        (["*"], "celery.chord", True),
        (["c*"], "celery.chain", False),
    ],
)
def test_a_task_that_calls_others_is_allowed_by_its_name_and_not_by_a_pattern(
    patterns: list[str], task: str, allowed: bool
) -> None:
    assert allowed is Settings.from_mapping({"pgbeat_allowed_tasks": patterns}).allows(task)


@pytest.mark.parametrize(
    ("queue", "options", "refusal"),
    [
        (None, {}, None),
        ("low", {"expires": 5}, None),
        ("mail.slow", {"reply_to": "low"}, None),
        ("high", {}, "pgbeat_allowed_queues does not allow the queue 'high'"),
        ("low", {"reply_to": "high"}, "pgbeat_allowed_queues does not allow the queue 'high'"),
        ("low", {"exchange": "low"}, "pgbeat_allowed_queues is set, and options['exchange'] would bypass it"),
        (None, {"routing_key": "low"}, "pgbeat_allowed_queues is set, and options['routing_key'] would bypass it"),
    ],
)
def test_rows_name_no_other_queue_than_those_that_are_allowed(
    queue: str | None, options: dict[str, Any], refusal: str | None
) -> None:
    settings = Settings.from_mapping({"pgbeat_allowed_queues": "low,mail.*"})

    found = settings.refusal("shop.count", queue, options)

    assert refusal == found if refusal is None else (found or "").startswith(refusal)
    assert found == settings.refusal("shop.count", queue, json.dumps(options))
    assert Settings().refusal("shop.count", queue, options) is None


@pytest.mark.parametrize("queue", [5, ["low"], {}])
def test_a_queue_that_is_no_text_is_not_allowed(queue: Any) -> None:
    settings = Settings(allowed_queues=("low",))

    assert settings.refusal("shop.count", None, {"reply_to": queue}) is not None


def test_a_batch_is_bounded() -> None:
    assert 10_000 == Settings.from_mapping({"pgbeat_batch": 10_000}).batch
    with pytest.raises(InvalidSetting, match=r"^pgbeat_batch is 10001; it must be from 1 to 10000$"):
        Settings.from_mapping({"pgbeat_batch": 10_001})


@pytest.mark.parametrize("name", ["pgbeat_lease", "pgbeat_batch", "pgbeat_alert_after", "pgbeat_metrics_port"])
def test_a_value_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"^{name} is something nested too deeply to be shown"):
        Settings.from_mapping({name: nested(UNSHOWABLE)})
