"""A Kafka that does not answer while the job runs, for a while or for good."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from drover.cli.exits import ExitCode, failure_of
from drover.errors import SparkJobError
from drover.local import LocalCluster
from drover.spark.job import JobOptions
from drover.spark.log_source import LogSource
from drover.spark.sinks.port import Position
from drover.spark.sinks.sqlite import SqliteSink
from tests.hanging import hanging
from tests.integration.support import Installation, installation
from tests.spark import live
from tests.spark.comparing import difference
from tests.spark.simulated import LOG, SAMPLES

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.story,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("job_in_process"),
]

# More than the time after which the controller takes these brokers for dead, and less than Spark waits.
AWAY_S = 5.0
# Spark waits for a minute in mid batch and three times as long between two; so it is seconds.
IMPATIENT = {
    "kafka.default.api.timeout.ms": "2000",
    "kafka.request.timeout.ms": "1500",
    "kafkaConsumer.pollTimeoutMs": "2000",
    "fetchOffset.numRetries": "1",
}


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


@pytest_asyncio.fixture
async def written(local_cluster: LocalCluster, tmp_path: Path) -> AsyncIterator[Installation]:
    """Topics with the first part of a simulated log; no worker reads it."""
    async with installation(local_cluster, tmp_path, "away-" + uuid4().hex) as drover:
        await live.append(drover, drover.names.events, LOG[:40], 3)
        await live.append(drover, drover.names.progress, SAMPLES, 2)
        yield drover


def options(drover: Installation, client: dict[str, str]) -> JobOptions:
    source = LogSource(drover.cluster.bootstrap, drover.names, client)
    return JobOptions(source, drover.directory / "job", trigger_ms=100)


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
    async with live.running(chosen, sink) as task:
        await live.wait_until_equal(written, chosen.files.tables)
        await in_mid_batch(written, sink, LOG[60:80])
        before = live.standing_in(chosen.files.tables)
        async with hanging(written.cluster):
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
    async with live.running(chosen, sink) as task:
        await live.wait_until_equal(written, chosen.files.tables)
        if is_in_batch:
            await in_mid_batch(written, sink, LOG[40:60])
        async with hanging(written.cluster):
            sink.let_go()
            async with asyncio.timeout(60):
                await asyncio.wait((task,))
    error = task.exception()
    assert isinstance(error, SparkJobError)
    assert "drover_sqlite failed" in str(error)
    assert "TimeoutException" in str(error), error
    assert failure_of(error).exit_code == ExitCode.FAILED
    assert not chosen.files.alive.exists()
