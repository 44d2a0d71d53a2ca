from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from celery_pgbeat.process import node
from celery_pgbeat.process.node import NodeId


def test_an_id_is_read_back_as_it_was_written() -> None:
    mine = NodeId.mine()

    assert mine == NodeId.parse(str(mine))


def test_two_ids_of_one_process_differ() -> None:
    assert NodeId.mine() != NodeId.mine()


def test_a_live_process_is_not_dead() -> None:
    assert not NodeId.mine().is_certainly_dead()


def test_an_ended_process_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    fields = replace(NodeId.mine(), pid=child.pid, started=started_of(child.pid))
    assert not fields.is_certainly_dead()
    child.communicate()

    assert fields.is_certainly_dead()


def test_a_live_process_that_proc_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `hidepid`, or ProtectProc=invisible of systemd, between two users or two user namespaces."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    hidden = replace(NodeId.mine(), pid=child.pid, started=started_of(child.pid))
    monkeypatch.setattr(node, "_stat", lambda pid: None)
    assert not hidden.is_certainly_dead()
    child.communicate()

    assert hidden.is_certainly_dead()


def test_a_live_process_of_another_user_that_proc_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    monkeypatch.setattr(node, "_stat", lambda pid: None)
    monkeypatch.setattr(os, "kill", refuse)

    assert not replace(NodeId.mine(), pid=1).is_certainly_dead()


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    fields = replace(NodeId.mine(), pid=child.pid, started=started_of(child.pid))
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not asked how

    assert fields.is_certainly_dead()
    child.wait()


def test_a_pid_that_was_given_out_again_is_another_process() -> None:
    assert replace(NodeId.mine(), started="1").is_certainly_dead()


def test_nothing_is_known_of_another_boot_or_another_container() -> None:
    gone = replace(NodeId.mine(), pid=2**22, started="1")

    assert gone.is_certainly_dead()
    assert not replace(gone, machine="another").is_certainly_dead()


@pytest.mark.parametrize("text", ["beat@host", "host:m:x:2:3", "host:m:²:2:3", "host:m:٣:2:3"])
def test_a_foreign_id_is_none(text: str) -> None:
    assert NodeId.parse(text) is None


def started_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[19]


def test_the_pid_in_the_id_is_this_process() -> None:
    assert os.getpid() == NodeId.mine().pid
