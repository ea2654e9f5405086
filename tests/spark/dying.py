"""Jobs of their own processes that are killed; nearly all of their time is the start of Spark, beside other tests."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from drover.jars import ensure
from drover.spark.java_home import java_home
from drover.spark.job import JobOptions
from drover.spark.log_source import LogSource
from drover.spark.session import LOCAL
from drover.spark.sinks.sqlite import SqliteSink
from tests.architecture.repository import ROOT
from tests.integration.support import Installation
from tests.spark import live
from tests.spark.comparing import difference
from tests.spark.simulated import LOG, SAMPLES

# What is appended to that log only when a further batch is wanted.
LATER = 20

INSIDE, AFTER = KILLS = ("1:inside", "1:after")
# Half a minute on a free machine; here they give way to all else.
START_S = 400.0


@dataclass(frozen=True)
class Driver:
    """A process that runs the job, the directory of that job, and what it said."""

    process: subprocess.Popen[bytes]
    directory: Path

    @property
    def said(self) -> str:
        return (self.directory / "said.log").read_text()

    def kill(self) -> None:
        """Kill a job under spark-submit: the JVM, and the Python that is the driver's other half."""
        python = live.driver_of(self.process.pid)
        self.process.kill()
        python.kill()
        assert self.process.wait() == -signal.SIGKILL


@dataclass(frozen=True)
class Program:
    """A command to run, the directory for its files, and its full environment."""

    command: Sequence[object]
    directory: Path
    environment: Mapping[str, str]


class Dying:
    """Two drivers, each killed at its own moment of a batch, and a job under spark-submit that goes on after one.

    They go by themselves in threads, since the loop stands while other tests run that do not use it.
    """

    def __init__(
        self, drivers: Mapping[str, Driver], log: Installation, threads: ThreadPoolExecutor, programs: ExitStack
    ) -> None:
        """Let drivers that stand ready begin with a log; `programs` ends the one that goes on, after the threads."""
        self.log = log
        self._left = {kill: threads.submit(_dies, kill, one, log) for kill, one in drivers.items()}
        directory = drivers[AFTER].directory
        # Read the environment now: by the time the thread runs, another test may have patched it.
        program = Program(_under_spark_submit(directory, log), directory, _environment_of_spark())
        self._successor = threads.submit(_goes_on, self._left[AFTER], program, programs)

    async def left(self, kill: str) -> Path:
        """Return a copy of the directory as a driver left it that died."""
        return await asyncio.wrap_future(self._left[kill])

    async def successor(self) -> Driver:
        """Return the job under spark-submit, where a driver died after it had applied a batch."""
        return await asyncio.wrap_future(self._successor)


@contextmanager
def standing_ready(directory: Path) -> Iterator[Mapping[str, Driver]]:
    """Start the drivers that will be killed; they begin when they are told of a log."""
    with ExitStack() as programs:
        made = {}
        for number, kill in enumerate(KILLS):
            own = directory / str(number)
            own.mkdir()
            command = (sys.executable, "-m", "tests.spark.deadly_job", own, kill)
            made[kill] = programs.enter_context(_driver(Program(command, own, _environment())))
        yield made


async def write_log(log: Installation) -> None:
    """Append all of the log but its end, and samples."""
    await live.append(log, log.names.events, LOG[:-LATER], 3)
    await live.append(log, log.names.progress, SAMPLES, 2)


def reading(log: Installation, directory: Path) -> JobOptions:
    return JobOptions(LogSource(log.cluster.bootstrap, log.names), directory, trigger_ms=100)


async def holds_all_up_to(log: Installation, directory: Path, batch: int) -> None:
    """Check that the tables are those of the plain fold up to a batch, and of nothing later."""
    tables = reading(log, directory).files.tables
    assert live.standing_in(tables) == batch
    found = live.tables_in(tables)
    assert difference(await live.tables_up_to(log, directory, "sqlite", batch), found, found) == []


async def goes_on_to_the_end(log: Installation, directory: Path) -> None:
    """Run the job where another has died, and check the tables at the end of the log."""
    chosen = reading(log, directory)
    async with live.running(chosen, SqliteSink(chosen.files.tables)):
        await live.wait_for_end(log, directory, "sqlite")
    found = live.tables_in(chosen.files.tables)
    assert difference(await live.plain_tables(log), found, found) == []


@contextmanager
def _driver(program: Program) -> Iterator[Driver]:
    """Run a program that gives way to others, and is ended with the block, whatever happens."""
    with (program.directory / "said.log").open("ab") as said:
        process = subprocess.Popen(
            ["nice", *map(str, program.command)],
            cwd=ROOT,
            env=program.environment,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
        )
    with process:
        try:
            yield Driver(process, program.directory)
        finally:
            process.kill()


def _dies(kill: str, one: Driver, log: Installation) -> Path:
    """Tell a driver its log, wait for its death, and keep what it left."""
    one.process.communicate(f"{log.cluster.bootstrap} {log.names.prefix}\n".encode(), timeout=START_S)
    assert one.process.returncode == -signal.SIGKILL, (kill, one.said)
    assert one.said.count("killed ") == 1, one.said
    return shutil.copytree(one.directory, one.directory.with_name(f"{one.directory.name}-left"))


def _goes_on(left: "Future[Path]", program: Program, programs: ExitStack) -> Driver:
    """Start a program in the directory of a driver that died."""
    left.result()
    return programs.enter_context(_driver(program))


def _under_spark_submit(directory: Path, log: Installation) -> tuple[object, ...]:
    """Return the command of the job under spark-submit, as spark/README.md tells it."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [item for pair in LOCAL.items() for item in ("--conf", "=".join(pair))]
    return (
        *(submit, "--master", "local[2]", "--jars", ",".join(map(str, ensure("spark"))), *options),
        *(ROOT / "drover" / "__main__.py", "--config", log.config, "spark", "run", "--dir", directory),
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _environment_of_spark() -> dict[str, str]:
    return {
        **_environment(),
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
