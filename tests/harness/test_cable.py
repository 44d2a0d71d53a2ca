"""The cable passes everything on; cut, it holds everything back without a word; mended, it delivers that late."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg2
import pytest
import redis

from tests.harness.cable import Cable
from tests.harness.wait import eventually


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that sends everything back, until its clients end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        yield f"echo://127.0.0.1:{listener.getsockname()[1]}"


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_echo, args=(client,), daemon=True).start()


def _echo(client: socket.socket) -> None:
    with client:
        while data := client.recv(65_536):
            client.sendall(data)


def call(cable: Cable) -> socket.socket:
    target = urlsplit(cable.url)
    return socket.create_connection((target.hostname, target.port), timeout=5)


def received(client: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        found += client.recv(count - len(found))
    return found


def test_bytes_pass_both_ways_and_so_does_the_end_of_a_connection(echo: str) -> None:
    much = bytes(range(256)) * 20_000
    with Cable(echo) as cable, call(cable) as one, call(cable) as other:
        sender = threading.Thread(target=one.sendall, args=(much,))
        sender.start()
        other.sendall(b"x")
        assert b"x" == received(other, 1)
        assert much == received(one, len(much))
        sender.join()
        one.shutdown(socket.SHUT_WR)
        assert b"" == one.recv(1)


def test_a_cable_with_a_delay_delivers_everything_in_order_and_that_late(echo: str) -> None:
    with Cable(echo, delay=0.15) as cable, call(cable) as client:
        begun = time.monotonic()
        client.sendall(b"first")
        time.sleep(0.1)
        client.sendall(b"second")
        assert b"first" == received(client, 5)
        assert 0.3 <= time.monotonic() - begun < 2
        assert b"second" == received(client, 6)
        assert 0.4 <= time.monotonic() - begun < 2
        client.sendall(b"last")
        client.shutdown(socket.SHUT_WR)
        assert b"last" == received(client, 4)
        assert b"" == client.recv(1)


def test_a_cut_cable_delivers_nothing_until_it_is_mended(echo: str) -> None:
    with Cable(echo) as cable, call(cable) as client:
        client.sendall(b"before")
        assert b"before" == received(client, 6)
        cable.cut()
        client.sendall(b"first")
        eventually(lambda: cable.received_since(0) == b"first", 5, "the bytes of the client")
        between = time.monotonic()
        client.sendall(b"second")
        eventually(lambda: cable.received_since(between) == b"second", 5, "its later bytes")
        with call(cable) as new:
            new.sendall(b"new")
            new.settimeout(0.3)
            with pytest.raises(TimeoutError):
                new.recv(1)
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        cable.mend()
        client.settimeout(5)
        assert b"firstsecond" == received(client, 11)


def test_bytes_of_a_client_that_closed_meanwhile_are_delivered_too(echo: str, redis_url: str) -> None:
    with Cable(redis_url) as cable, redis.Redis.from_url(redis_url) as direct:
        with redis.Redis.from_url(cable.url, socket_timeout=0.3, retry=None) as client:
            client.ping()
            cable.cut()
            with pytest.raises(redis.TimeoutError):
                client.lpush("list", "late")
        assert 0 == direct.llen("list")
        cable.mend()
        eventually(lambda: direct.llen("list") == 1, 5, "the late word")


def test_user_password_and_database_stay_in_the_url(database: str) -> None:
    with Cable(database) as cable:
        connection = psycopg2.connect(cable.url)
        assert database.rpartition("/")[2] == connection.info.dbname
        connection.close()
    with Cable("redis://me:word@127.0.0.1:6379/3") as cable:
        assert cable.url.startswith("redis://me:word@127.0.0.1:")
        assert cable.url.endswith("/3")
