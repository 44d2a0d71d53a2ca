"""What `PgBeat(app)` does to a Celery app, and the examples of the Python door's documentation."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from celery.app.utils import bugreport
from celery.beat import Service
from celery.signals import beat_init

import celery_pgbeat.api.backfills
import celery_pgbeat.api.client
import celery_pgbeat.api.groups
import celery_pgbeat.declare.call
import celery_pgbeat.declare.timing
from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.settings import Settings

URL = "postgresql://shop:hush@localhost/shop"
LONG_AGO = datetime(2026, 4, 1, tzinfo=timezone.utc)


@pytest.fixture
def app() -> Celery:
    return Celery("shop", broker="memory://", set_as_current=False)


def test_the_app_gets_our_beat_and_our_settings(app: Celery) -> None:
    PgBeat(app, url=URL, schema="shop_beat")

    settings = Settings.from_mapping(app.conf)
    assert app.conf.beat_scheduler == "pgbeat"
    assert (settings.url, settings.schema) == (URL, "shop_beat")


def _source(app: Celery, scheduler: str) -> None:
    app.config_from_object({"beat_scheduler": scheduler})


def _prefixed(app: Celery, scheduler: str) -> None:
    module = ModuleType("shop_settings")
    vars(module).update(CELERY_BEAT_SCHEDULER=scheduler, CELERY_TIMEZONE="Europe/Berlin")
    app.config_from_object(module, namespace="CELERY")


def _assigned(app: Celery, scheduler: str) -> None:
    app.conf.beat_scheduler = scheduler


def _updated(app: Celery, scheduler: str) -> None:
    app.conf.update(beat_scheduler=scheduler)


def _loaded(app: Celery, scheduler: str) -> None:
    _source(app, scheduler)
    assert app.conf.beat_scheduler


CONFIGURED = (_source, _prefixed, _assigned, _updated, _loaded)
DJANGOS = "django_celery_beat.schedulers:DatabaseScheduler"


@pytest.mark.parametrize("configure", CONFIGURED)
def test_a_scheduler_that_the_configuration_names_stays(app: Celery, configure: Callable[[Celery, str], None]) -> None:
    other = Celery("other", broker="memory://", set_as_current=False)

    configure(app, DJANGOS)
    PgBeat(app, url=URL)
    PgBeat(other, url=URL)
    configure(other, DJANGOS)

    assert [DJANGOS, DJANGOS] == [app.conf.beat_scheduler, other.conf.beat_scheduler]


@pytest.mark.parametrize("configure", [_source, _assigned, _updated, _loaded])
def test_celerys_own_scheduler_stays_if_the_configuration_names_it(
    app: Celery, configure: Callable[[Celery, str], None]
) -> None:
    configure(app, "celery.beat:PersistentScheduler")
    PgBeat(app, url=URL)

    assert "celery.beat:PersistentScheduler" == app.conf.beat_scheduler


def test_a_configuration_without_a_scheduler_that_is_loaded_later_gets_ours(app: Celery) -> None:
    PgBeat(app, url=URL)
    _source(app, DJANGOS)
    assert DJANGOS == app.conf.beat_scheduler

    app.config_from_object({"timezone": "Europe/Berlin"})

    assert ("pgbeat", "Europe/Berlin") == (app.conf.beat_scheduler, app.conf.timezone)


def test_a_scheduler_in_the_module_that_the_environment_names_stays(tmp_path: Path) -> None:
    (tmp_path / "shop_config.py").write_text(f'beat_scheduler = "{DJANGOS}"')
    code = (
        "from celery import Celery\n"
        "from celery_pgbeat import PgBeat\n"
        "app = Celery('shop', broker='memory://')\n"
        "PgBeat(app, url='postgresql://localhost/shop')\n"
        "print(app.conf.beat_scheduler)"
    )
    environment = {**os.environ, "CELERY_CONFIG_MODULE": "shop_config", "PYTHONPATH": str(tmp_path)}

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)

    assert DJANGOS == done.stdout.strip()


@pytest.mark.parametrize(
    ("configured", "started", "warns"),
    [
        ("celery.beat:Scheduler", None, True),
        ("celery.beat:Scheduler", "pgbeat", False),
        (None, "celery.beat:Scheduler", False),
        (None, None, False),
    ],
)
def test_a_beat_says_that_the_configuration_names_another_scheduler(
    app: Celery, caplog: pytest.LogCaptureFixture, configured: str | None, started: str | None, warns: bool
) -> None:
    PgBeat(app, url=URL)
    if configured is not None:
        app.conf.beat_scheduler = configured

    beat_init.send(sender=Service(app, scheduler_cls=app.either("beat_scheduler", started)))

    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warns == any("'celery.beat:Scheduler'" in line and "-S pgbeat" in line for line in said)


def test_our_part_of_the_worker_is_imported_with_the_task_modules_and_not_before() -> None:
    code = (
        "import sys\n"
        "from celery import Celery\n"
        "from celery_pgbeat import PgBeat\n"
        "app = Celery('shop', broker='memory://')\n"
        "PgBeat(app, url='postgresql://localhost/shop')\n"
        "loaded = lambda: 'celery_pgbeat.worker' in sys.modules\n"
        "before = loaded()\n"
        "app.conf.imports = ['json']\n"
        "app.loader.import_default_modules()\n"
        "print(before, loaded())"
    )

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["False", "True"]


def test_nothing_is_loaded_early_and_what_is_configured_later_counts(app: Celery) -> None:
    beat = PgBeat(app)

    assert not app.configured
    app.config_from_object({"imports": ["json"], "pgbeat_url": URL})
    assert app.conf.imports == ["json"]
    assert beat.settings.url == URL


def test_an_app_that_is_configured_already_gets_it_all_the_same(app: Celery) -> None:
    app.conf.update(timezone="Europe/Berlin")
    assert app.conf.timezone == "Europe/Berlin"

    beat = PgBeat(app, url=URL)

    assert app.conf.beat_scheduler == "pgbeat"
    assert beat.settings.url == URL


def test_settings_may_stand_in_a_configuration_with_a_prefix(app: Celery) -> None:
    beat = PgBeat(app)
    module = ModuleType("shop_settings")
    vars(module).update(CELERY_PGBEAT_URL=URL, CELERY_PGBEAT_LEASE=5)
    app.config_from_object(module, namespace="CELERY")

    assert beat.settings.url == URL
    assert beat.settings.lease.total_seconds() == 5


@pytest.mark.parametrize("given_by", ["argument", "configuration"])
def test_celery_prints_the_configuration_without_the_password(app: Celery, given_by: str) -> None:
    if given_by == "argument":
        PgBeat(app, url=URL)
    else:
        app.config_from_object({"pgbeat_url": URL})
        PgBeat(app)

    report = bugreport(app) + repr(dict(app.conf))

    assert "pgbeat_url" in report
    assert "hush" not in report


def test_a_wrong_url_is_an_error_at_once_and_shows_no_password(app: Celery) -> None:
    with pytest.raises(InvalidSetting, match="celery-pgbeat needs Postgres") as error:
        PgBeat(app, url="mysql://shop:hush@localhost/shop")

    assert "hush" not in str(error.value)


def test_the_public_names_are_loaded_on_first_use() -> None:
    import celery_pgbeat

    assert {"Columns", "PgBeat", "Timing", "cron", "current", "every", "__version__"} == set(celery_pgbeat.__all__)
    assert all(getattr(celery_pgbeat, name) for name in celery_pgbeat.__all__)


def examples() -> Iterator[doctest.DocTest]:
    for module in (
        celery_pgbeat.api.backfills,
        celery_pgbeat.api.client,
        celery_pgbeat.api.groups,
        celery_pgbeat.api.methods.backfills,
        celery_pgbeat.api.methods.changes,
        celery_pgbeat.api.methods.groups,
        celery_pgbeat.api.methods.jobs,
        celery_pgbeat.api.methods.operations,
        celery_pgbeat.api.methods.reading,
        celery_pgbeat.api.methods.tasks,
        celery_pgbeat.api.methods.work,
        celery_pgbeat.declare.call,
        celery_pgbeat.declare.timing,
    ):
        for found in doctest.DocTestFinder(exclude_empty=True).find(module):
            if found.examples:
                yield found


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_the_examples_of_the_documentation_run(example: doctest.DocTest, migrated_database: str) -> None:
    beat = PgBeat(url=migrated_database)
    beat.schedule("nightly", "shop.report", "0 3 * * *", timezone="UTC")
    beat.limit_group("reports", None)
    beat.trigger("nightly")
    beat.backfill("nightly", LONG_AGO, LONG_AGO)
    globs: dict[str, Any] = {"beat": beat, "cron": cron, "every": every, "PgBeat": PgBeat}
    example.globs = {**vars(sys.modules[example.globs["__name__"]]), **globs}

    result = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)

    beat.close()
    assert result.failed == 0
    assert result.attempted > 0
