"""The plugin that stops processes finds a test that relies on one that never stands still."""

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT

# It passes on any quiet machine: what takes a tenth of a second has three. It ends as soon as it has failed.
RELIES_ON_A_PROCESS = """
import subprocess
import time

def test_a_process_says_something_every_three_seconds():
    command = ["sh", "-c", "while sleep 0.1; do echo here; done"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s:
            heard_s = time.monotonic()
            assert process.stdout.readline() == b"here\\n"
            assert time.monotonic() - heard_s < 3
"""
HAS_FAILED = 1


def test_a_process_that_must_never_stand_still_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_answers.py").write_text(RELIES_ON_A_PROCESS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.stalling", "-p", "no:cacheprovider", "test_answers.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "STALLING_EVERY_S": "1"}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == HAS_FAILED, done.stdout + done.stderr
    _, _, told = done.stdout.partition("what stood still")
    assert told.splitlines()[1].endswith("echo here; done"), done.stdout
