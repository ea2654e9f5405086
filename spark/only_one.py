"""One job per directory: a lock for the process, and a wait for the end of the last job's JVM.

The JVM of a killed driver runs on for some two seconds, and no other driver may use the checkpoint before it has ended.
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
    """A process; the time of its start tells it from a later one with the same id."""

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
    """Record the JVM of this job."""
    files.jvm.write_bytes(json.encode(_Jvm(pid, psutil.Process(pid).create_time())))


def _wait_until_gone(files: JobFiles) -> None:
    try:
        jvm = json.decode(files.jvm.read_bytes(), type=_Jvm)
        process = psutil.Process(jvm.pid)
        if process.create_time() == jvm.began_s:
            process.wait(JVM_GONE_S)
    except (FileNotFoundError, *UNDECODABLE, psutil.NoSuchProcess):
        return
    except psutil.TimeoutExpired as error:
        raise ConfigurationError(
            f"the JVM of the job before still runs (process {jvm.pid}) and would write to the same checkpoint: end it"
        ) from error
