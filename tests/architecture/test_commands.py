"""A command in a child of the forkserver does what it does in a process of its own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.commands import Finished, run_drover

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
