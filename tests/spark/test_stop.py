"""A job whose Java has gone: stopped together with it, or not."""

import inspect
import os
import threading
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import psutil
import pytest
from pyspark import SparkContext

from drover.errors import ConfigurationError, SparkJobError
from drover.spark import job, session
from drover.spark.audit import audit_run
from drover.spark.job import JobOptions
from drover.spark.log_source import LogSource
from drover.spark.session import close_session

WARNED = "Unable to cleanly shutdown Spark JVM process."


class Gone:
    """A session whose Java does not answer any more."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ConnectionRefusedError(f"{name}: nobody is there")

    def stop(self) -> NoReturn:
        raise ConnectionRefusedError("nobody is there")


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobOptions:
    def gone(*_: Any, **__: Any) -> Gone:
        return Gone()

    monkeypatch.setattr(job, "open_session", gone)
    return JobOptions(LogSource("127.0.0.1:1"), tmp_path)


def test_a_java_that_was_stopped_together_with_the_job_is_no_fault(options: JobOptions) -> None:
    stop = threading.Event()
    stop.set()
    job.run(options, stop)
    assert not options.files.alive.exists()


def test_a_java_that_goes_by_itself_is_one(options: JobOptions) -> None:
    with pytest.raises(SparkJobError, match="nobody is there"):
        job.run(options, threading.Event())
    assert not options.files.alive.exists()


def test_a_java_that_was_stopped_before_spark_has_started_is_no_fault_of_a_job_that_was_stopped_too(
    options: JobOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()

    def stopped_meanwhile(*_: Any, **__: Any) -> NoReturn:
        stop.set()
        raise SparkJobError("Spark did not start: Java ended by SIGTERM")

    monkeypatch.setattr(job, "open_session", stopped_meanwhile)
    job.run(options, stop)
    assert not options.files.alive.exists()


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_java_that_is_gone_when_it_is_looked_at_is_told_in_words_unless_the_job_was_stopped(
    options: JobOptions, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    stop = threading.Event()

    def gone(*_: Any) -> NoReturn:
        if is_stopped:
            stop.set()
        raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(job, "jvm_pid", lambda _: 1)
    monkeypatch.setattr(job, "remember_jvm", gone)
    with nullcontext() if is_stopped else pytest.raises(SparkJobError, match="no longer exists"):
        job.run(options, stop)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_query_that_ends_together_with_the_stop_is_no_fault(
    options: JobOptions, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    """A stop that comes while Java is asked finds its queries ended, if Java got it too."""
    stop = threading.Event()

    class Ended:
        name = "drover_sqlite"

        @property
        def isActive(self) -> bool:  # noqa: N802 - Spark's own name
            if is_stopped:
                stop.set()
            return False

        def exception(self) -> str:
            return "it was stopped"

    monkeypatch.setattr(job, "jvm_pid", lambda _: os.getpid())
    monkeypatch.setattr(job, "_start", lambda *_: Ended())
    monkeypatch.setattr(job, "LOOK_S", 0.0)
    with nullcontext() if is_stopped else pytest.raises(SparkJobError, match="it was stopped"):
        job.run(options, stop)


@pytest.mark.parametrize("name", ["tables.sqlite", "history/manifest.json"])
def test_a_file_that_a_crash_has_left_damaged_is_told_with_the_remedy(
    options: JobOptions, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(job, "jvm_pid", lambda _: os.getpid())
    monkeypatch.setattr(job, "remember_jvm", lambda *_: None)
    damaged = options.directory / name
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b"neither tables nor a manifest" * 100)
    with pytest.raises(SparkJobError, match=r"cannot be used .*; a damaged file may be removed"):
        job.run(replace(options, keeps_history=True), threading.Event())
    damaged.unlink()
    with pytest.raises(SparkJobError, match="nobody is there"):
        job.run(replace(options, keeps_history=True), threading.Event())


def test_pysparks_warning_of_a_java_that_ended_while_it_was_stopped_is_not_shown() -> None:
    """All warnings are errors in these tests."""

    class CutOff:
        def stop(self) -> None:
            warnings.warn(f"{WARNED} It is possible that the process has crashed", RuntimeWarning, stacklevel=1)

    assert WARNED in inspect.getsource(SparkContext.stop)
    stopped: Any = CutOff()
    close_session(stopped)


def test_other_warnings_of_a_stop_are_shown() -> None:
    class Warns:
        def stop(self) -> None:
            warnings.warn("something else", RuntimeWarning, stacklevel=1)

    stopped: Any = Warns()
    with pytest.warns(RuntimeWarning, match="something else"):
        close_session(stopped)


def test_an_audit_whose_java_goes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any, **__: Any) -> Gone:
        return Gone()

    monkeypatch.setattr(audit_run, "open_session", gone)
    monkeypatch.setattr(audit_run, "end_of_java", lambda: "Java ended by SIGKILL")
    log = audit_run.Log(LogSource("127.0.0.1:1"), {}, {}, tmp_path)
    with pytest.raises(SparkJobError, match="could not read the log: Java ended by SIGKILL"), log.reading() as read:
        read({})


def test_an_audit_whose_directory_cannot_be_used_names_it_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = audit_run.Log(LogSource("127.0.0.1:1"), {}, {}, tmp_path / "file" / "audit")
    told = r"file/audit cannot be used \(Not a directory\): .*`\[spark\]`"
    with pytest.raises(ConfigurationError, match=told), log.reading():
        pytest.fail("it was begun")


def test_a_java_that_goes_before_spark_has_started_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> NoReturn:
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(session, "end_of_java", lambda: "Java ended by SIGKILL")
    with pytest.raises(SparkJobError, match=r"Spark did not start: Java ended by SIGKILL \(more in .*java\.log\)"):
        session._session_of(SimpleNamespace(getOrCreate=refused), tmp_path / "java.log")
