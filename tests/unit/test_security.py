"""What nobody may see and what no name may do: passwords are masked wherever they could show, schema names checked."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.app import utils

from celery_pgbeat import PgBeat
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.declare.options import CELERY_HEADERS
from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.roles import role_names, roles_script
from celery_pgbeat.postgres.script import parts, transaction
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.settings import Settings

# Nobody listens on port 1. Each writes the same password in another way.
URLS = {
    "plainly": "postgresql://shop:hush-hush@127.0.0.1:1/shop",
    "escaped": "postgresql://shop:%68ush-hush@127.0.0.1:1/shop",
    "as a parameter": "postgresql://shop@127.0.0.1:1/shop?password=hush-hush",
    "as a parameter of the key": "postgresql://shop@127.0.0.1:1/shop?sslpassword=hush-hush",
    "with psycopg": "postgresql+psycopg://shop:hush-hush@127.0.0.1:1/shop",
}


def app_of(url: str) -> Celery:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(beat_scheduler="pgbeat", pgbeat_url=url)
    return app


def unavailable(url: str) -> str:
    with pytest.raises(DatabaseUnavailable) as error:
        Database(url).execute("select 1")
    return f"{error.value!r} {error.value} {error.value.__cause__}"


SHOWN: dict[str, Callable[[str], str]] = {
    "repr of the settings": lambda url: repr(Settings.from_mapping({"pgbeat_url": url})),
    "repr of the database": lambda url: repr(Database(url)),
    "repr of the API": lambda url: repr(PgBeat(app_of(url), url=url)),
    "the error without a database": unavailable,
    "the banner of the beat": lambda url: Scheduler(app_of(url), lazy=True).info,
}


@pytest.mark.parametrize("way", URLS)
@pytest.mark.parametrize("place", SHOWN)
def test_a_password_is_masked(place: str, way: str) -> None:
    shown = SHOWN[place](URLS[way])

    assert "shop" in shown
    assert "hush" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:hush-hush@127.0.0.1:port/shop",
        "mysql://shop:hush-hush@127.0.0.1/shop",
        "postgresql+asyncpg://shop:hush-hush@127.0.0.1/shop",
        "shop:hush-hush@127.0.0.1/shop",
        b"postgresql://shop:hush-hush@127.0.0.1/shop",
        ["postgresql://shop:hush-hush@127.0.0.1/shop"],
    ],
)
def test_a_wrong_url_is_refused_without_being_repeated(url: Any) -> None:
    with pytest.raises(PgBeatError, match="pgbeat_url") as error:
        Settings.from_mapping({"pgbeat_url": url})

    assert "hush" not in f"{error.value!r} {error.value} {error.value.__cause__}"


APPS = {
    "by configuration": "app.conf.update(beat_scheduler='pgbeat', pgbeat_url=URL, imports=('celery_pgbeat.worker',))",
    "by PgBeat": "from celery_pgbeat import PgBeat\nbeat = PgBeat(app, url=URL)",
}


@pytest.mark.parametrize("way", APPS)
def test_celery_report_hides_the_url(tmp_path: Path, way: str) -> None:
    url = URLS["plainly"]
    (tmp_path / "shop.py").write_text(
        f"from celery import Celery\nURL = {url!r}\napp = Celery('shop', broker='memory://')\n{APPS[way]}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "shop", "report"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "pgbeat_url" in done.stdout
    assert "hush" not in done.stdout + done.stderr


def test_a_bug_report_of_a_process_that_only_has_a_pgbeat_hides_the_webhook_too() -> None:
    code = (
        "from celery import Celery\nfrom celery_pgbeat import PgBeat\napp = Celery('shop', broker='memory://')\n"
        "PgBeat(app)\napp.conf.pgbeat_alert_webhook = 'https://me:hush@hooks.example.com/hush'\nprint(app.bugreport())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "pgbeat_alert_webhook" in done.stdout
    assert "hush" not in done.stdout + done.stderr


def test_inspect_conf_hides_the_url_in_a_worker_and_goes_on_showing_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    from celery_pgbeat.texts.redaction import hide_secret_settings

    monkeypatch.setattr(utils, "HIDDEN_SETTINGS", utils.HIDDEN_SETTINGS)
    hide_secret_settings()
    hide_secret_settings()
    app = app_of(URLS["plainly"])
    app.conf.pgbeat_alert_webhook = "https://hooks.example.com/hush"
    app.conf.pgbeat_lease = 5
    shown = app.conf.table(with_defaults=False)

    assert ("********", "********") == (shown["pgbeat_url"], shown["pgbeat_alert_webhook"])
    assert 5 == shown["pgbeat_lease"]


@pytest.mark.parametrize("command", ["health --json", "doctor --json", "list --json", "migrate", "top --json", "jobs"])
def test_no_command_shows_the_password_when_the_database_is_away(command: str) -> None:
    words = [
        sys.executable,
        "-c",
        "from celery_pgbeat.cli import main; main()",
        "--url",
        URLS["plainly"],
        *command.split(),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert 0 != done.returncode
    assert done.stdout + done.stderr
    assert "hush" not in done.stdout + done.stderr


def test_nothing_is_logged_of_the_url(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        unavailable(URLS["plainly"])
        Settings.from_mapping({"pgbeat_url": URLS["plainly"], "pgbeat_leese": 5})

    assert "pgbeat_leese" in caplog.text
    assert "hush" not in caplog.text


NAMES = [
    'x"; drop schema public cascade; --',
    "x'; select pg_sleep(9); --",
    "x y",
    "Shop",
    "1shop",
    "",
    "x.y",
    "x\0",
    "ü",
    "x%s",
    "{schema}",
    "pg_temp, x",
    "x" * 64,
    "x\n",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "use",
    [
        lambda name: Settings.from_mapping({"pgbeat_schema": name or " "}),
        lambda name: Database(URLS["plainly"], schema=name),
        lambda name: statement("get", name),
        lambda name: transaction(parts(name)),
        roles_script,
    ],
    ids=["the setting", "the database", "a statement", "sql", "sql --roles"],
)
def test_a_schema_name_that_could_be_more_than_a_name_is_refused(use: Callable[[str], Any], name: str) -> None:
    with pytest.raises(PgBeatError, match="use lower-case letters, digits and underscores"):
        use(name)


def test_names_of_roles_that_postgres_would_cut_off_are_refused() -> None:
    assert 63 == max(len(name) for name in role_names("x" * 56).values())
    with pytest.raises(PgBeatError, match=r"57 characters.*it can have 56 at most"):
        role_names("x" * 57)


def test_every_header_by_which_celery_itself_knows_a_call_is_reserved() -> None:
    from celery.app.task import Context

    own = {name for name in vars(Context) if not name.startswith("__")}
    sent = Celery("shop", set_as_current=False).amqp.as_task_v2("id", "name").headers

    assert set() == (own | set(sent)) - CELERY_HEADERS
