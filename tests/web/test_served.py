"""The server of the command `web` under attack, by real connections: guesses of its password, and half requests."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from celery_pgbeat.web.connection import HEAD
from celery_pgbeat.web.password import GUESS, MOST_WAITING
from tests.harness.wait import eventually
from tests.web.test_access import PASSWORD, basic
from tests.web.test_command import started

FILE = "/static/pgbeat.css"  # needs no database
FILES = 256


class Server:
    """The dashboard behind a password, at a port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, password: str, method: str = "GET", body: str = "") -> socket.socket:
        """Send a request, and do not wait for the answer."""
        connection = self.connect()
        header = basic(password)["Authorization"]
        head = f"{method} {FILE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {header}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return connection

    def status(self, password: str, **others: str) -> int:
        """Send a request; return the status of the answer."""
        return answer_of(self.ask(password, **others))


def answer_of(connection: socket.socket) -> int:
    with closing(connection):
        return int(connection.recv(12).split()[1])


def timed_answer(connection: socket.socket) -> tuple[int, float]:
    return answer_of(connection), time.monotonic()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, limit[1]))
    try:
        process, address, log = started(tmp_path, "postgresql://127.0.0.1:1/x", password=PASSWORD)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    yield Server(int(address.rstrip("/").rpartition(":")[2]))
    process.close()
    assert "Traceback" not in log.read_text()


def test_of_many_guesses_at_once_the_right_one_is_not_known_by_its_quick_answer(server: Server) -> None:
    passwords = [PASSWORD if number == 15 else f"guess {number}" for number in range(60)]
    begun = time.monotonic()
    with ThreadPoolExecutor(len(passwords)) as attacker:
        asked = [attacker.submit(timed_answer, server.ask(password)) for password in passwords]
    answers = [one.result() for one in asked]

    statuses = [status for status, _ in answers]
    assert [401] * 15 + [200] + [401] * 4 == statuses[:MOST_WAITING]
    assert statuses.count(429) >= (len(passwords) - MOST_WAITING) / 2  # some come when the first have their answer
    assert answers[15][1] - begun >= 15 * GUESS


def test_a_person_who_has_given_the_password_once_waits_for_nobody(server: Server) -> None:
    assert 200 == server.status(PASSWORD)
    with ExitStack() as guesses:
        for number in range(60):
            guesses.enter_context(closing(server.ask(f"guess {number}")))

        begun = time.monotonic()
        assert 200 == server.status(PASSWORD)
        assert time.monotonic() - begun < GUESS * MOST_WAITING / 2


@pytest.mark.parametrize(("method", "body"), [("GET", ""), ("POST", "a=b")])
def test_a_person_who_mistypes_does_not_wait_for_those_who_have_gone(server: Server, method: str, body: str) -> None:
    for number in range(MOST_WAITING):
        server.ask(f"guess {number}", method=method, body=body).close()

    begun = time.monotonic()
    assert 401 == eventually(lambda: status if (status := server.status("mistyped")) != 429 else None, 10, "an answer")
    assert time.monotonic() - begun < GUESS * MOST_WAITING / 2


def test_a_guess_costs_its_time_though_its_client_hangs_up(server: Server) -> None:
    begun = time.monotonic()
    guess = server.ask("guess")
    with closing(server.ask("behind it")):
        time.sleep(GUESS / 4)  # the first is compared by now
        guess.close()

        assert 401 == server.status("the last")
    assert time.monotonic() - begun >= 3 * GUESS


def test_a_form_that_waited_for_its_password_arrives_whole(server: Server) -> None:
    with closing(server.ask("wrong")):
        assert 405 == server.status(PASSWORD, method="POST", body="a=b" * 1000)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_requests_do_not_keep_others_from_the_dashboard(server: Server, sent: bytes) -> None:
    with ExitStack() as attack:
        for _ in range(300):
            attack.enter_context(closing(server.connect())).sendall(sent)

        assert [200] * 5 == [server.status(PASSWORD) for _ in range(5)]


@pytest.mark.parametrize("before", ["", f"GET {FILE} HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_head_that_does_not_come_to_its_end_ends_the_connection(server: Server, before: str) -> None:
    with closing(server.connect()) as connection:
        connection.sendall(f"{before}GET / HTTP/1.1\r\nHost: ".encode())
        begun = time.monotonic()
        while time.monotonic() - begun < HEAD - 1:
            connection.sendall(b"a")
            time.sleep(HEAD / 20)
        while connection.recv(10_000):
            pass

    assert time.monotonic() - begun < HEAD + 3
