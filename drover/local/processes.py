"""Child JVMs as the operating system sees them: start detached, recognise, signal, reap. Knows nothing of Kafka.

A child is known by its pid file, which is trusted only if a process with this pid AND this start time AND this mark in
its command line lives: a pid is given to others after a reboot or a wrap, and `down` must never end a foreign process.
"""

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

# psutil derives start times from the boot time, which moves a little when the clock is set.
START_TIME_TOLERANCE_S = 2.0


class ProcessState(StrEnum):
    """What a child is doing, as far as the operating system can tell."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Child:
    """One process that we started: pid, start time in seconds since the epoch, the argument that marks it as ours."""

    pid: int
    started_at_s: float
    mark: str


def spawn(arguments: Sequence[str], mark: str, environment: Mapping[str, str], log_file: Path, pid_file: Path) -> Child:
    """Start a program in its own session, its output appended to `log_file`, and remember it in `pid_file`.

    It outlives this process and no Ctrl-C reaches it. `mark` must be one of the arguments.
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
    """Return the living process of a pid file; None when it is gone or the pid now belongs to somebody else."""
    try:
        content = json.loads(pid_file.read_text(encoding="utf-8"))
        child = Child(int(content["pid"]), float(content["started_at_s"]), mark)
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    return child if state_of(child) is not ProcessState.DEAD else None


def find_marked(mark: str) -> Iterator[Child]:
    """Yield every process of this machine that has the mark, also those whose pid file was never written."""
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline():
                yield Child(process.pid, process.create_time(), mark)
        except psutil.Error:
            continue  # ended meanwhile, or another user's


def state_of(child: Child) -> ProcessState:
    """Tell what the process does now; one that ended is reaped if it was ours to reap."""
    try:
        process = psutil.Process(child.pid)
        if abs(process.create_time() - child.started_at_s) > START_TIME_TOLERANCE_S:
            return ProcessState.DEAD
        status = process.status()
        if status == psutil.STATUS_ZOMBIE:
            _reap(child.pid)
            return ProcessState.DEAD
        arguments = process.cmdline()  # empty for an instant after the start, while the kernel still fills it in
        if arguments and child.mark not in arguments:
            return ProcessState.DEAD
    except psutil.ZombieProcess:
        # It ended after its status was read.
        _reap(child.pid)
        return ProcessState.DEAD
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ProcessState.DEAD
    return ProcessState.PAUSED if status == psutil.STATUS_STOPPED else ProcessState.RUNNING


def send(child: Child, number: signal.Signals) -> None:
    """Send a signal, if the process is still the one we started."""
    if state_of(child) is not ProcessState.DEAD:
        try:
            os.kill(child.pid, number)
        except ProcessLookupError:
            return  # ended between the look and the signal: what was wanted, or the caller's wait will tell


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another process started it
