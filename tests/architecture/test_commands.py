"""A command in a child of the forkserver does what it does in a process of its own."""

import os
import signal
from pathlib import Path

import pytest

from drover.local import wait_until
from drover.testing.commands import Commands, DroverProcess, PythonCommands
from tests.commands import ForkedCommands

SETTINGS = {"NO_COLOR": "1", "COLUMNS": "200"}


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("--version",), ""),
        (("status", "--nonsense"), ""),
        (("schema",), ""),
        (("status", "-o", "json"), ""),
        (("alter", "-", "--plan", "p", "--reason", "a test"), "no plan"),
    ],
)
async def test_a_command_of_the_stories_does_what_it_does_for_a_user(
    arguments: tuple[str, ...], stdin: str, tmp_path: Path
) -> None:
    file = tmp_path / "drover.toml"
    file.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.one]\nbootstrap = "127.0.0.1:1"\n')
    environment = {**os.environ, **SETTINGS, "DROVER_CONFIG": str(file)}
    ours = await ForkedCommands().run(arguments, environment, stdin)
    assert ours == await PythonCommands().run(arguments, environment, stdin)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)]
)
@pytest.mark.parametrize(
    ("arguments", "begins"), [(("worker", "--name", "a"), "looking for the log"), (("zookeeper", "run"), "projecting")]
)
async def test_a_signal_ends_what_looks_for_its_servers_in_the_stories_as_for_a_user(
    number: signal.Signals, code: int, arguments: tuple[str, ...], begins: str, tmp_path: Path
) -> None:
    file = tmp_path / "drover.toml"
    nowhere = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.one]\nbootstrap = "127.0.0.1:1"\n'
    file.write_text(f'{nowhere}[zookeeper]\nhosts = "127.0.0.1:1"\nallow_open_zookeeper = true\n')
    arguments = (*arguments, "--listen", "127.0.0.1:0")
    commands: tuple[Commands, ...] = (PythonCommands(), ForkedCommands())
    # One after the other: the first forked command may wait for all imports, while the other one gives up.
    for kind in commands:
        log = tmp_path / f"{type(kind).__name__}.log"
        process = DroverProcess(arguments, SETTINGS | {"DROVER_CONFIG": str(file)}, log, kind)
        process.start()
        assert await _code_after(number, process, begins) == code


async def _code_after(number: signal.Signals, process: DroverProcess, begins: str) -> int:
    """Send a signal to a process that has begun, and return its code, which is another one if it gives up by itself."""
    try:
        await wait_until(lambda: begins in process.log_text(), what="it begins")
        process.send_signal(number)
        return await process.wait()
    finally:
        await process.kill()
