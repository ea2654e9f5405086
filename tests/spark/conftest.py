"""One Spark session for all tests of this process, and jobs of their own processes, which start at once with the tests.

A start of Spark takes half a minute of processor time, and the tests of this process leave half a processor free.
Modules run in the order of their names. By the one of the story, which measures how fresh the tables are, all that had
to start has started; after it comes the one in which Kafka goes away.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from pyspark.sql import SparkSession

from drover.local import LocalCluster
from drover.spark import job
from drover.spark.files import JobFiles
from drover.spark.session import open_session
from tests.integration.support import Installation, installation
from tests.spark import live
from tests.spark.dying import KILLS, Driver, Dying, standing_ready, write_log

EARLY = ("dying", "watched")


class Kept:
    """The session of all tests, which neither a job nor an audit may end."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two threads on this machine, as `drover spark run` has by default."""
    session = open_session("tests", directory=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def job_in_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the job have the session of all tests, whose JVM does not end with it."""
    monkeypatch.setattr(job, "open_session", lambda *_, **__: Kept(spark))
    monkeypatch.setattr(job, "remember_jvm", lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def early(request: pytest.FixtureRequest) -> None:
    """Start before the first test what a later one asks for and what takes long."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    for name in EARLY:
        if name in wanted:
            request.getfixturevalue(name)


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Driver]]:
    """Jobs that will be killed once they have a log."""
    with standing_ready(tmp_path_factory.mktemp("drivers")) as drivers:
        yield drivers


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def dying(
    drivers: Mapping[str, Driver], local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Dying]:
    """The drivers on their way to their deaths, and who goes on after one of them."""
    async with installation(local_cluster, tmp_path_factory.mktemp("log"), "killed") as log:
        await write_log(log)
        with ExitStack() as successors, ThreadPoolExecutor(len(KILLS) + 1) as threads:
            try:
                yield Dying(drivers, log, threads, successors)
            finally:
                for one in drivers.values():
                    one.process.kill()  # the threads wait for them


@dataclass(frozen=True)
class Watched:
    """Topics that `drover spark run` reads, and its files."""

    drover: Installation
    files: JobFiles


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watched(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    """A `drover spark run` that has something to read, so that it is warm when something happens."""
    directory = tmp_path_factory.mktemp("tables")
    async with installation(local_cluster, directory, "tables", max_moves_per_broker=100) as drover:
        files = JobFiles(directory / "job")
        with drover.config.open("a") as config:
            config.write(f'[spark]\ndirectory = "{files.directory}"\ntrigger_ms = 500\n')
        await live.append(drover, drover.names.progress, [b"junk"], 1)
        await drover.start("job", "spark", "run")
        yield Watched(drover, files)
