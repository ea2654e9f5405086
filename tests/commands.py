"""Run `drover` in processes that have imported it already.

Importing what it needs takes a command a third of a second of processor time and a worker eight tenths, and the live
stories run hundreds. Here a process of the standard library's forkserver imports all commands once, and each command is
a child of it: its own process, with its own files and environment, that ends with the command's code. What takes part
in no story (the README's tour, the storm, whoever is killed at a point in its code) is started as users start it.
"""

import asyncio
import multiprocessing
import os
import pkgutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

import drover.cli
from drover.cli.main import main
from drover.testing.commands import Finished
from tests.architecture.repository import ROOT
from tests.memory import memory_directory

# What commands import when they run, and not with their modules.
LATER = (
    *("drover.cluster.kafka", "drover.client.client", "drover.journal.topics", "drover.agents.wiring"),
    *("rich.live", "rich.table", "yaml"),
)
INPUT, OUTPUT, ERRORS = "input", "output", "errors"

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [*(module.name for module in pkgutil.iter_modules(drover.cli.__path__, "drover.cli.")), *LATER]
)


class Forked:
    """A command that runs until it is told to stop, in a child of the forkserver."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode


class ForkedCommands:
    """Runs `drover` in children of the forkserver; see `drover.testing.commands.Commands`."""

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Start a command that runs until it is told to stop; `log` takes both of its outputs."""
        log.touch()
        files = (Path(os.devnull), log, log)
        # A daemon is ended with this process if nobody has ended it.
        process = CONTEXT.Process(target=_be_drover, args=(tuple(arguments), dict(environment), files), daemon=True)
        process.start()
        return Forked(process)

    async def run(self, arguments: Sequence[str], environment: Mapping[str, str], stdin: str) -> Finished:
        """Run a command to its end."""
        return await asyncio.to_thread(_run, tuple(arguments), dict(environment), stdin)


def start_forkserver() -> None:
    """Start the process whose children the commands are; else the first command does."""
    forkserver.ensure_running()


def _run(arguments: tuple[str, ...], environment: Mapping[str, str], stdin: str) -> Finished:
    with tempfile.TemporaryDirectory(dir=memory_directory(), prefix="drover-command-") as directory:
        place = Path(directory)
        (place / INPUT).write_text(stdin, encoding="utf-8")
        files = (place / INPUT, place / OUTPUT, place / ERRORS)
        process = CONTEXT.Process(target=_be_drover, args=(arguments, environment, files))
        process.start()
        process.join()
        assert process.exitcode is not None
        output, errors = ((place / name).read_text(encoding="utf-8") for name in (OUTPUT, ERRORS))
        return Finished(process.exitcode, output, errors)


def _be_drover(arguments: tuple[str, ...], environment: Mapping[str, str], files: tuple[Path, Path, Path]) -> None:
    """Become the command, in a child of the forkserver."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    os.dup2(os.open(files[0], os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(os.open(files[number], os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = ["drover", *arguments]
    main()
