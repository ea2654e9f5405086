"""Drivers that are killed in mid batch: what they leave is whole, and whoever goes on loses and doubles nothing."""

import asyncio
from pathlib import Path

import pytest

from drover.errors import SparkJobError
from drover.spark.sinks.port import Applied, Position
from drover.spark.sinks.sqlite import SqliteSink
from tests.spark import live
from tests.spark.comparing import Rows
from tests.spark.dying import INSIDE, Dying, goes_on_to_the_end, holds_all_up_to, reading

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.story,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("job_in_process"),
]


class UnfencedSink(SqliteSink):
    """What a sink without a fence does: it applies what comes, and knows of nothing before. It can fail once it has."""

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
        return None if known is None else known._replace(batch=-1, carry={})

    def _is_applied(self, last: int | None, batch: int) -> bool:
        del last, batch
        return False

    def _check_follows(self, last: int | None, batch: int) -> None:
        del last, batch  # whatever comes is applied


async def test_a_driver_that_dies_inside_the_sinks_transaction_leaves_nothing_of_its_batch(dying: Dying) -> None:
    left = await dying.left(INSIDE)
    await holds_all_up_to(dying.log, left, 0)
    await goes_on_to_the_end(dying.log, left)


async def test_without_a_fence_a_batch_that_comes_again_is_counted_again(dying: Dying, tmp_path: Path) -> None:
    chosen = reading(dying.log, tmp_path)
    async with live.running(chosen, UnfencedSink(chosen.files.tables, fails=True)) as task, asyncio.timeout(400):
        await asyncio.wait((task,))
    assert isinstance(task.exception(), SparkJobError)
    async with live.running(chosen, UnfencedSink(chosen.files.tables, fails=False)):
        await live.wait_for_end(dying.log, tmp_path, "sqlite")
    assert records_in(live.tables_in(chosen.files.tables)) > records_in(await live.plain_tables(dying.log))


def records_in(tables: dict[str, Rows]) -> int:
    counts = ("takeovers", "batches", "fenced_batches")
    return sum(row.get(count, 0) for row in tables["takeovers"].values() for count in counts)
