"""Private servers from wheels, for the demo, the tests and the benchmarks.

It starts and stops a Postgres and a Redis-compatible server that belong to this process alone, as root and as an
ordinary user, on Linux and macOS. It writes nothing outside the server's own temporary folder, and no beat or worker
needs it. The invariant: when the process that started a server has ended, however it ended, the server ends too.

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
