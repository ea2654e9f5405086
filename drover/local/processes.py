"""Child JVMs as operating system processes: start detached, recognise, signal, reap.

A pid file identifies a child only together with its start time and the mark in its command line: after a reboot or a
wrap the pid may belong to another process, which `down` must never end.
"""

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

# Tolerance of start times: psutil derives them from the boot time, which moves a little when the clock is set.
START_TIME_TOLERANCE_S = 2.0


class ProcessState(StrEnum):
    """The state of a child process, according to the operating system."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Child:
    """A process that we started: its pid, its start time in seconds since the epoch, and the argument that marks it."""

    pid: int
    started_at_s: float
    mark: str


def spawn(arguments: Sequence[str], mark: str, environment: Mapping[str, str], log_file: Path, pid_file: Path) -> Child:
    """Start a program in its own session, append its output to `log_file`, and write `pid_file`.

    The program outlives this process and gets no Ctrl-C. `mark` must be one of the arguments.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawn(arguments[0], list(arguments), dict(environment), file_actions=actions, setsid=True)
    child = Child(pid, psutil.Process(pid).create_time(), mark)
    part = pid_file.with_suffix(".json.part")
    part.write_text(json.dumps({"pid": pid, "started_at_s": child.started_at_s}), encoding="utf-8")
    part.replace(pid_file)
    return child


def read_child(pid_file: Path, mark: str) -> Child | None:
    """Return the living process of a pid file; None if it is gone or its pid now belongs to another process."""
    try:
        content = json.loads(pid_file.read_text(encoding="utf-8"))
        child = Child(int(content["pid"]), float(content["started_at_s"]), mark)
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    return child if state_of(child) is not ProcessState.DEAD else None


def find_marked(mark: str) -> Iterator[Child]:
    """Yield every process of this machine with the mark, even if its pid file was never written."""
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline():
                yield Child(process.pid, process.create_time(), mark)
        except psutil.Error:
            continue  # it has just ended, or belongs to another user


def state_of(child: Child) -> ProcessState:
    """Return the current state of a process; reap it if it is our child and has ended."""
    try:
        process = psutil.Process(child.pid)
        if abs(process.create_time() - child.started_at_s) > START_TIME_TOLERANCE_S:
            return ProcessState.DEAD
        status = process.status()
        if status == psutil.STATUS_ZOMBIE:
            _reap(child.pid)
            return ProcessState.DEAD
        arguments = process.cmdline()  # empty for an instant after the start
        if arguments and child.mark not in arguments:
            return ProcessState.DEAD
    except psutil.ZombieProcess:
        # The process ended after its status was read.
        _reap(child.pid)
        return ProcessState.DEAD
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ProcessState.DEAD
    return ProcessState.PAUSED if status == psutil.STATUS_STOPPED else ProcessState.RUNNING


def send(child: Child, number: signal.Signals) -> None:
    """Send a signal to a process, if it is still the one that we started."""
    if state_of(child) is not ProcessState.DEAD:
        try:
            os.kill(child.pid, number)
        except ProcessLookupError:
            return  # the process has just ended; the caller waits for the state that it wants


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # not our child
