"""The command `drover` in processes of its own: run to its end, or started and told to stop."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from drover.local.deadline import wait_until

DROVER = ("-m", "drover")
# The time that a process has to end.
END_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> Any:
        """Return its output with `-o json`, decoded."""
        assert self.output, f"exit code {self.code}: {self.errors}"
        return json.loads(self.output)


class Child(Protocol):
    """A process that was started, as `subprocess.Popen` shows it."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs; minus the signal that ended it."""
        ...


class Commands(Protocol):
    """How the command `drover` is run; `environment` is the whole one."""

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
        """Start a command whose output and errors are appended to a file."""
        ...

    async def run(self, arguments: Sequence[str], environment: Mapping[str, str], stdin: str) -> Finished:
        """Run a command to its end."""
        ...


class PythonCommands:
    """Runs `drover` as users do: each command in a Python of its own."""

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
        """See `Commands.start`."""
        return start_python((*DROVER, *arguments), environment, log)

    async def run(self, arguments: Sequence[str], environment: Mapping[str, str], stdin: str) -> Finished:
        """See `Commands.run`."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *DROVER, *arguments),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, errors = await process.communicate(stdin.encode())
        assert process.returncode is not None, "it has ended"
        return Finished(process.returncode, output.decode(), errors.decode())


def start_python(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a Python program whose output and errors are appended to a file."""
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - the caller's own program
            (sys.executable, *arguments), env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


class DroverProcess:
    """A command that runs until it is told to stop, such as a worker; `log` has the output of all its starts."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, commands: Commands) -> None:
        self.log = log
        self._arguments = tuple(arguments)
        self._environment = {**os.environ, **environment}
        self._commands = commands
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The id of the process that was started last."""
        assert self._child is not None, "it was started"
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; minus the number of the signal that ended it, and None while it runs."""
        return None if self._child is None else self._child.poll()

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self, program: Sequence[str] = DROVER) -> None:
        """Start it; `program` are the arguments of Python before its own, for another program than `drover`."""
        assert not self.is_running, f"{self._arguments} runs already"
        if tuple(program) == DROVER:
            self._child = self._commands.start(self._arguments, self._environment, self.log)
        else:
            self._child = start_python((*program, *self._arguments), self._environment, self.log)

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.is_running:
            os.kill(self.pid, number)

    async def wait(self, timeout_s: float = END_TIMEOUT_S) -> int:
        """Wait for its end, and return its exit code; `ClusterUnavailableError` when it is too late."""
        await wait_until(lambda: not self.is_running, what=f"the end of {self._arguments}", timeout_s=timeout_s)
        assert self.returncode is not None, "it has ended"
        return self.returncode

    async def kill(self) -> None:
        """End it at once (SIGKILL); returns when it is gone. Idempotent."""
        self.send_signal(signal.SIGKILL)
        if self._child is not None:
            await self.wait()

    async def stop(self) -> int:
        """Tell it to stop (SIGTERM), and return its exit code when it has."""
        self.send_signal(signal.SIGTERM)
        return await self.wait()

    async def restart(self) -> None:
        """Kill it and start it again."""
        await self.kill()
        self.start()

    def log_text(self) -> str:
        """Return its output so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""
