"""The plugin that makes threads late finds a test that relies on who is first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT

# It passes on any quiet machine: the thread has five seconds for what takes no time.
RELIES_ON_THE_FASTER = """
import threading

def test_a_thread_has_begun_in_five_seconds():
    for _ in range(30):
        begun = threading.Event()
        thread = threading.Thread(target=begun.set)
        thread.start()
        has_begun = begun.wait(5)
        thread.join()
        assert has_begun
"""
HAS_FAILED = 1


@pytest.mark.parametrize(("level", "code"), [("0", 0), ("80", HAS_FAILED)])
def test_a_thread_that_must_be_fast_is_found(tmp_path: Path, level: str, code: int) -> None:
    (tmp_path / "test_race.py").write_text(RELIES_ON_THE_FASTER, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.shaking", "-p", "no:cacheprovider", "test_race.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "SHAKING": level}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
