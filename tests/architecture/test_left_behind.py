"""An interrupted test run kills the processes that it started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.left_behind import MARK, kill_what_is_left, mark_this_run

WAITS = (sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()")


def started() -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, as brokers are, and wait until it runs."""
    process = subprocess.Popen(WAITS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_processes_of_this_run_and_of_runs_within_it_are_killed_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, os.environ.get(MARK, ""))
    with started() as other:
        mark_this_run()
        this_run = os.environ[MARK]
        with started() as own:
            mark_this_run()
            with started() as within:
                monkeypatch.setenv(MARK, this_run)
                killed = kill_what_is_left()
                assert (own.wait(), within.wait(), other.poll()) == (-9, -9, None)
    assert len(killed) == 2
    assert other.returncode == 0


INTERRUPTED = """
import os, signal, subprocess, sys
from multiprocessing import forkserver

def test_that_is_interrupted():
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    forkserver.ensure_running()
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupted_run_names_what_it_kills_but_no_server_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "test_interrupted.py").write_text(INTERRUPTED)
    command = (sys.executable, "-m", "pytest", "-p", "tests.left_behind", "-p", "no:cacheprovider")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert done.stdout.count("killed a leftover process: ") == 1, done.stdout
