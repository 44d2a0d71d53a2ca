"""Private servers from wheels, for the demo, the tests and the benchmarks.

What it is for: starting and stopping a Postgres and a Redis-compatible server that belong to this process alone,
as root and as an ordinary user, on Linux and macOS. What it may not do: touch anything outside the server's own
temporary folder, or be needed by a beat or a worker. The invariant: when the process that started a server is gone,
however it went, the server goes too.

Example:
    >>> from celery_pgbeat.embedded import Postgres
    >>> with Postgres(durable=False) as postgres:  # doctest: +SKIP
    ...     postgres.create_database("shop")
    'postgresql://postgres:3q2-fG...@127.0.0.1:17431/shop'
"""

from celery_pgbeat.embedded.errors import ServerUnavailable
from celery_pgbeat.embedded.postgres import Postgres
from celery_pgbeat.embedded.process import Process
from celery_pgbeat.embedded.server import Server
from celery_pgbeat.embedded.valkey import Valkey

__all__ = ["Postgres", "Process", "Server", "ServerUnavailable", "Valkey"]
