"""Drivers that are killed in mid batch: what they leave is whole, and whoever goes on loses and doubles nothing."""

import asyncio
from pathlib import Path

import pytest

from drover.errors import SparkJobError
from spark.job import JobOptions
from spark.reading import LogSource
from spark.sinks.port import Applied, Position
from spark.sinks.sqlite import SqliteSink
from tests.integration.support import Installation, wait_for
from tests.spark import live
from tests.spark.comparing import Rows, difference
from tests.spark.dying import AFTER, INSIDE, LATER, LOG, Dying

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.usefixtures("job_in_process")]


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


async def test_a_driver_that_dies_inside_the_sinks_transaction_leaves_nothing_of_its_batch(dying: Dying) -> None:
    left = await dying.left(INSIDE)
    await holds_all_up_to(dying.log, left, 0)
    await goes_on_to_the_end(dying.log, left)


async def test_without_a_fence_a_batch_that_comes_again_is_counted_again(dying: Dying, tmp_path: Path) -> None:
    chosen = reading(dying.log, tmp_path)
    async with live.running(chosen, UnfencedSink(chosen.files.tables, fails=True)) as task, asyncio.timeout(60):
        await asyncio.wait((task,))
    assert isinstance(task.exception(), SparkJobError)
    async with live.running(chosen, UnfencedSink(chosen.files.tables, fails=False)):
        await live.wait_for_end(dying.log, tmp_path, "sqlite")
    assert records_in(live.tables_in(chosen.files.tables)) > records_in(await live.plain_tables(dying.log))


def records_in(tables: dict[str, Rows]) -> int:
    counts = ("takeovers", "batches", "fenced_batches")
    return sum(row.get(count, 0) for row in tables["takeovers"].values() for count in counts)


async def test_the_job_under_spark_submit_goes_on_after_a_death_and_another_after_its_own(dying: Dying) -> None:
    """The first was killed after its batch was applied, before Spark knew; the second is, from outside, somewhere."""
    await holds_all_up_to(dying.log, await dying.left(AFTER), 1)
    job = await dying.successor()

    async def keeps() -> bool:
        assert job.process.poll() is None, job.said
        return "Keeping the tables" in job.said

    await wait_for(keeps, "the job under spark-submit", timeout_s=150)
    files = reading(dying.log, job.directory).files
    await live.wait_until_equal(dying.log, files.tables)
    await live.append(dying.log, dying.log.names.events, LOG[-LATER:], 3)
    checkpoint = files.checkpoint("sqlite")

    async def has_begun() -> bool:
        return live.last_in(checkpoint / "offsets") > live.last_in(checkpoint / "commits")

    await wait_for(has_begun, "a batch")
    await asyncio.to_thread(job.kill)
    begun = live.last_in(checkpoint / "offsets")
    assert live.last_in(checkpoint / "commits") == begun - 1
    standing = live.standing_in(files.tables)
    assert standing in {begun - 1, begun}
    await holds_all_up_to(dying.log, job.directory, standing)
    await goes_on_to_the_end(dying.log, job.directory)
