"""Suggests a group in the place of an unknown one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from celery_pgbeat.cli.target import Target
from celery_pgbeat.errors import UnknownGroup
from celery_pgbeat.suggestions import did_you_mean


@contextmanager
def suggesting_groups(name: str) -> Iterator[None]:
    """Add the question which group was meant to the error that there is none of this name."""
    try:
        yield
    except UnknownGroup as error:
        hint = did_you_mean(name, [group.name for group in Target.current().beat().groups()])
        raise UnknownGroup(f"{str(error).removesuffix('.')}{hint}" if hint else str(error)) from None
