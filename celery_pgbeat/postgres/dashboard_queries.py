"""The statements of the dashboard, beside those of operators. They only read, and lock nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.api_queries import Row


class DashboardQueries(AdminQueries):
    """The statements of the dashboard, for one database."""

    def look_through(self, *, limit: int, most: int, after: str = "", **filters: Any) -> list[Row]:
        """Look through the next periodic tasks in name order, and read those that the caller looks for.

        Args:
            limit: the most rows to return.
            most: the most rows to look at.
            after: only names later than this.
            **filters: words (in the name), task, managed_by, group_name, state; None for any.
        """
        known = dict.fromkeys(("words", "task", "managed_by", "group_name", "state"))
        return self._run("look_through", limit=limit, most=most, after=after, **{**known, **filters})

    def look_ahead(
        self, *, limit: int, most: int, after: str = "", after_at: datetime | None = None, **filters: Any
    ) -> list[Row]:
        """Look through the next periodic tasks in the order of their next runs, as `look_through` does by name.

        Args:
            limit: the most rows to return.
            most: the most rows to look at.
            after: the last name of the page before.
            after_at: the next run of that one; None for the first page.
            **filters: words (in the name), task, managed_by, group_name; None for any.
        """
        known = dict.fromkeys(("words", "task", "managed_by", "group_name"))
        return self._run("look_ahead", limit=limit, most=most, after=after, after_at=after_at, **{**known, **filters})

    def looked_ahead_until(self, *, most: int, after: str = "", after_at: datetime | None = None) -> Row | None:
        """Return the last one that `look_ahead` has looked at; None if it has reached the last of them."""
        return next(iter(self._run("looked_ahead_until", most=most, after=after, after_at=after_at)), None)

    def looked_until(self, *, most: int, after: str = "", group_name: str | None = None) -> Row | None:
        """Return the last one that `look_through` has looked at; None if it has reached the end of the table."""
        return next(iter(self._run("looked_until", most=most, after=after, group_name=group_name)), None)

    def look_at(self, name: str) -> Row | None:
        """Read one periodic task without its arguments; None if there is none."""
        return next(iter(self._run("look_at", name=name)), None)

    def arguments_of(self, name: str) -> Row:
        """Read the arguments of one periodic task as JSON; None in place of those of a sensitive one."""
        return self._run("arguments_of", name=name)[0]

    def named_windows(self, names: list[str]) -> str:
        """Read the blackout windows of these names, as JSON."""
        return str(self._run("named_windows", names=names)[0]["windows"])

    def recent_minutes(self, minutes: int, most: int) -> list[Row]:
        """Read what was made in each of the last minutes, of each minute at most so many jobs."""
        return self._run("recent_minutes", minutes=minutes, most=most)

    def soonest(self, after_at: datetime, limit: int) -> list[Row]:
        """Read some of the runs that are next after an instant, the soonest first."""
        return self._run("soonest", after_at=after_at, limit=limit)

    def lanes(self, names: list[str], since: datetime, most: int) -> list[Row]:
        """Read what each of these periodic tasks did since an instant, of each at most so many jobs."""
        return self._run("lanes", names=names, since=since, most=most)

    def planned_minutes(self, until: datetime, most: int) -> list[Row]:
        """Read how many periodic tasks have their next run in each of the coming minutes."""
        return self._run("planned_minutes", until=until, most=most)

    def alerts(self, limit: int) -> list[Row]:
        """Read the alerts that are not over, the oldest first."""
        return self._run("alerts", limit=limit)

    def open_work(self, limit: int) -> list[Row]:
        """Read the tasks for people that are not over, of all persons."""
        return self._run("open_work", limit=limit)

    def neighbours(self, name: str, most: int) -> list[Row]:
        """Read the names of the periodic tasks directly before and after one."""
        return self._run("neighbours", name=name, most=most)

    def groups(self) -> list[Row]:
        """Read the groups with the number of their rows and jobs."""
        return self._run("groups")

    def job(self, id: str) -> Row | None:
        """Read one job; None if there is none."""
        return next(iter(self._run("job", id=id)), None)

    def unknown(self, name: str) -> str:
        """Return a sentence: there is no periodic task of this name, and why, or which one may have been meant."""
        return self._api.unknown(name)
