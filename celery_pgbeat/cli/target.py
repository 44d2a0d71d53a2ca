"""The database of a command: from the options, from an app's configuration, or from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import click

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat
    from celery_pgbeat.postgres.admin_queries import AdminQueries


class Target:
    """The app and the database of the command line; they are loaded when a command first uses them."""

    KEY: ClassVar[str] = "celery_pgbeat.target"

    def __init__(
        self, url: str | None = None, schema: str | None = None, app: Any = None, app_name: str | None = None
    ) -> None:
        self._url = url
        self._schema = schema
        self._app = app
        self._app_name = app_name
        self._beat: PgBeat | None = None

    @classmethod
    def current(cls) -> Target:
        """Return the target of the command that runs."""
        target = click.get_current_context().meta[cls.KEY]
        assert isinstance(target, Target)
        return target

    @property
    def app(self) -> Any:
        """The Celery app; None if none was named.

        Raises:
            click.UsageError: it cannot be loaded.
        """
        if self._app is None and self._app_name is not None:
            from celery.app.utils import find_app

            try:
                self._app = find_app(self._app_name)
            except Exception as error:
                raise click.UsageError(
                    f"The Celery app {self._app_name!r} cannot be loaded: {type(error).__name__}: {error}"
                ) from error
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

            self._beat = PgBeat(self.app, self._url, self._schema)
            click.get_current_context().find_root().call_on_close(self._beat.close)
        return self._beat

    def operators(self) -> AdminQueries:
        """Return the operators' statements on this database."""
        from celery_pgbeat.postgres.admin_queries import AdminQueries

        return AdminQueries(self.beat().database)
