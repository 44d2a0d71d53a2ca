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
from urllib.parse import urlsplit

from celery_pgbeat.environment import variable
from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.postgres.statements import checked_schema
from celery_pgbeat.redaction import MASK
from celery_pgbeat.safe_text import in_short
from celery_pgbeat.suggestions import question
from celery_pgbeat.unknown_settings import misspelt_variables, unknown_settings

logger = logging.getLogger(__name__)

DAY = timedelta(days=1)
SHORTEST_PASSWORD = 8  # characters; with it a person sees every periodic task
CALL_OTHERS = frozenset(
    f"celery.{name}" for name in ("chain", "chord", "chord_unlock", "chunks", "group", "map", "starmap")
)


def _setting(default: Any, read: Callable[[str, Any], Any], meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "meaning": meaning})


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    # A value that is not a number may contain a password.
    shown = repr(value) if isinstance(value, (int, float)) else f"of the type {type(value).__qualname__}"
    raise InvalidSetting(f"{name} is {shown}, not text")


def _schema(name: str, value: Any) -> str:
    return checked_schema(_text(name, value) or "")


@dataclass(frozen=True, slots=True)
class Span:
    """Reads a span of time within bounds: outside them a beat would only poll, or wait for years.

    Attributes:
        lowest: the shortest value.
        highest: the longest value.
        unit: the unit of a number.
        optional: whether None and an empty text are allowed.
        off: whether 0, `no`, `off` and `false` mean None.
    """

    lowest: timedelta
    highest: timedelta
    unit: str = "seconds"
    optional: bool = False
    off: bool = False

    def __call__(self, name: str, value: Any) -> timedelta | None:
        """Return the span.

        Raises:
            InvalidSetting: it is not a span, or out of bounds; names the setting, the value and the bounds.
        """
        if self.optional and value == "":
            return None
        if self.off and str(value).lower() in ("0", "0.0", "false", "no", "off"):
            return None
        try:
            span = value if isinstance(value, timedelta) else timedelta(**{self.unit: float(value)})
        except (TypeError, ValueError, OverflowError):
            raise InvalidSetting(f"{name} is {in_short(value)}, not a number of {self.unit}") from None
        if not self.lowest <= span <= self.highest:
            raise InvalidSetting(f"{name} is {in_short(value)}; it must be from {self.bounds}")
        return span

    @property
    def bounds(self) -> str:
        """The bounds in words, such as `0.1 s to 1 day`."""
        return f"{in_units(self.lowest)} to {in_units(self.highest)}"


def in_units(span: timedelta) -> str:
    """Return a span in days, hours or seconds, whichever it is a whole number of.

    Example:
        >>> in_units(timedelta(hours=1)), in_units(timedelta(seconds=0.1)), in_units(timedelta(days=30))
        ('1 hour', '0.1 s', '30 days')
    """
    for unit, length in (("day", timedelta(days=1)), ("hour", timedelta(hours=1))):
        if span >= length and not span % length:
            return f"{span // length:,} {unit}{'s' if span > length else ''}"
    return f"{span.total_seconds():g} s"


def _whole(value: Any) -> int:
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise ValueError(type(value))
    return int(value)


def _count(name: str, value: Any) -> int:
    try:
        number = _whole(value)
    except ValueError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a whole number") from None
    if not 1 <= number <= 10_000:
        raise InvalidSetting(f"{name} is {in_short(value)}; it must be from 1 to 10000")
    return number


def _port(name: str, value: Any) -> int:
    try:
        number = _whole(value)
    except ValueError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a port number") from None
    if not 1 <= number <= 65_535:
        raise InvalidSetting(f"{name} is {in_short(value)}; a port is from 1 to 65535")
    return number


def _password(name: str, value: Any) -> str | None:
    """Check a password. Errors do not repeat it."""
    password = _text(name, value)
    if password is not None and len(password) < SHORTEST_PASSWORD:
        raise InvalidSetting(f"{name} has {len(password)} characters; it must have at least {SHORTEST_PASSWORD}")
    return password


def _webhook(name: str, value: Any) -> str:
    """Check a URL. Errors do not repeat it, because it may contain a secret."""
    try:
        parts = urlsplit(_text(name, value) or "")
        well = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        well = False
    if not well:
        raise InvalidSetting(f"{name} is not an HTTP URL; write it as https://host/path")
    return str(value)


def masked_webhook(url: str) -> str:
    """Return the URL with only its server, because with many services the path is a secret.

    Example:
        >>> masked_webhook("https://me:secret@hooks.example.com/services/T0/B1?key=2")
        'https://hooks.example.com/***'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/***"


def _switch(name: str, value: Any) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        return known[str(value).lower()]
    except KeyError:
        raise InvalidSetting(f"{name} is {in_short(value)}; use true or false") from None


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    try:
        patterns = tuple(_listed(value) if isinstance(value, str) else value)
    except TypeError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a list of task name patterns") from None
    if not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise InvalidSetting(f"{name} is {in_short(value)}, not a list of task name patterns")
    if any(quote in pattern for pattern in patterns for quote in "\"'"):  # it would match nothing
        raise InvalidSetting(f'{name} is {in_short(value)}; write it as a.task, b.* or as ["a.task", "b.*"]')
    return patterns


def _listed(text: str) -> list[Any]:
    """Return the parts of a text: of a JSON list, else what is between commas. `[ab]*` is a pattern."""
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    return listed if isinstance(listed, list) else [part.strip() for part in text.split(",")]


def _guard_error(name: str, value: Any) -> str:
    if value not in ("run", "refuse"):
        raise InvalidSetting(f"{name} is {in_short(value)}; use 'run' or 'refuse'")
    return str(value)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one app, checked.

    Example:
        >>> settings = Settings.from_mapping({"pgbeat_url": "postgresql://localhost/shop", "pgbeat_lease": 5})
        >>> settings.lease
        datetime.timedelta(seconds=5)
    """

    url: str | None = _setting(None, _text, "The URL of the database: `postgresql://user@host/database`.")
    schema: str = _setting("pgbeat", _schema, "The database schema; one schema serves one app.")
    lease: timedelta = _setting(
        timedelta(seconds=15),
        Span(timedelta(seconds=0.1), DAY),
        "Seconds for which a beat's mark on a row is valid. If the beat dies, its ticks are late by at most this "
        "plus one poll.",
    )
    poll: timedelta = _setting(
        timedelta(seconds=1),
        Span(timedelta(seconds=0.01), timedelta(hours=1)),
        "Seconds between two reads of the table while no notification arrives.",
    )
    batch: int = _setting(1000, _count, "How many due rows a beat marks at once.")
    heartbeat: timedelta = _setting(
        timedelta(seconds=10),
        Span(timedelta(seconds=0.1), DAY),
        "Seconds between two heartbeats of a node; at most a third of `pgbeat_dead_after`, else lowered to that.",
    )
    dead_after: timedelta = _setting(
        timedelta(seconds=30),
        Span(timedelta(seconds=0.3), DAY),
        "Seconds without a heartbeat after which a node counts as dead and its running jobs as lost.",
    )
    retention: timedelta = _setting(
        timedelta(days=30), Span(DAY, 36_500 * DAY, unit="days"), "Days for which final jobs are kept."
    )
    keep_changes: timedelta = _setting(
        timedelta(days=365),
        Span(DAY, 36_500 * DAY, unit="days"),
        "Days for which is kept who changed what (see `changes`).",
    )
    auto_migrate: bool = _setting(True, _switch, "Whether a beat migrates the schema when it starts.")
    allowed_tasks: tuple[str, ...] = _setting(
        ("*",),
        _patterns,
        "Patterns of the task names that rows may use; a job of another task is neither sent nor started.",
    )
    allowed_queues: tuple[str, ...] = _setting(
        ("*",),
        _patterns,
        "Patterns of the queue names that rows may use; without `*` rows must not set an exchange or a routing key.",
    )
    pickup_deadline: timedelta | None = _setting(
        None,
        Span(timedelta(seconds=1), 366 * DAY, optional=True),
        "Seconds for which a message may wait for a worker; default twice the gap to the next run, from 15 minutes "
        "to 1 day.",
    )
    guard_error: str = _setting(
        "run", _guard_error, "What a worker does with a job while Postgres is out of reach: `run` or `refuse`."
    )
    min_interval: timedelta = _setting(
        timedelta(seconds=1),
        Span(timedelta(seconds=0.01), DAY),
        "The shortest interval that a row may have, in seconds.",
    )
    alert_after: timedelta | None = _setting(
        timedelta(minutes=5),
        Span(timedelta(seconds=1), 30 * DAY, off=True),
        "Seconds after which an overdue row raises an alert; `0` turns off all alerts, also those about dead beats.",
    )
    alert_webhook: str | None = _setting(
        None, _webhook, "A URL to which alerts are posted as JSON; only its host name is ever logged."
    )
    metrics_port: int | None = _setting(
        None, _port, "The port on which a beat serves metrics for Prometheus; without one it serves none."
    )
    metrics_host: str = _setting(
        "127.0.0.1",
        _text,
        "The address of that port; `0.0.0.0` for all addresses of the host, so that other hosts can read them.",
    )
    web_password: str | None = _setting(
        None,
        _password,
        "The password of the dashboard, for HTTP's Basic authentication with any user name; without one only this host "
        "may open it.",
    )
    shadow: bool = _setting(
        False,
        _switch,
        "Whether beats only record what they would send, beside another scheduler that sends; alike for all beats of a "
        "schema.",
    )
    opentelemetry: bool = _setting(
        False,
        _switch,
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
