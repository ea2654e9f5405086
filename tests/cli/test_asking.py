"""Questions on a terminal: what Ctrl-C, Ctrl-D and no answer mean."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.architecture.repository import ROOT

# What would be asked of the log, and of a cluster, before the question.
SCRIPT = """
import fcntl, sys, termios
if sys.stdin is not None:
    # The terminal's keys make signals.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from drover.cli import cancel, recover, throttle
from drover.cli.main import main
from drover.cli.throttles import Throttles
from drover.client.views.found_throttles import FoundRates, Whose
from drover.journal import recovery
from drover.fold.log import Damage, ShardFold
from drover.state.cluster import ClusterState

async def folded(*_):
    fold = ShardFold(0, 1)
    fold.damage = Damage(3, "it is damaged")
    return fold

stray = FoundRates(broker=1, leader=5, follower=None, whose=Whose.STRAY, says="")
cancel.state_now = lambda *_: ClusterState("prod")
throttle.look_at_throttles = lambda *_: Throttles(None, (stray,), ())
recovery.folded_to_end = folded
main()
"""
COMMANDS = (
    ("cancel", "--all", "--rollback", "--reason", "x"),
    ("throttle", "restore", "--reason", "x"),
    ("recover", "0", "--after", "3"),
)
CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'


def answered(command: tuple[str, ...], directory: Path, key: bytes) -> tuple[int, str]:
    """Run a command on a terminal, press a key at its question, and return its exit code and all that it said."""
    config = directory / "drover.toml"
    config.write_text(CONFIG)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        (sys.executable, "-c", SCRIPT, "--config", str(config), *command), cwd=ROOT, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        os.close(theirs)
        said, is_pressed, deadline = b"", False, time.monotonic() + 30
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
            if not is_pressed and b"[y/N]" in said:
                # What comes before the line is read does not interrupt its reading.
                _until_it_reads(process.pid, deadline)
                os.write(ours, key)
                is_pressed = True
        os.close(ours)
        return process.wait(10), said.decode()


def _until_it_reads(pid: int, deadline: float) -> None:
    reading = psutil.Process(pid)
    while reading.status() != psutil.STATUS_SLEEPING:
        assert time.monotonic() < deadline, "the command does not wait for an answer"
        time.sleep(0.01)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_ctrl_c_at_a_question_is_an_interruption(command: tuple[str, ...], tmp_path: Path) -> None:
    code, said = answered(command, tmp_path, b"\x03")
    assert code == 130, said
    assert "Interrupted." in said
    assert "Aborted" not in said


@pytest.mark.parametrize(
    ("command", "key"), [(COMMANDS[0], b"\x04"), (COMMANDS[2], b"n\n")], ids=["ctrl-d", "n"]
)  # fmt: skip
def test_ctrl_d_at_a_question_is_a_no(command: tuple[str, ...], key: bytes, tmp_path: Path) -> None:
    code, said = answered(command, tmp_path, key)
    assert code == 2, said
    assert "Error: nothing was " in said
    assert "Aborted" not in said


@pytest.mark.parametrize("command", COMMANDS[:2], ids=lambda command: command[0])
def test_with_its_input_closed_a_command_cannot_ask_and_says_what_to_add(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text(CONFIG)
    done = subprocess.run(
        ("sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", SCRIPT, "--config", str(config), *command),
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "-y" in done.stderr
