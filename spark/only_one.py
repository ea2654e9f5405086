"""One job per directory: a lock for the process, and a look whether the JVM of the job before is gone.

A driver that is killed leaves its JVM for two seconds or so; a second one on the same checkpoint must wait for its end.
"""

import contextlib
from collections.abc import Iterator

import psutil
from filelock import FileLock, Timeout
from msgspec import Struct, json

from drover.errors import ConfigurationError
from drover.events.undecodable import UNDECODABLE
from drover.spark.files import JobFiles

JVM_GONE_S = 30.0


class _Jvm(Struct, frozen=True):
    """A process, told from a later one of its number by when it began."""

    pid: int
    began_s: float


@contextlib.contextmanager
def only_job(files: JobFiles) -> Iterator[None]:
    """Hold the directory for this process, once the JVM of the job before is gone.

    Raises `ConfigurationError` when another job runs here, or its JVM does not end, and for a directory that cannot be
    used.
    """
    lock = FileLock(files.lock)
    try:
        files.directory.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ConfigurationError(
            f"another job runs in {files.directory}: stop it, or name another directory with --dir"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"the job cannot keep its files in {files.directory} ({error.strerror}): name another directory with --dir "
            "or `directory` in the section `[spark]`"
        ) from error
    try:
        _wait_until_gone(files)
        yield
    finally:
        lock.release()


def remember_jvm(files: JobFiles, pid: int) -> None:
    """Write down which JVM this job has."""
    files.jvm.write_bytes(json.encode(_Jvm(pid, psutil.Process(pid).create_time())))


def _wait_until_gone(files: JobFiles) -> None:
    try:
        known = json.decode(files.jvm.read_bytes(), type=_Jvm)
        process = psutil.Process(known.pid)
        if process.create_time() == known.began_s:
            process.wait(JVM_GONE_S)
    except (FileNotFoundError, *UNDECODABLE, psutil.NoSuchProcess):
        return
    except psutil.TimeoutExpired as error:
        raise ConfigurationError(
            f"the JVM of the job before still runs (process {known.pid}) and would write to the same checkpoint: end it"
        ) from error
