"""The database of a command: from the options, from an app's configuration, or from the environment."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

import click

from celery_pgbeat.errors import InvalidSetting

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat
    from celery_pgbeat.postgres.admin_queries import AdminQueries


class Target:
    """The app and the database of the command line; they are loaded when a command first uses them."""

    KEY: ClassVar[str] = "celery_pgbeat.target"

    def __init__(self) -> None:
        self.url: str | None = None
        self.schema: str | None = None
        self.app_name: str | None = None  # of -A, as it was given to us
        self.celery_app: Any = None  # the one that `celery` has loaded
        self._app: Any = None
        self._beat: PgBeat | None = None

    @classmethod
    def of(cls, ctx: click.Context) -> Target:
        """Return the target of a command line, the same for each of its commands."""
        target = ctx.meta.setdefault(cls.KEY, cls())
        assert isinstance(target, Target)
        return target

    @classmethod
    def current(cls) -> Target:
        """Return the target of the command that runs."""
        return cls.of(click.get_current_context())

    @property
    def app(self) -> Any:
        """The Celery app; None if none was named.

        Raises:
            click.UsageError: it cannot be loaded.
        """
        if self._app is None:
            name = self._app_name()
            if self.app_name is None and self.celery_app is not None:
                self._app = self.celery_app
            elif name is not None:
                self._app = _load(name)
        return self._app

    @property
    def timezone(self) -> str:
        """The zone of clocks and instants without one: the app's; UTC without an app."""
        return self.app_timezone or "UTC"

    @property
    def app_timezone(self) -> str | None:
        """The zone that beats write into rows without one; None without an app, because then it is not known."""
        if self.app is None:
            return None
        from celery_pgbeat.declare import app_timezone

        return app_timezone(self.app)

    def beat(self) -> PgBeat:
        """Return the API on this database, always the same object; it is closed when the command ends."""
        if self._beat is None:
            from celery_pgbeat.api import PgBeat
            from celery_pgbeat.settings.environment import variable

            self._beat = PgBeat(self.app, self.url, self.schema)
            if who := variable("PGBEAT_WHO"):
                self._beat = self._beat.as_person(who)
            click.get_current_context().find_root().call_on_close(self.close)
        return self._beat

    def close(self) -> None:
        """Close the connections."""
        if self._beat is not None:
            self._beat.close()

    def operators(self) -> AdminQueries:
        """Return the operators' statements on this database."""
        from celery_pgbeat.postgres.admin_queries import AdminQueries

        return AdminQueries(self.beat().database, self.beat().person)

    def as_typed(self, message: str) -> str:
        """Return the message with each command in it as it has to be typed here.

        A `celery-pgbeat ...` gets the options given here, a `celery -A app ...` the name of the app.
        """
        app = self._app_name()
        if app is not None:
            message = message.replace("`celery -A app ", f"`celery -A {quote(app)} ")
        return message.replace("`celery-pgbeat ", f"`{self._program()} ")

    def _program(self) -> str:
        under_celery, app = self.celery_app is not None, self._app_name()
        words = ["celery" if under_celery else "celery-pgbeat"]
        if app is not None:
            words += ["-A", quote(app)]
        words += ["pgbeat"] if under_celery else []
        if self.url is not None:
            words += ["--url", quote(_without_password(self.url))]
        if self.schema is not None:
            words += ["--schema", quote(self.schema)]
        return " ".join(words)

    def _app_name(self) -> str | None:
        """Return the name of the app, as it was given to us or to `celery`."""
        if self.app_name is not None:
            return self.app_name
        of_celery = click.get_current_context().find_root().params.get("app")
        return of_celery if isinstance(of_celery, str) else None  # older versions of Celery keep the app itself there


def _load(name: str) -> Any:
    from celery.app.utils import find_app

    try:
        return find_app(name)
    except Exception as error:
        raise click.UsageError(f"The Celery app {name!r} cannot be loaded: {type(error).__name__}: {error}") from error


def _without_password(url: str) -> str:
    from celery_pgbeat.postgres.engine import masked, read_url

    try:
        return masked(read_url(url, "--url"))
    except InvalidSetting:
        return "..."
