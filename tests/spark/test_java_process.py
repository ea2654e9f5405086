"""The Java of a job: nothing of it on the terminal, its end in one line, its temporary files removed by the next."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j import java_gateway
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from drover.errors import SparkJobError
from drover.spark import java_process, job
from drover.spark.java_process import end_of_java, in_words, start_java
from drover.spark.job import JobOptions
from drover.spark.log_source import LogSource
from drover.spark.session import scratch_of_this_process


def ended(code: str) -> SimpleNamespace:
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait()
    return SimpleNamespace(proc=process)


def test_a_java_that_was_killed_is_told_in_one_line_with_its_signal_and_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        def __getattr__(self, name: str) -> NoReturn:
            raise ConnectionRefusedError(f"{name}: nobody is there")

        def stop(self) -> None:
            pass

    def gone(*_: Any, **__: Any) -> Gone:
        return Gone()

    monkeypatch.setattr(job, "open_session", gone)
    killed = ended("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr(SparkContext, "_gateway", killed)
    with pytest.raises(SparkJobError) as raised:
        job.run(JobOptions(LogSource("127.0.0.1:1"), tmp_path), threading.Event())
    said = str(raised.value)
    assert said.startswith("Java ended by SIGKILL; start the job again")
    assert said.endswith(f"(more in {tmp_path / 'java.log'})")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "Java ended with exit code 0"), (-signal.SIGTERM, "Java ended by SIGTERM"), (-63, "Java ended by signal 63")],
)
def test_an_end_is_told_in_words(code: int, words: str) -> None:
    assert in_words(code) == words


def test_a_java_that_is_not_this_processs_child_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=None))
    assert end_of_java() is None


def test_what_the_bridge_to_java_logs_is_in_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "java.log"
    java_process._keep_off_the_terminal(file)
    logging.getLogger("py4j.clientserver").error("there was an exception")
    # As py4j does when Java ends in the middle of an answer.
    java_gateway.logging.exception("Exception while sending command.")
    said = file.read_text().splitlines()
    assert said[:2] == ["there was an exception", "Exception while sending command."]
    java_process._keep_off_the_terminal(tmp_path / "other.log")
    assert capfd.readouterr().err == ""


def test_a_fault_keeps_its_cause_when_the_log_file_was_removed(tmp_path: Path) -> None:
    """If logging a fault raises, py4j closes the connection: Java never gets an answer, and the cause is lost."""
    removed = tmp_path / "removed"
    removed.mkdir()
    java_process._keep_off_the_terminal(removed / "java.log")
    shutil.rmtree(removed)
    logging.getLogger("py4j.clientserver").error("there was an exception")
    java_process._keep_off_the_terminal(tmp_path / "other.log")


def test_a_java_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "java.log"

    def fails(_conf: object, kwargs: dict[str, Any]) -> NoReturn:
        kwargs["stderr"].write(b"Error: Could not create the Java Virtual Machine.\n\n")
        kwargs["stderr"].flush()
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(java_process, "launch_gateway", fails)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(SparkJobError, match="Could not create the Java Virtual Machine"):
        start_java({"spark.master": "local"}, file)


def test_what_a_killed_process_left_in_temporary_folders_is_removed_by_the_next(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / "scratch" / str(dead.pid) / "blockmgr-1"
    running = tmp_path / "scratch" / str(os.getppid())
    for folder in (left, running):
        folder.mkdir(parents=True)
    own = scratch_of_this_process(tmp_path)
    assert {one.name for one in (tmp_path / "scratch").iterdir()} == {running.name, own.name}
