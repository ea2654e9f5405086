"""A real log with real moves, written once for all tests of the job, and what a plain fold makes of it."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from drover.errors import ConfigurationError
from drover.events.codec import decode_record, encode_record, record_headers
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCreated
from drover.events.records import Acquire, Batch
from drover.events.topics import shard_of
from drover.journal.producer import LogProducer
from drover.spark import job
from drover.spark.files import JobFiles
from drover.spark.job import JobOptions
from drover.spark.only_one import only_job
from drover.spark.schema import TABLES
from drover.spark.sinks.sqlite import SqliteSink, read_rows, read_standing
from drover.spark.view import open_tables
from tests.integration.story import read_all
from tests.integration.support import MANAGED, Installation, wait_for
from tests.spark.comparing import Rows, difference
from tests.spark.kafka_rows import Stored
from tests.spark.oracle import Oracle
from tests.spark.pure import tables_of

FENCED_PLAN = "fenced-plan"


async def read_topics(drover: Installation) -> list[Stored]:
    """Everything that stands in the log and in the samples now."""
    found = []
    for topic in (drover.names.events, drover.names.progress):
        for records in (await read_all(drover.connection, topic)).values():
            found += [Stored(one.topic, one.partition, one.offset, one.timestamp, one.value) for one in records]
    return found


async def tables_up_to(drover: Installation, directory: Path, query: str, batch: int) -> dict[str, Rows]:
    """Fold what Spark has written down as read by a query's batch and those before it."""
    ends = ends_of(JobFiles(directory).checkpoint(query), batch)
    records = [one for one in await read_topics(drover) if one.offset < ends[one.topic][str(one.partition)]]
    return Oracle().read(records, drover.names.progress).tables()


def ends_of(checkpoint: Path, batch: int) -> dict[str, dict[str, int]]:
    """Up to where a query has read with a batch: the next offset by topic and partition."""
    *_, written = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    ends: dict[str, dict[str, int]] = json.loads(written)
    return ends


def last_in(directory: Path) -> int:
    """The newest batch of those that Spark writes a file for, -1 where there is none."""
    return max((int(file.name) for file in directory.glob("[0-9]*")), default=-1)


async def wait_for_end(drover: Installation, directory: Path, query: str, timeout_s: float = 60.0) -> None:
    """Wait until a query has applied everything that stands in the log and in the samples now."""
    records = await read_topics(drover)
    checkpoint = JobFiles(directory).checkpoint(query)

    async def applied() -> bool:
        done = last_in(checkpoint / "commits")
        ends = ends_of(checkpoint, done) if done >= 0 else {}
        return bool(ends) and all(one.offset < ends[one.topic][str(one.partition)] for one in records)

    await wait_for(applied, f"{query} to have applied all there is", timeout_s)


async def plain_tables(drover: Installation) -> dict[str, Rows]:
    return Oracle().read(await read_topics(drover), drover.names.progress).tables()


def tables_in(file: Path) -> dict[str, Rows]:
    """What a SQLite file holds, as the oracle tells it."""
    sink = SqliteSink(file)
    rows = {name: sink.rows(name) for name, table in TABLES.items() if not table.is_history}
    sink.close()
    return tables_of(
        {name: {tuple(row[key] for key in TABLES[name].keys): row for row in found} for name, found in rows.items()}
    )


async def wait_until_equal(drover: Installation, file: Path, timeout_s: float = 60.0) -> None:
    """Wait until the tables say what the plain fold says of the log as it is now; fails with the first differences."""
    deadline = time.monotonic() + timeout_s
    wanted = await plain_tables(drover)
    while True:
        faults = difference(wanted, tables_in(file), [name for name in wanted if name != "ended"])
        if not faults:
            return
        assert time.monotonic() < deadline, f"{len(faults)} differences: " + "; ".join(faults[:10])
        await asyncio.sleep(0.3)


async def write_fenced(drover: Installation) -> None:
    """Append what an old owner would: batches under its token, after the takeover, and an acquire that loses."""
    topic = drover.names.events
    shard = shard_of(MANAGED, 6)
    records = (await read_all(drover.connection, topic))[shard]
    decoded = [decode_record(one.value) for one in records]
    acquires = [record for record in decoded if isinstance(record, Acquire)]
    last = next(record for record in reversed(decoded) if isinstance(record, Batch))
    queued = ReassignmentCreated(
        cluster=MANAGED, topic="nowhere", partition=0, topic_id="x", plan=FENCED_PLAN, original=(1, 2), target=(1, 3)
    )
    opened = PlanOpened(cluster=MANAGED, plan=FENCED_PLAN, by="zombie", reason="it does not know yet")
    stale = Acquire(schema=1, epoch=1, token=b"z" * 16, owner="zombie", group="g", generation=1)
    fenced = [
        Batch(
            schema=1,
            token=b"z" * 16,
            epoch=acquires[0].epoch,
            sequence=last.sequence + 1,
            at_ms=last.at_ms,
            cursors=last.cursors,
            previous_hash=b"",
            events=(opened, queued),
        )
        for _ in range(3)
    ]
    await append(drover, topic, [stale, *fenced], shard)


async def append(drover: Installation, topic: str, records: Sequence[Acquire | Batch | bytes], shard: int) -> None:
    """Append to a topic beside its owner."""
    producer = LogProducer(drover.connection, "zombie")
    await producer.start()
    for record in records:
        if isinstance(record, bytes):
            await producer.send(topic, record, partition=shard)
        else:
            await producer.send(topic, encode_record(record), partition=shard, headers=record_headers(record))
    await producer.close()


async def begin_a_batch(drover: Installation, checkpoint: Path, timeout_s: float = 60.0) -> None:
    """Have a job begin a batch that changes nothing, and return before it has ended: its record repeats a sample."""
    topic = drover.names.progress
    repeated = next(one for one in await read_topics(drover) if one.topic == topic and one.value != b"junk")
    assert repeated.value is not None
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        done = last_in(checkpoint / "commits")
        await append(drover, topic, [repeated.value], repeated.partition)
        while last_in(checkpoint / "offsets") <= done:
            assert time.monotonic() < deadline, "no batch begins"
            await asyncio.sleep(0.01)
        if last_in(checkpoint / "commits") == done:
            return
    raise AssertionError("every batch ended before it was seen")


@dataclass
class Freshness:
    """How far the tables were seen to be, and when, by polling them from outside."""

    files: JobFiles
    seen: list[tuple[int, int]] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            with open_tables(self.files) as connection:
                standing = read_standing(connection)
            if standing is not None:
                self.seen.append((standing.newest_ms, time.time_ns() // 1_000_000))
            await asyncio.sleep(0.05)

    async def delays_ms(self, drover: Installation, since_ms: int) -> list[int]:
        """How long after Kafka had appended it each record was in the tables; sorted."""
        appended = [one.appended_ms for one in await read_topics(drover) if one.appended_ms >= since_ms]
        seen = [next((at for newest, at in self.seen if newest >= moment), None) for moment in appended]
        return sorted(at - moment for at, moment in zip(seen, appended, strict=True) if at is not None)


async def wait_for_batch(files: JobFiles, number: int, timeout_s: float = 60.0) -> None:
    async def applied() -> bool:
        with open_tables(files) as connection:
            standing = read_standing(connection)
        return standing is not None and standing.batch >= number

    await wait_for(applied, f"batch {number}", timeout_s)


def has_rows(files: JobFiles, table: str) -> bool:
    """Tell whether the job has written rows of a table; False while there is no table."""
    with suppress(ConfigurationError), open_tables(files) as connection:
        return any(True for _ in read_rows(connection, table))
    return False


async def wait_for_rows(files: JobFiles, table: str, what: str, timeout_s: float = 60.0) -> None:
    async def there() -> bool:
        return has_rows(files, table)

    await wait_for(there, what, timeout_s)


def standing_in(file: Path) -> int:
    """The last batch that a SQLite file holds."""
    sink = SqliteSink(file)
    standing = sink.standing()
    sink.close()
    assert standing is not None, f"{file} holds nothing"
    return standing.batch


def driver_of(process_id: int) -> psutil.Process:
    """The Python that runs the job below spark-submit's JVM, some of whose other children show its own command line."""
    (driver,) = [child for child in psutil.Process(process_id).children() if _is_driver(child)]
    return driver


def _is_driver(process: psutil.Process) -> bool:
    try:
        program, *arguments = process.cmdline()
    except (psutil.Error, ValueError):
        return False  # it has ended
    return Path(program).name.startswith("python") and any("__main__.py" in argument for argument in arguments)


@asynccontextmanager
async def running(chosen: JobOptions, sink: SqliteSink) -> AsyncIterator[asyncio.Task[None]]:
    """Run the job in this process beside the block, and stop it at its end."""
    stop = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(job.run, chosen, stop, sinks=lambda _: (sink,)))
    try:
        yield task
    finally:
        stop.set()
        await asyncio.wait((task,))


@contextmanager
def held(files: JobFiles) -> Iterator[None]:
    """Hold a job's directory as a running job does."""
    with only_job(files):
        yield
