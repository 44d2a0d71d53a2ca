"""Starts Celery processes by fork from one that has imported Celery, its transports and this package.

The imports of a beat take half a second of a fast processor, and most tests of real processes start several. A forked
one runs Celery's own command line in its own folder and environment, as `python -m celery` would. Two things
differ: its command line in `ps`, and that a module which it never uses may be imported.

    test ──socket──► server ──fork──► watchdog ──fork──► celery
         ──────── stdin, stdout pipes ──►

The server ends when the test process has ended, and the watchdogs as `celery_pgbeat/embedded/watchdog.py` says.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from celery_pgbeat.embedded import Process, watchdog

ROOT = Path(__file__).parents[2]
CELERY = [sys.executable, "-m", "celery"]
# Without `celery_pgbeat.worker`: it is the app's choice whether a worker imports that, and has an effect.
PRELOADED = (
    "celery.__main__",
    "celery.app.builtins",
    "celery.app.log",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.backends.redis",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.concurrency.solo",
    "celery.concurrency.thread",
    "celery.events.snapshot",
    "celery.worker.consumer",
    "celery.worker.worker",
    "celery_pgbeat.beat.scheduler",
    "celery_pgbeat.beat.wiring",
    "celery_pgbeat.postgres.worker_queries",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "sqlalchemy.dialects.postgresql.psycopg2",
    "tests.harness.faults",
    "tests.harness.probe",
)
# Read by the interpreter or the linker as a program starts: a process that needs another value of them is no fork.
READ_AT_START = ("PYTHON", "LD_", "DYLD_", "MALLOC_")
LENGTH = struct.Struct("!Q")


class ForkedProcess(Process):
    """A `celery` whose watchdog the server has forked."""

    def _start_watchdog(self, arguments: list[str], env: dict[str, str] | None, cwd: Path | None) -> _ForkedWatchdog:
        return _server().fork({"arguments": arguments, "env": env, "cwd": str(cwd)})


def is_forkable(command: list[str], env: dict[str, str]) -> bool:
    """Tell whether a fork of the server can become this command in this environment.

    Not the pools that patch Python's library before anything is imported.
    """
    if command[: len(CELERY)] != CELERY or {"gevent", "eventlet"} & set(command):
        return False
    names = {name for name in (*env, *_server_environment()) if name.startswith(READ_AT_START)}
    return all(env.get(name) == _server_environment().get(name) for name in names)


class _ForkedWatchdog:
    """What `Process` needs of a watchdog that is not a child of this process."""

    returncode: int | None = None

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.stdin = stdin
        self.stdout = stdout

    def wait(self, timeout: float | None = None) -> int:
        """Wait until its end of the pipe is closed: nothing that it has started has inherited that."""
        os.set_blocking(self.stdout.fileno(), True)
        while self.stdout.read():
            pass
        self.returncode = 0
        return 0


class _Server:
    """The server, as the process that uses it sees it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_server_environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        atexit.register(self._end)

    def fork(self, request: dict[str, Any]) -> _ForkedWatchdog:
        """Have it fork a watchdog."""
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        body = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [LENGTH.pack(len(body))], [read_in, write_out])
            self._socket.sendall(body)
        os.close(read_in)
        os.close(write_out)
        return _ForkedWatchdog(open(write_in, "wb"), open(read_out, "rb"))

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


@lru_cache(maxsize=1)
def _server_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@lru_cache(maxsize=1)
def _server() -> _Server:
    return _Server()


def _serve(requests: socket.socket) -> None:
    """Fork a watchdog for each request, until the other end is closed."""
    while True:
        head, pipes, _, _ = socket.recv_fds(requests, LENGTH.size, 2)
        if not head:
            return
        body = requests.recv(LENGTH.unpack(head)[0], socket.MSG_WAITALL)
        if os.fork() == 0:
            requests.close()
            _watch(json.loads(body), *pipes)
        for pipe in pipes:
            os.close(pipe)


def _watch(request: dict[str, Any], stdin: int, stdout: int) -> None:
    """Be the watchdog of one process, and end with it."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.closerange(3, max(stdin, stdout) + 1)

        def become(command: list[str]) -> None:
            _run(command[len(CELERY) :], request["env"], request["cwd"])

        watchdog.main(*request["arguments"], become=become)
        status = 0
    finally:
        os._exit(status)


def _run(arguments: list[str], env: dict[str, str], cwd: str) -> None:
    """Be `python -m celery` with these arguments."""
    os.closerange(3, 256)  # those of the watchdog
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number, name in enumerate(("stdout", "stderr"), 1):
        stream = io.TextIOWrapper(io.FileIO(number, "wb", closefd=False), write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(cwd)
    sys.path[0] = cwd
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    main = sys.modules["__main__"] = sys.modules["celery.__main__"]
    sys.argv = [str(main.__file__), *arguments]
    status: Any = 0
    try:
        main.main()
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the watchdogs
    for module in PRELOADED:
        importlib.import_module(module)
    gc.freeze()  # else the first collection in each fork writes to, and so copies, the pages of all that is imported
    _serve(socket.socket(fileno=int(sys.argv[1])))
