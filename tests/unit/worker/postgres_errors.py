"""Errors as SQLAlchemy shows them of a statement that Postgres refused."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

MISSING_FUNCTION, NO_RIGHT = "42883", "42501"
DAMAGED, DISK = "XX001", "58030"
NOT_NULL, BAD_VALUE = "23502", "22P02"


class DriverError(Exception):
    """What a driver raises."""

    def __init__(self, text: str, sqlstate: str) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


def refusal(code: str, text: str = "function pgbeat.finish_many does not exist") -> DBAPIError:
    """Return the error of a statement that was refused with this SQLSTATE."""
    return DBAPIError(None, None, DriverError(text, code))
