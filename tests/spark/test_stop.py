"""A job whose Java has gone: stopped together with it, or not."""

import inspect
import threading
import warnings
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark import SparkContext

from drover.errors import SparkJobError
from spark import job
from spark.job import JobOptions
from spark.reading import LogSource
from spark.session import close_session

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


def test_pysparks_warning_of_a_java_that_ended_while_it_was_stopped_is_not_shown() -> None:
    """All warnings are errors in these tests."""

    class CutOff:
        def stop(self) -> None:
            warnings.warn(f"{WARNED} It is possible that the process has crashed", RuntimeWarning, stacklevel=1)

    assert WARNED in inspect.getsource(SparkContext.stop)
    session: Any = CutOff()
    close_session(session)


def test_other_warnings_of_a_stop_are_shown() -> None:
    class Warns:
        def stop(self) -> None:
            warnings.warn("something else", RuntimeWarning, stacklevel=1)

    session: Any = Warns()
    with pytest.warns(RuntimeWarning, match="something else"):
        close_session(session)
