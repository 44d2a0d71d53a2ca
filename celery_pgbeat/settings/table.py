"""The `pgbeat_*` settings: one table with defaults, types and meanings, from which docs/settings.md is made.

Each setting is read from the Celery configuration, else from the environment variable of the same name in capitals;
else it has its default. A wrong value is an error at start that names it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings import readers
from celery_pgbeat.settings.environment import variable
from celery_pgbeat.settings.readers import DAY, Duration, masked_webhook
from celery_pgbeat.settings.unknown_settings import misspelt_variables, unknown_settings
from celery_pgbeat.texts.redaction import MASK
from celery_pgbeat.texts.safe_text import in_short
from celery_pgbeat.texts.suggestions import question

logger = logging.getLogger(__name__)

CALL_OTHERS = frozenset(
    f"celery.{name}" for name in ("chain", "chord", "chord_unlock", "chunks", "group", "map", "starmap")
)


def _setting(default: Any, read: Callable[[str, Any], Any], meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one app, checked.

    Example:
        >>> settings = Settings.from_mapping({"pgbeat_url": "postgresql://localhost/shop", "pgbeat_lease": 5})
        >>> settings.lease
        datetime.timedelta(seconds=5)
    """

    url: str | None = _setting(None, readers.text, "The URL of the database: `postgresql://user@host/database`.")
    schema: str = _setting("pgbeat", readers.schema, "The database schema; one schema serves one app.")
    lease: timedelta = _setting(
        timedelta(seconds=15),
        Duration(timedelta(seconds=0.1), DAY),
        "Seconds for which a beat's mark on a row is valid. If the beat dies, its ticks are late by at most this "
        "plus one poll.",
    )
    poll: timedelta = _setting(
        timedelta(seconds=1),
        Duration(timedelta(seconds=0.01), timedelta(hours=1)),
        "Seconds between two reads of the table while no notification arrives; at most a sixth of `pgbeat_dead_after`, "
        "else lowered to that.",
    )
    batch: int = _setting(1000, readers.count, "How many due rows a beat marks at once.")
    heartbeat: timedelta = _setting(
        timedelta(seconds=10),
        Duration(timedelta(seconds=0.1), DAY),
        "Seconds between two heartbeats of a node; at most a third of `pgbeat_dead_after`, else lowered to that.",
    )
    dead_after: timedelta = _setting(
        timedelta(seconds=30),
        Duration(timedelta(seconds=0.3), DAY),
        "Seconds without a heartbeat after which a node counts as dead and its running jobs as lost.",
    )
    retention: timedelta = _setting(
        timedelta(days=30), Duration(DAY, 36_500 * DAY, unit="days"), "Days for which final jobs are kept."
    )
    keep_changes: timedelta = _setting(
        timedelta(days=365),
        Duration(DAY, 36_500 * DAY, unit="days"),
        "Days for which is kept who changed what (see `changes`).",
    )
    auto_migrate: bool = _setting(True, readers.switch, "Whether a beat migrates the schema when it starts.")
    allowed_tasks: tuple[str, ...] = _setting(
        ("*",),
        readers.patterns,
        "Patterns of the task names that rows may use; a job of another task is neither sent nor started.",
    )
    allowed_queues: tuple[str, ...] = _setting(
        ("*",),
        readers.patterns,
        "Patterns of the queue names that rows may use; without `*` rows must not set an exchange or a routing key.",
    )
    pickup_deadline: timedelta | None = _setting(
        None,
        Duration(timedelta(seconds=1), 366 * DAY, optional=True),
        "Seconds for which a message may wait for a worker; default twice the gap to the next run, from 15 minutes "
        "to 1 day.",
    )
    guard_error: str = _setting(
        "run", readers.guard_error, "What a worker does with a job while Postgres is out of reach: `run` or `refuse`."
    )
    min_interval: timedelta = _setting(
        timedelta(seconds=1),
        Duration(timedelta(seconds=0.01), DAY),
        "The shortest interval that a row may have, in seconds.",
    )
    alert_after: timedelta | None = _setting(
        timedelta(minutes=5),
        Duration(timedelta(seconds=1), 30 * DAY, off=True),
        "Seconds after which an overdue row raises an alert; `0` turns off all alerts, also those about dead beats.",
    )
    alert_webhook: str | None = _setting(
        None, readers.webhook, "A URL to which alerts are posted as JSON; only its host name is ever logged."
    )
    metrics_port: int | None = _setting(
        None, readers.port, "The port on which a beat serves metrics for Prometheus; without one it serves none."
    )
    metrics_host: str = _setting(
        "127.0.0.1",
        readers.text,
        "The address of that port; `0.0.0.0` for all addresses of the host, so that other hosts can read them.",
    )
    web_password: str | None = _setting(
        None,
        readers.password,
        "The password of the dashboard, for HTTP's Basic authentication with any user name; without one only this host "
        "may open it.",
    )
    shadow: bool = _setting(
        False,
        readers.switch,
        "Whether beats only record what they would send, beside another scheduler that sends; alike for all beats of a "
        "schema.",
    )
    opentelemetry: bool = _setting(
        False,
        readers.switch,
        "Whether ticks and jobs are spans of OpenTelemetry, and a task's trace begins at its job; needs the extra.",
    )
    # No setting: what stands in the place of pgbeat_url, as (written, meant).
    misspelt_url: tuple[str, str] | None = field(default=None, compare=False)

    @classmethod
    def from_mapping(cls, configuration: Mapping[str, Any]) -> Settings:
        """Read the settings from a Celery configuration, then from the environment.

        Raises:
            InvalidSetting: a value is wrong; names the setting and the value.
        """
        known = [f"pgbeat_{setting.name}" for setting in SETTINGS]
        unknown = {**misspelt_variables(known), **unknown_settings(configuration, known)}
        _warn_of(unknown)
        values: dict[str, Any] = {"misspelt_url": _misspelt_url(unknown)}
        for setting in SETTINGS:
            name = f"pgbeat_{setting.name}"
            value = configuration.get(name)
            if value is None:
                value = variable(name.upper())
            if value is not None:
                try:
                    values[setting.name] = setting.metadata["read"](name, value)
                except RecursionError:
                    raise InvalidSetting(f"{name} is {in_short(value)}") from None
        settings = cls(**values)
        if settings.url is not None:
            normalise_url(settings.url)
        return settings

    @property
    def required_url(self) -> str:
        """The URL, or an error that says how to give one."""
        if self.url is None:
            raise InvalidSetting(
                f"{self.without_url}: put it into the Celery configuration (which `celery -A your_app pgbeat` reads) "
                "or the environment variable PGBEAT_URL, as postgresql://user:password@host:5432/database"
            )
        return self.url

    @property
    def without_url(self) -> str:
        """The sentence that there is no URL; it names what is set in its place."""
        if self.misspelt_url is None:
            return "pgbeat_url is not set"
        written, meant = self.misspelt_url
        return f"pgbeat_url is not set, but {written} is (did you mean {meant}?)"

    @property
    def heartbeat_every(self) -> timedelta:
        """The heartbeat in force: three of them must fit into `dead_after`."""
        return min(self.heartbeat, self.dead_after / 3)

    @property
    def longest_rest(self) -> timedelta:
        """The longest rest of an idle beat. One of a third of `dead_after` would count as an outage: no beat judged."""
        return min(self.poll, self.dead_after / 6)

    @property
    def on_time(self) -> timedelta:
        """How late an occurrence may be decided and still count as on time, so that `catchup` does not apply."""
        return 2 * (self.lease + self.poll)

    def allows(self, task: str) -> bool:
        """Return whether rows may use this task.

        Celery's own tasks that call others are allowed by `*` or by their names, not by a pattern such as `celery.*`.
        """
        if task in CALL_OTHERS:
            return not {"*", task}.isdisjoint(self.allowed_tasks)
        return "*" in self.allowed_tasks or any(fnmatchcase(task, pattern) for pattern in self.allowed_tasks)

    @property
    def allows_all(self) -> bool:
        """Whether neither setting limits what rows may use: `refusal` is always None."""
        return "*" in self.allowed_tasks and "*" in self.allowed_queues

    def refusal(self, task: str, queue: str | None, options: Mapping[str, Any] | str) -> str | None:
        """Return why a row may not be sent; None if it may.

        Args:
            task: the name of the row's task.
            queue: the row's queue; None if the app routes the task.
            options: the row's other options, or their JSON.

        Example:
            >>> Settings(allowed_queues=("low",)).refusal("shop.count", "high", {})
            "pgbeat_allowed_queues does not allow the queue 'high'"
        """
        if not self.allows(task):
            return f"pgbeat_allowed_tasks does not allow the task {task!r}"
        if "*" in self.allowed_queues:
            return None
        said = json.loads(options) if isinstance(options, str) else options
        for name in (queue, said.get("reply_to")):
            if name is None:
                continue
            if not isinstance(name, str) or not any(fnmatchcase(name, pattern) for pattern in self.allowed_queues):
                return f"pgbeat_allowed_queues does not allow the queue {in_short(name)}"
        for option in ("exchange", "routing_key"):
            if said.get(option) is not None:
                return f"pgbeat_allowed_queues is set, and options[{option!r}] would bypass it: set the queue"
        return None

    def __repr__(self) -> str:
        shown = {setting.name: getattr(self, setting.name) for setting in SETTINGS}
        if self.url is not None:
            shown["url"] = masked(normalise_url(self.url))
        if self.alert_webhook is not None:
            shown["alert_webhook"] = masked_webhook(self.alert_webhook)
        if self.web_password is not None:
            shown["web_password"] = MASK
        return f"Settings({', '.join(f'{name}={in_short(value)}' for name, value in shown.items())})"


SETTINGS = tuple(setting for setting in fields(Settings) if "read" in setting.metadata)


def _warn_of(unknown: Mapping[str, str | None]) -> None:
    """Log the unknown settings. They are no error: a newer version that is being rolled out may know them."""
    for name, meant in unknown.items():
        hint = "" if meant is None else question(meant)
        logger.warning("%s is not a setting of this version and has no effect%s", name, hint)


def _misspelt_url(unknown: Mapping[str, str | None]) -> tuple[str, str] | None:
    found = [(name, meant) for name, meant in unknown.items() if meant is not None]
    return next((pair for pair in found if pair[1].lower().endswith("pgbeat_url")), None)
