"""Reads RedBeat's keys in Redis: the sorted set of its entries, their hashes, and the set of those from code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from celery_pgbeat.errors import InvalidSource, MissingExtra
from celery_pgbeat.texts.redaction import ENCODED, is_misread
from celery_pgbeat.texts.safe_text import one_line

PAGE = 500  # hashes that are read in one round trip
TIMEOUT = 5  # seconds until a Redis that does not answer is given up


@dataclass(frozen=True, slots=True)
class Hash:
    """An entry as it is stored: JSON texts; None for what is missing."""

    name: str
    definition: str | None
    meta: str | None
    of_code: bool


def hashes(url: str, prefix: str) -> Iterator[Hash]:
    """Iterate over the entries in name order.

    Raises:
        InvalidSource: the URL is none, or Redis cannot be read.
        MissingExtra: the client is not installed.
    """
    try:
        import redis
    except ImportError:
        raise MissingExtra("RedBeat's keys are read with redis: pip install 'celery-pgbeat[redis]'") from None
    if is_misread(url):
        raise InvalidSource(f"the source is not a Redis URL: {ENCODED}")
    try:
        client = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
        )
    except ValueError:
        raise InvalidSource("the source is not a Redis URL; write it as redis://:password@host:6379/0") from None
    with closing(client):
        try:
            yield from _read(client, prefix)
        except (redis.RedisError, UnicodeError) as error:
            raise InvalidSource(f"Redis cannot be read: {one_line(str(error))}") from error


def _read(client: Any, prefix: str) -> Iterator[Hash]:
    of_code = client.smembers(f"{prefix}:statics")
    keys = sorted(client.zrange(f"{prefix}:schedule", 0, -1))
    if not keys:
        raise InvalidSource(
            f"there is no key {prefix + ':schedule'!r} with entries: give --key-prefix, or the database"
        )
    for at in range(0, len(keys), PAGE):
        with client.pipeline(transaction=False) as pipe:
            for key in keys[at : at + PAGE]:
                pipe.hmget(key, "definition", "meta")
            found = pipe.execute()
        for key, (definition, meta) in zip(keys[at : at + PAGE], found, strict=True):
            name = key.removeprefix(prefix)
            yield Hash(name, definition, meta, name in of_code)
