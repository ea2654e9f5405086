"""A command in a child of the forkserver does what it does in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from drover.local import wait_until
from tests.architecture.repository import ROOT
from tests.commands import Finished, Running, run_drover, start_drover

SETTINGS = {"NO_COLOR": "1", "COLUMNS": "200"}


async def as_a_user_does(arguments: tuple[str, ...], settings: dict[str, str], stdin: str | None) -> Finished:
    done = await asyncio.to_thread(
        subprocess.run, (sys.executable, "-m", "drover", *arguments), input=stdin, capture_output=True, text=True,
        cwd=ROOT, env={**os.environ, **settings}, check=False,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("--version",), None),
        (("status", "--nonsense"), None),
        (("schema",), None),
        (("status", "-o", "json"), None),
        (("alter", "-", "--plan", "p", "--reason", "a test"), "no plan"),
    ],
)
async def test_a_command_of_the_stories_does_what_it_does_for_a_user(
    arguments: tuple[str, ...], stdin: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "drover.toml"
    file.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.one]\nbootstrap = "127.0.0.1:1"\n')
    settings = SETTINGS | {"DROVER_CONFIG": str(file)}
    assert await run_drover(arguments, settings, stdin) == await as_a_user_does(arguments, settings, stdin)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)]
)
@pytest.mark.parametrize(
    ("arguments", "begins"), [(("worker", "--name", "a"), b"looking for the log"), (("project",), b"projecting")]
)
async def test_a_signal_ends_what_looks_for_its_servers_in_the_stories_as_for_a_user(
    number: signal.Signals, code: int, arguments: tuple[str, ...], begins: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "drover.toml"
    nowhere = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.one]\nbootstrap = "127.0.0.1:1"\n'
    file.write_text(f'{nowhere}[zookeeper]\nhosts = "127.0.0.1:1"\nallow_open_zookeeper = true\n')
    settings = SETTINGS | {"DROVER_CONFIG": str(file)}
    arguments = (*arguments, "--listen", "127.0.0.1:0")
    theirs, ours = tmp_path / "theirs.log", tmp_path / "ours.log"
    with theirs.open("wb") as log:
        users = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drover", *arguments), cwd=ROOT, env={**os.environ, **settings},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    # One after the other: the first forked command may wait for all imports, while the other one gives up.
    assert await _code_after(number, users, theirs, begins) == code
    assert await _code_after(number, start_drover(arguments, settings, ours), ours, begins) == code


async def _code_after(number: signal.Signals, process: Process | Running, log: Path, begins: bytes) -> int:
    """Send a signal to a process that has begun, and return its code, which is another one if it gives up by itself."""
    try:
        await wait_until(lambda: begins in log.read_bytes(), what="it begins")
        process.send_signal(number)
        async with asyncio.timeout(60):
            return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
