"""A job whose Java has gone: stopped together with it, or not."""

import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

from drover.errors import SparkJobError
from spark import job
from spark.job import JobOptions
from spark.reading import LogSource


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
