"""The demo that is told to stop leaves no process of its own."""

import asyncio
import io
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from drover.cli import local
from drover.cli.local import Stage, Worker, _workers
from drover.cli.main import cli


class Process:
    """A process of the demo that runs until it is ended; `communicate` is where the stop comes."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.ended_by: list[str] = []

    async def communicate(self) -> tuple[bytes, bytes]:
        raise asyncio.CancelledError

    def terminate(self) -> None:
        self.ended_by.append("terminate")

    def kill(self) -> None:
        self.ended_by.append("kill")

    async def wait(self) -> int:
        assert self.ended_by, "nobody would end it"
        self.returncode = -15
        return self.returncode


class Stopped(Stage):
    """A stage whose demo is stopped while its second worker is being started."""

    def __init__(self, process: Process) -> None:
        super().__init__(Console(file=io.StringIO()), Path(), Path("drover.toml"))
        self.process: Any = process

    async def start_worker(self, name: str) -> Worker:
        if name != "worker-1":
            raise asyncio.CancelledError
        return Worker(name, self.process)

    async def _start(self, _arguments: tuple[str, ...], _output: int) -> Any:
        return self.process


async def test_a_stop_between_the_starts_of_two_workers_ends_the_first() -> None:
    process = Process()
    with pytest.raises(asyncio.CancelledError):
        async with _workers(Stopped(process)):
            pytest.fail("the second worker was not started")
    assert (process.ended_by, process.returncode) == (["terminate"], -15)


async def test_a_stop_ends_the_command_that_the_demo_waits_for() -> None:
    process = Process()
    with pytest.raises(asyncio.CancelledError):
        await Stopped(process).run("local", "seed", "orders")
    assert (process.ended_by, process.returncode) == (["kill"], -15)


def test_a_demo_that_is_told_to_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM had the exit code of a failure, and click's "Aborted!"."""

    async def play(**_options: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(local, "prepare", lambda: None)
    monkeypatch.setattr(local, "_play", play)
    done = CliRunner().invoke(cli, ["demo"], prog_name="drover")
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
