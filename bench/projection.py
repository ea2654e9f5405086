"""How fast the view in ZooKeeper is written, and how soon it shows an event.

A real ZooKeeper with its defaults, which writes each transaction to disk, on the same machine. Nodes written: a log
like that of the replay benchmark waits in a projector, which folds, renders, compares and writes it; the median of
five. Lag: records are offered at a steady pace; from offering an event to the answer of the transaction that has it.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.log_maker import varied_log
from bench.owner import CLUSTER
from bench.results import Benchmark, Row, check, percentile, say
from drover.events.records import Batch
from drover.fold.log import RecordVerdict, ShardFold
from drover.local import LocalZooKeeper, wait_until
from drover.projections.feed import Feed
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, Role
from drover.projections.zookeeper import ZooKeeperStore
from drover.service.process import collect_rarely
from drover.settings.settings import ZooKeeperOptions
from drover.time_limits import time_limit

EVENTS_PER_SECOND = 2_000
ROUNDS = 5


@dataclass(slots=True)
class Reports:
    """Counts the writer's reports; a failure or a drift ends the measurement."""

    nodes: int = 0
    done: list[tuple[float, int]] = field(default_factory=list)
    events: int = 0

    def projected(self, cluster: str, events: int, operations: int) -> None:
        check(cluster == CLUSTER, "another cluster was written")
        self.nodes += operations
        self.events += events
        self.done.append((time.monotonic(), self.events))

    def projection_failed(self, cluster: str, error: Exception) -> None:
        check(False, f"{cluster}: {error}")

    def projection_deleted(self, cluster: str, tree: str) -> None:
        check(False, f"{cluster}: {tree} was deleted")

    def projection_claimed(self, cluster: str, exposed: Mapping[str, Sequence[str]]) -> None:
        check(False, f"{cluster}: others could write {sorted(exposed)}")

    def projection_drifted(self, cluster: str, paths: Sequence[str]) -> None:
        check(False, f"{cluster}: {paths} drifted")


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Write one log by turns with the bare transactions; then at a steady pace; then make a tree anew."""
    with TemporaryDirectory() as directory:
        zookeeper = LocalZooKeeper(Path(directory))
        await zookeeper.start()
        try:
            return await _measure(ZooKeeperOptions(zookeeper.hosts), quick=quick)
        finally:
            await zookeeper.stop()


async def _measure(options: ZooKeeperOptions, *, quick: bool) -> tuple[Row, ...]:
    collect_rarely()  # as a projector does
    maker = await varied_log(5_000 if quick else 60_000)
    batches = _batches(maker.log)
    rates = [await _write(options, f"/written-{number}", batches) for number in range(2 if quick else ROUNDS + 1)]
    lags_ms = await _pace(options, "/paced", batches, 2 if quick else 15)
    return (
        # The first round has warmed up the server.
        Row("nodes written to ZooKeeper", median(rates[1:]), "nodes/s"),
        Row(f"event to node at {EVENTS_PER_SECOND:,} events/s, p99", percentile(lags_ms, 99), "ms"),
    )


def _batches(log: Sequence[bytes]) -> list[tuple[int, Batch]]:
    fold = ShardFold(0, 1)
    found = [fold.fold(offset, payload) for offset, payload in enumerate(log)]
    return [
        (folded.offset, folded.record)
        for folded in found
        if folded is not None and folded.verdict is RecordVerdict.VALID and isinstance(folded.record, Batch)
    ]


@asynccontextmanager
async def _writing(options: ZooKeeperOptions, root: str, reports: Reports) -> AsyncIterator[ClusterWriter]:
    """Run a writer on an empty place."""
    store = ZooKeeperStore(options)
    caught_up = asyncio.Event()
    caught_up.set()
    writer = ClusterWriter(Feed(CLUSTER), 0, Tree(store, root, CLUSTER, "bench"), reports, caught_up)
    try:
        # A writer that fails ends the block, instead of leaving it to wait for what is never written.
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            await wait_until(lambda: writer.role is Role.WRITING, what="the writer is ready", timeout_s=30)
            yield writer
            check(not task.done(), "the writer ended")
            task.cancel()
    finally:
        await store.close()


async def _write(options: ZooKeeperOptions, root: str, batches: Sequence[tuple[int, Batch]]) -> float:
    """Return the nodes per second that are written of a log that waits."""
    reports = Reports()
    async with _writing(options, root, reports) as writer:
        reports.nodes = 0
        gc.collect()
        began = time.monotonic()
        for offset, batch in batches:
            writer.offer(offset, batch)
        await _until(lambda: writer.backlog == 0, 600)
        rate = reports.nodes / (time.monotonic() - began)
    say(f"{reports.nodes:,} nodes, {rate:,.0f} a second")
    return rate


async def _pace(
    options: ZooKeeperOptions, root: str, batches: Sequence[tuple[int, Batch]], seconds: int
) -> list[float]:
    """Offer events at a steady pace; returns for each how long after its record it was in the tree, in ms."""
    reports = Reports()
    offered: list[tuple[float, int]] = []
    count = 0
    async with _writing(options, root, reports) as writer:
        reports.done.clear()
        reports.events = 0
        began = time.monotonic()
        for offset, batch in batches:
            due = began + count / EVENTS_PER_SECOND
            if due - began > seconds:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            count += sum(event.cluster == CLUSTER for event in batch.events)
            offered.append((time.monotonic(), count))
            writer.offer(offset, batch)
        await _until(lambda: writer.backlog == 0, 60)
    lags: list[float] = []
    ends = iter(reports.done)
    at, done = next(ends)
    before = 0
    for moment, upto in offered:
        while done < upto:
            at, done = next(ends)
        lags += [(at - moment) * 1000] * (upto - before)
        before = upto
    return lags


async def _until(condition: Callable[[], bool], timeout_s: float) -> None:
    async with time_limit(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is measured has no event to wait for
            await asyncio.sleep(0.005)


BENCHMARK = Benchmark("projection", run)
