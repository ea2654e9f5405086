"""What goes wrong while the job runs: Kafka does not answer, for a while or for good, and drivers die in mid batch."""

import asyncio
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest
import pytest_asyncio
from pyspark.sql import SparkSession

from drover.cli.exits import ExitCode, failure_of
from drover.errors import SparkJobError
from drover.jars import ensure
from drover.local import LocalCluster
from spark import job
from spark.java_home import java_home
from spark.job import JobOptions
from spark.reading import LogSource
from spark.session import LOCAL
from spark.sinks.port import Applied, Position
from spark.sinks.sqlite import SqliteSink
from tests.integration.support import REPOSITORY, Installation, installation, wait_for
from tests.shard.random_logs import random_log
from tests.spark import live
from tests.spark.comparing import Rows, difference
from tests.spark.conftest import Kept
from tests.spark.test_folding import samples_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

# More than the time after which the controller takes these brokers for dead, and less than Spark waits.
AWAY_S = 5.0
# Spark waits for a minute in mid batch and three times as long between two; so it is seconds.
IMPATIENT = {
    "kafka.default.api.timeout.ms": "2000",
    "kafka.request.timeout.ms": "1500",
    "kafkaConsumer.pollTimeoutMs": "2000",
    "fetchOffset.numRetries": "1",
}
LOG = random_log(4, 120)[1:]
SAMPLES = [one.value for one in samples_of(4)[:100] if one.value is not None]
# What is appended to that log only when a batch is wanted.
LATER = 20

INSIDE, AFTER = KILLS = ("1:inside", "1:after")
# Half a minute on a free machine, and much longer on one that is busy.
START_S = 150.0


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def drivers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mapping[str, "Driver"]]:
    """Jobs that are going to die; their Spark starts with the module, beside tests that wait most of the time."""
    async with AsyncExitStack() as programs:
        made = {}
        for kill in KILLS:
            directory = tmp_path_factory.mktemp("killed")
            job_of_its_own = ("nice", sys.executable, "-m", "tests.spark.deadly_job", directory, kill)
            made[kill] = await programs.enter_async_context(driver(*job_of_its_own, directory=directory))
        yield made


class HeldSink(SqliteSink):
    """The real sink; it can hold a batch whose offsets are fixed, before Spark reads its records."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.is_reached = threading.Event()
        self._may_go_on = threading.Event()
        self._may_go_on.set()

    def hold(self) -> None:
        """Hold the next batch; `is_reached` tells that there is one."""
        self._may_go_on.clear()

    def let_go(self) -> None:
        self._may_go_on.set()

    def position(self, checkpoint: str) -> Position | None:
        if not self._may_go_on.is_set():
            self.is_reached.set()
            assert self._may_go_on.wait(60), "a batch that is held is let go"
        return super().position(checkpoint)


class UnfencedSink(SqliteSink):
    """What a sink without a fence does: it applies what comes. It can fail once it has."""

    def __init__(self, file: Path, *, fails: bool) -> None:
        super().__init__(file)
        self._fails = fails

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        done = super().apply(checkpoint, applied)
        if self._fails:
            raise OSError("after the sink's transaction")
        return done

    def position(self, checkpoint: str) -> Position | None:
        known = super().position(checkpoint)
        return None if known is None else known._replace(batch=-1)

    def _is_applied(self, last: int | None, batch: int) -> bool:
        del last, batch
        return False

    def _check_follows(self, last: int | None, batch: int) -> None:
        del last, batch  # whatever comes is applied


@pytest_asyncio.fixture
async def written(local_cluster: LocalCluster, tmp_path: Path) -> AsyncIterator[Installation]:
    """Topics with the first part of a simulated log; no worker reads it."""
    async with installation(local_cluster, tmp_path, "away-" + uuid4().hex) as drover:
        await live.append(drover, drover.names.events, LOG[:40], 3)
        await live.append(drover, drover.names.progress, SAMPLES, 2)
        yield drover


@pytest.fixture(autouse=True)
def in_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the job have the session of all tests, whose JVM does not end with it."""
    monkeypatch.setattr(job, "open_session", lambda *_, **__: Kept(spark))
    monkeypatch.setattr(job, "remember_jvm", lambda *_: None)


def options(drover: Installation, client: dict[str, str]) -> JobOptions:
    source = LogSource(drover.cluster.bootstrap, drover.names, client)
    return JobOptions(source, drover.directory / "job", trigger_ms=100)


@dataclass(frozen=True)
class Driver:
    """A process that runs the job, the directory of that job, and what it said."""

    process: Process
    directory: Path

    @property
    def said(self) -> str:
        return (self.directory / "said.log").read_text()


@asynccontextmanager
async def driver(*command: object, directory: Path, **environment: str) -> AsyncIterator[Driver]:
    """Run a program that is ended with the block, whatever happens."""
    with (directory / "said.log").open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
            stdin=PIPE,
            stdout=said.fileno(),
            stderr=said.fileno(),
        )
    try:
        yield Driver(process, directory)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def running(chosen: JobOptions, sink: SqliteSink) -> AsyncIterator[asyncio.Task[None]]:
    """Run the job beside the block, and stop it at its end."""
    stop = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(job.run, chosen, stop, sinks=lambda _: (sink,)))
    try:
        yield task
    finally:
        stop.set()
        await asyncio.wait((task,))


@asynccontextmanager
async def away(cluster: LocalCluster) -> AsyncIterator[None]:
    """Stop the process of every broker for the length of a block."""
    brokers = [broker.id for broker in cluster.spec.brokers]
    try:
        await asyncio.gather(*map(cluster.pause, brokers))
        yield
    finally:
        await asyncio.gather(*map(cluster.resume, brokers))
        await cluster.wait_until_serving()


async def in_mid_batch(drover: Installation, sink: HeldSink, records: Sequence[bytes]) -> None:
    """Append to the log, and hold the batch that reads it."""
    sink.hold()
    await live.append(drover, drover.names.events, records, 3)
    assert await asyncio.to_thread(sink.is_reached.wait, 60)


async def test_a_kafka_that_stays_away_ends_the_job_with_the_cause_and_one_that_comes_back_does_not(
    written: Installation,
) -> None:
    """Away for good between two batches, then in mid batch, then for a while in mid batch: each job goes on."""
    for is_in_batch in (False, True):
        await ends_with_the_cause(written, is_in_batch=is_in_batch)
    chosen = options(written, {})
    sink = HeldSink(chosen.files.tables)
    async with running(chosen, sink) as task:
        await live.wait_until_equal(written, chosen.files.tables)
        await in_mid_batch(written, sink, LOG[60:80])
        before = live.standing_in(chosen.files.tables)
        async with away(written.cluster):
            sink.let_go()
            await asyncio.sleep(AWAY_S)
            assert live.standing_in(chosen.files.tables) == before, "there was nothing to be had"
        await live.append(written, written.names.events, LOG[80:], 3)
        await live.wait_until_equal(written, chosen.files.tables)
        assert not task.done()
    assert task.result() is None
    found = live.tables_in(chosen.files.tables)
    assert difference(await live.plain_tables(written), found, found) == []


async def ends_with_the_cause(written: Installation, *, is_in_batch: bool) -> None:
    chosen = options(written, IMPATIENT)
    sink = HeldSink(chosen.files.tables)
    async with running(chosen, sink) as task:
        await live.wait_until_equal(written, chosen.files.tables)
        if is_in_batch:
            await in_mid_batch(written, sink, LOG[40:60])
        async with away(written.cluster):
            sink.let_go()
            async with asyncio.timeout(60):
                await asyncio.wait((task,))
    error = task.exception()
    assert isinstance(error, SparkJobError)
    assert "drover_sqlite failed" in str(error)
    assert "TimeoutException" in str(error), error
    assert failure_of(error).exit_code == ExitCode.FAILED
    assert not chosen.files.alive.exists()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def read_log(
    local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """Topics with all of that log but its end."""
    async with installation(local_cluster, tmp_path_factory.mktemp("log"), "killed") as drover:
        await live.append(drover, drover.names.events, LOG[:-LATER], 3)
        await live.append(drover, drover.names.progress, SAMPLES, 2)
        yield drover


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deaths(drivers: Mapping[str, Driver], read_log: Installation) -> Mapping[str, Path]:
    """What drivers left that were killed, each at its own moment of a batch."""
    for one in drivers.values():
        assert one.process.stdin is not None, "a pipe was asked for"
        one.process.stdin.write(f"{read_log.cluster.bootstrap} {read_log.names.prefix}\n".encode())
    async with asyncio.timeout(START_S):
        for kill, one in drivers.items():
            assert await one.process.wait() == -signal.SIGKILL, (kill, one.said)
            assert one.said.count("killed ") == 1, one.said
    return {kill: one.directory for kill, one in drivers.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def submitted(deaths: Mapping[str, Path], read_log: Installation) -> AsyncIterator[Driver]:
    """The job under spark-submit, where a driver died after it had applied a batch."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [item for pair in LOCAL.items() for item in ("--conf", "=".join(pair))]
    command = (
        *(submit, "--master", "local[2]", "--jars", ",".join(map(str, ensure("spark"))), *options),
        *(REPOSITORY / "drover" / "__main__.py", "--config", read_log.config),
        *("spark", "run", "--dir", deaths[AFTER]),
    )
    environment = {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    tables = reading(read_log, deaths[AFTER]).files.tables
    assert live.standing_in(tables) == 1
    found = live.tables_in(tables)
    assert difference(await live.tables_up_to(read_log, deaths[AFTER], "sqlite", 1), found, found) == []
    async with driver(*command, directory=deaths[AFTER], **environment) as submitted:
        yield submitted


async def test_a_driver_that_dies_in_mid_batch_loses_and_doubles_nothing(
    deaths: Mapping[str, Path], submitted: Driver, read_log: Installation
) -> None:
    """Here inside the sink's transaction; the death after it, and one from outside, are of the last test."""
    del submitted  # it starts meanwhile
    tables = reading(read_log, deaths[INSIDE]).files.tables
    assert live.standing_in(tables) == 0
    found = live.tables_in(tables)
    assert difference(await live.tables_up_to(read_log, deaths[INSIDE], "sqlite", 0), found, found) == []
    await goes_on_to_the_end(read_log, deaths[INSIDE])


async def goes_on_to_the_end(read_log: Installation, directory: Path) -> None:
    chosen = reading(read_log, directory)
    async with running(chosen, SqliteSink(chosen.files.tables)):
        await live.wait_for_end(read_log, directory, "sqlite")
    found = live.tables_in(chosen.files.tables)
    assert difference(await live.plain_tables(read_log), found, found) == []


async def test_without_a_fence_a_batch_that_comes_again_is_counted_again(
    read_log: Installation, tmp_path: Path
) -> None:
    chosen = reading(read_log, tmp_path)
    async with running(chosen, UnfencedSink(chosen.files.tables, fails=True)) as task, asyncio.timeout(60):
        await asyncio.wait((task,))
    assert isinstance(task.exception(), SparkJobError)
    async with running(chosen, UnfencedSink(chosen.files.tables, fails=False)):
        await live.wait_for_end(read_log, tmp_path, "sqlite")
    assert records_in(live.tables_in(chosen.files.tables)) > records_in(await live.plain_tables(read_log))


def reading(read_log: Installation, directory: Path) -> JobOptions:
    source = LogSource(read_log.cluster.bootstrap, read_log.names)
    return JobOptions(source, directory, trigger_ms=100)


def records_in(tables: dict[str, Rows]) -> int:
    counts = ("takeovers", "batches", "fenced_batches")
    return sum(row.get(count, 0) for row in tables["takeovers"].values() for count in counts)


async def test_the_job_goes_on_after_a_death_also_under_spark_submit_and_after_its_own(
    deaths: Mapping[str, Path], submitted: Driver, read_log: Installation
) -> None:
    async def keeps() -> bool:
        assert submitted.process.returncode is None, submitted.said
        return "Keeping the tables" in submitted.said

    await wait_for(keeps, "the job under spark-submit", timeout_s=START_S)
    files = reading(read_log, deaths[AFTER]).files
    await live.wait_until_equal(read_log, files.tables)
    await live.append(read_log, read_log.names.events, LOG[-LATER:], 3)
    begun = await killed_in_mid_batch(submitted, files.checkpoint("sqlite"))
    standing = live.standing_in(files.tables)
    assert standing in {begun - 1, begun}
    found = live.tables_in(files.tables)
    assert difference(await live.tables_up_to(read_log, deaths[AFTER], "sqlite", standing), found, found) == []
    await goes_on_to_the_end(read_log, deaths[AFTER])


async def killed_in_mid_batch(submitted: Driver, checkpoint: Path) -> int:
    """Kill both processes of a driver once a batch has begun, and return its number; it was not committed."""
    driver_process = live.driver_of(submitted.process.pid)

    async def has_begun() -> bool:
        return live.last_in(checkpoint / "offsets") > live.last_in(checkpoint / "commits")

    await wait_for(has_begun, "a batch")
    submitted.process.kill()
    driver_process.kill()
    assert await submitted.process.wait() == -signal.SIGKILL
    begun = live.last_in(checkpoint / "offsets")
    assert live.last_in(checkpoint / "commits") == begun - 1
    return begun
