"""The command `web`: a real process at its own port."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.cli.web import listening
from celery_pgbeat.embedded import Process
from tests.harness.session import Session
from tests.harness.wait import eventually

PASSWORD = "correct horse"


def started(folder: Path, database: str, *words: str, password: str | None = None) -> tuple[Process, str, Path]:
    """Start the command; return it, the address that it prints, and its log."""
    log = folder / "web.log"
    environment = {**os.environ, "PGBEAT_URL": database}
    environment |= {} if password is None else {"PGBEAT_WEB_PASSWORD": password}
    command = [sys.executable, "-u", "-c", "from celery_pgbeat.cli import main; main()", "web", "--port", "0", *words]
    process = Process(command, log=log, env=environment, cwd=folder)
    found = eventually(lambda: re.search(r"http://\S+", log.read_text() if log.exists() else ""), 30, "no address")
    return process, found[0], log


def test_it_serves_the_dashboard_until_it_is_asked_to_end(tmp_path: Path, migrated_database: str) -> None:
    Session(migrated_database).insert("nightly", schedule="every 1h")
    process, address, log = started(tmp_path, migrated_database)
    try:
        page = httpx2.get(f"{address}tasks")
        with httpx2.stream("GET", f"{address}events") as stream:
            assert "retry: 3000" == next(stream.iter_lines())
            process.signal(signal.SIGINT)
            process.wait(20)
    finally:
        process.close()

    assert (200, True) == (page.status_code, "nightly" in page.text)
    assert "server" not in page.headers
    assert "Traceback" not in log.read_text()


def test_an_answer_is_not_kept_back_until_its_first_part_is_acknowledged() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_with_a_password_it_asks_for_it_and_below_a_prefix_all_links_are(
    tmp_path: Path, migrated_database: str
) -> None:
    process, address, log = started(tmp_path, migrated_database, "--prefix", "/ops", password=PASSWORD)
    try:
        port = int(re.findall(r":(\d+)/", address)[0])
        refused = httpx2.get(f"http://127.0.0.1:{port}/tasks")
        page = httpx2.get(f"http://127.0.0.1:{port}/tasks", auth=("anna", PASSWORD))
        below = httpx2.get(f"http://127.0.0.1:{port}/ops/tasks", auth=("anna", PASSWORD))
    finally:
        process.close()

    assert (401, 200, 200) == (refused.status_code, page.status_code, below.status_code)
    assert 'href="/ops/jobs"' in page.text
    assert PASSWORD not in log.read_text()


@pytest.mark.parametrize("allowed", [True, False])
def test_only_with_allow_changes_it_changes_something(tmp_path: Path, migrated_database: str, allowed: bool) -> None:
    session = Session(migrated_database)
    session.insert("nightly", schedule="every 1h")
    process, address, _ = started(tmp_path, migrated_database, *(["--allow-changes"] if allowed else []))
    try:
        with httpx2.Client(headers={"Origin": address.rstrip("/")}) as client:
            form = client.get(f"{address}pause?name=nightly")
            token = re.findall(r'name="token" value="(\w+)"', form.text)
            answer = client.post(f"{address}pause?name=nightly", data={"token": "".join(token), "step": "do"})
    finally:
        process.close()

    assert (200, 303) == (form.status_code, answer.status_code) if allowed else (403, 403)
    assert allowed is not session.task("nightly")["enabled"]


def run(*words: str, **environment: str) -> tuple[int, str]:
    """Run the command; it must not begin to serve."""
    given = {"PGBEAT_URL": "postgresql://127.0.0.1:1/x", "PGBEAT_WEB_PASSWORD": "", **environment}
    result = CliRunner().invoke(main, ["web", *words], env=given)
    return result.exit_code, result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "shop.example"])
def test_another_address_than_this_host_is_refused_without_a_password(host: str) -> None:
    code, said = run("--host", host)

    assert 2 == code
    assert f"--host {host} lets others in, and there is no password: set pgbeat_web_password" in " ".join(said.split())


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = run("--port", str(taken.getsockname()[1]))

    assert 1 == code
    assert "of 127.0.0.1 cannot be taken: Address already in use" in said


def test_wrong_words_and_settings_are_wrong_usage() -> None:
    assert (2, True) == ((told := run("--prefix", "ops"))[0], "does not begin with a slash" in told[1])
    assert (2, True) == ((told := run(PGBEAT_URL=""))[0], "pgbeat_url is not set" in told[1])
    assert (2, True) == ((told := run(PGBEAT_WEB_PASSWORD="hush"))[0], "pgbeat_web_password has 4" in told[1])
