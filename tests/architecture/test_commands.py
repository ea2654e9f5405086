"""A command in a child of the forkserver does what it does in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from drover.local import wait_until
from tests.architecture.repository import ROOT
from tests.commands import Finished, run_drover, start_drover

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
async def test_a_worker_of_the_stories_ends_by_a_signal_as_a_users_does(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    file = tmp_path / "drover.toml"
    file.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.one]\nbootstrap = "127.0.0.1:1"\n')
    settings = SETTINGS | {"DROVER_CONFIG": str(file)}
    arguments = ("worker", "--name", "a", "--listen", "127.0.0.1:0")
    theirs, ours = tmp_path / "theirs.log", tmp_path / "ours.log"
    with theirs.open("wb") as log:
        users = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drover", *arguments), cwd=ROOT, env={**os.environ, **settings},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    forked = start_drover(arguments, settings, ours)
    try:
        for said in (theirs, ours):
            await wait_until(partial(_says, said, b"looking for the log"), what="it begins")
        for process in (users, forked):
            process.send_signal(number)
        # Less than the ten seconds after which a log that nobody serves is given up.
        async with asyncio.timeout(8):
            assert await forked.wait() == await users.wait() == code
    finally:
        for process in (users, forked):
            if process.returncode is None:
                process.kill()


def _says(log: Path, words: bytes) -> bool:
    return words in log.read_bytes()
