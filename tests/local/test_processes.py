"""Child processes: detached, recognised by pid, start time and mark, reaped, and never mistaken for a foreign one."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from drover.local.deadline import wait_until
from drover.local.layout import Layout, new_spec, write_spec
from drover.local.nodes import Nodes
from drover.local.processes import Child, ProcessState, find_marked, read_child, send, spawn, state_of
from drover.local.programs import mark

SLEEPER = "import sys, time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def own_mark(tmp_path: Path) -> str:
    return f"-Ddrover.local={tmp_path}"


@pytest.fixture
def child(tmp_path: Path, own_mark: str) -> Iterator[Child]:
    started = spawn_sleeper(tmp_path, own_mark)
    yield started
    send(started, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(started.pid)] if psutil.pid_exists(started.pid) else [], timeout=10)


def spawn_sleeper(directory: Path, own_mark: str) -> Child:
    command = [sys.executable, "-c", SLEEPER, own_mark]
    return spawn(command, own_mark, os.environ, directory / "log", directory / "process.json")


async def wait_for(child: Child, state: ProcessState) -> None:
    await wait_until(lambda: state_of(child) is state, what=f"{state}")


async def test_a_child_has_its_own_session_and_writes_to_its_log(child: Child, tmp_path: Path) -> None:
    assert os.getsid(child.pid) == child.pid
    await wait_until(lambda: (tmp_path / "log").read_text() == "ready\n", what="its output")


async def test_states_follow_the_signals_and_the_dead_are_reaped(child: Child) -> None:
    assert state_of(child) is ProcessState.RUNNING
    send(child, signal.SIGSTOP)
    await wait_for(child, ProcessState.PAUSED)
    send(child, signal.SIGCONT)
    await wait_for(child, ProcessState.RUNNING)
    send(child, signal.SIGKILL)
    await wait_for(child, ProcessState.DEAD)
    assert not psutil.pid_exists(child.pid)


async def test_a_child_that_ends_while_it_is_looked_at_is_reaped(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """psutil raises `ZombieProcess` when it is asked for the command line of a process that has ended."""
    process = psutil.Process(child.pid)
    process.kill()
    await wait_until(lambda: process.status() == psutil.STATUS_ZOMBIE, what="its end")
    monkeypatch.setattr(psutil.Process, "status", lambda _: psutil.STATUS_RUNNING)
    assert state_of(child) is ProcessState.DEAD
    assert not psutil.pid_exists(child.pid)


async def test_a_pid_file_finds_the_child_until_it_is_dead(child: Child, tmp_path: Path, own_mark: str) -> None:
    assert read_child(tmp_path / "process.json", own_mark) == child
    send(child, signal.SIGKILL)
    await wait_for(child, ProcessState.DEAD)
    assert read_child(tmp_path / "process.json", own_mark) is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"pid": "x", "started_at_s": 1}'])
def test_a_damaged_pid_file_names_nobody(tmp_path: Path, own_mark: str, text: str) -> None:
    (tmp_path / "process.json").write_text(text)
    assert read_child(tmp_path / "process.json", own_mark) is None


async def test_a_child_without_a_pid_file_is_found_by_its_mark(child: Child, tmp_path: Path, own_mark: str) -> None:
    (tmp_path / "process.json").unlink()
    await wait_until(lambda: [each.pid for each in find_marked(own_mark)] == [child.pid], what="the mark")


async def test_a_process_with_another_start_time_is_never_ended(child: Child, tmp_path: Path) -> None:
    """The pid of a broker that died long ago was given to somebody else."""
    layout = cluster_whose_first_broker_is(tmp_path, child.pid, child.started_at_s - 60)
    await Nodes(layout).end_all(grace_s=0.1, wake_paused=True)
    assert state_of(child) is ProcessState.RUNNING


async def test_a_process_without_the_mark_is_never_ended(child: Child, tmp_path: Path) -> None:
    """Pid and start time match by bad luck, the command line tells."""
    await wait_until(lambda: (tmp_path / "log").read_text() == "ready\n", what="its output")
    layout = cluster_whose_first_broker_is(tmp_path, child.pid, child.started_at_s)
    await Nodes(layout).end_all(grace_s=0.1, wake_paused=True)
    assert state_of(child) is ProcessState.RUNNING


async def test_a_paused_child_and_one_without_a_pid_file_are_ended(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "cluster")
    layout.directory.mkdir()
    children = [spawn_sleeper(layout.directory, mark(layout)) for _ in range(2)]
    send(children[0], signal.SIGSTOP)
    await wait_for(children[0], ProcessState.PAUSED)
    nodes = Nodes(layout)
    await wait_until(lambda: len(nodes.all()) == 2, what="both are found")
    await nodes.end_all(grace_s=0.1, wake_paused=False)
    assert [state_of(each) for each in children] == [ProcessState.DEAD] * 2
    assert nodes.all() == ()


def cluster_whose_first_broker_is(tmp_path: Path, pid: int, started_at_s: float) -> Layout:
    layout = Layout(tmp_path / "cluster")
    write_spec(layout, new_spec(3, 3, (21001, 21002, 21003, 21004, 21005)))
    layout.node("1").mkdir(parents=True)
    layout.pid_file("1").write_text(json.dumps({"pid": pid, "started_at_s": started_at_s}))
    return layout
