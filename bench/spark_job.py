"""`drover spark run` as a user starts it, watched from outside: its tables, its memory, its processor time."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import psutil

from bench.results import check
from bench.rig import POLL_S, REPOSITORY, Rig
from drover.errors import ConfigurationError
from drover.jars import cache_directory
from drover.spark.class_archive import LIST_FLAG
from drover.spark.files import JobFiles
from drover.spark.sinks.port import Standing
from drover.spark.sinks.sqlite import read_rows, read_standing
from drover.spark.view import open_tables
from drover.time_limits import time_limit

STARTED = "Keeping the tables in"
LOOK_S = 0.25
STOP_S = 60.0
Found = TypeVar("Found")


@dataclass
class Job:
    """A job that runs; times are of the monotonic clock."""

    process: asyncio.subprocess.Process
    files: JobFiles
    log_file: Path
    began: float
    peak_bytes: int = 0

    # -- what it has done

    async def until(self, look: Callable[["Job"], Found | None], what: str, timeout_s: float = 300.0) -> Found:
        """Look until something is found, and return it; the job must go on meanwhile."""
        deadline = time.monotonic() + timeout_s
        while (found := look(self)) is None:
            said = f"\n{self.log_file.read_text(encoding='utf-8')}"
            check(self.process.returncode is None, f"the job ended before {what}:{said}")
            check(time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}{said}")
            await asyncio.sleep(POLL_S)
        return found

    async def started(self) -> float:
        """Wait until the queries run, and return when that was."""
        return await self.until(
            lambda job: time.monotonic() if STARTED in job.log_file.read_text(encoding="utf-8") else None,
            "the queries run",
        )

    async def first_batch(self) -> float:
        """Wait for any batch in the tables, and return when it was there."""
        return await self.until(lambda job: None if job.standing() is None else time.monotonic(), "a first batch")

    async def applied(self, events: int) -> float:
        """Wait until so many events are in the tables, and return when they were."""
        return await self.until(
            lambda job: time.monotonic() if job.events() >= events else None, f"{events:,} events in the tables"
        )

    async def sampled(self, copies: int, at_ms: int) -> float:
        """Wait until so many copies have their sample of that moment in the tables, and return when they had."""
        return await self.until(
            lambda job: time.monotonic() if job.samples_of(at_ms) >= copies else None, "every sample in the tables"
        )

    async def class_archive(self) -> None:
        """Wait until Java's class data archive is there, which this job makes if no earlier one has."""
        await self.first_batch()
        for one in (one for process in self.processes() for one in _command(process) if one.startswith(LIST_FLAG)):
            archive = cache_directory() / "class-archives" / Path(one).with_suffix(".jsa").name
            await self.until(partial(_there, archive), "the class data archive")

    def standing(self) -> Standing | None:
        with suppress(ConfigurationError), open_tables(self.files) as connection:
            return read_standing(connection)
        return None  # there are no tables yet

    def events(self) -> int:
        with suppress(ConfigurationError), open_tables(self.files) as connection:
            return sum(row["events"] for row in read_rows(connection, "takeovers"))
        return 0

    def samples_of(self, at_ms: int) -> int:
        with open_tables(self.files) as connection:
            (count,) = connection.execute("select count(*) from samples where at_ms >= ?", (at_ms,)).fetchone()
        return int(count)

    def unreadable(self) -> int:
        with open_tables(self.files) as connection:
            return sum(row["records"] for row in read_rows(connection, "undecodable"))

    def carried_bytes(self) -> int:
        """Return how much is carried from one batch to the next."""
        with open_tables(self.files) as connection:
            (size,) = connection.execute("select coalesce(sum(length(key) + length(value)), 0) from carry").fetchone()
        return int(size)

    # -- what it costs

    def busy_s(self) -> float:
        """Return the processor time of the driver, its JVM and the Python workers so far."""
        total = 0.0
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    async def weigh(self) -> None:
        """Look again and again at the memory of all its processes together."""
        while True:
            size = 0
            for process in self.processes():
                with suppress(psutil.NoSuchProcess):
                    size += process.memory_info().rss
            self.peak_bytes = max(self.peak_bytes, size)
            await asyncio.sleep(LOOK_S)

    def processes(self) -> list[psutil.Process]:
        """Return the driver, its JVM and the Python workers that there are now."""
        try:
            driver = psutil.Process(self.process.pid)
            return [driver, *driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@asynccontextmanager
async def running_job(rig: Rig, directory: Path, trigger_ms: int | None = None) -> AsyncIterator[Job]:
    """Start a job on a rig's log, and stop it as a user would; everything else is as by default."""
    trigger = "" if trigger_ms is None else f"trigger_ms = {trigger_ms}\n"
    settings = f'[spark]\ndirectory = "{directory}"\n{trigger}'
    write_settings(rig, settings)
    log_file = rig.directory / f"job-{time.monotonic_ns()}.log"
    with log_file.open("wb") as output:
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *rig.start_arguments(),
            *("spark", "run"),
            cwd=REPOSITORY,
            env=rig.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    job = Job(process, JobFiles(directory), log_file, began)
    weighing = asyncio.create_task(job.weigh())
    try:
        yield job
    finally:
        weighing.cancel()
        await asyncio.wait((weighing,))
        await _stop(job)


def write_settings(rig: Rig, further: str = "") -> None:
    """Write the settings file of a rig that has nothing but a log."""
    connection = rig.connection
    text = f'[log]\nbootstrap = "{connection.bootstrap}"\nprefix = "{connection.topics.prefix}"\n\n{further}'
    (rig.directory / "drover.toml").write_text(text, encoding="utf-8")


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []


async def _stop(job: Job) -> None:
    """Tell the driver to end, which ends its JVM; after a while, all of them are killed."""
    below = job.processes()
    if job.process.returncode is None:
        job.process.send_signal(signal.SIGTERM)
    try:
        async with time_limit(STOP_S):
            await job.process.wait()
    except TimeoutError:
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        await job.process.wait()


def _there(file: Path, _job: Job) -> bool | None:
    return file.exists() or None
