"""How long a worker needs from its start until the log is folded, with 100,000 reassignments waiting in one shard."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.log_maker import LogMaker
from bench.reference import Reference
from bench.results import AtMost, Benchmark, Row, check, percentile, say
from bench.rig import POLL_S, Rig, fresh_cluster
from drover.cluster.kafka import KafkaDriver
from drover.events.codec import decode_record, encode_record, record_headers
from drover.events.commands import Freeze, Unfreeze
from drover.events.topics import TopicNames
from drover.fold.log import ShardFold
from drover.fold.snapshot import encode_fold
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.snapshots import write_snapshot
from drover.local import LocalCluster
from drover.state.scheduling import Limits
from tests.shard.vouching import vouching

HISTORY = 20_000
PER_ALTER = 1000
TAIL = 10
REPLAYED = "the log was replayed"
TIMEOUT_S = 120.0
# The reference is timed so often after each pair of starts.
REFERENCE_RUNS = 100


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the start of a worker until the log was folded, and the processor time in them."""

    seconds: float
    busy: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s ({self.busy:.2f} s busy)"


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Write a log and its snapshot to a real Kafka, then start workers by turns with and without it."""
    active = 10_000 if quick else 100_000
    say(f"making a log that leaves {active:,} reassignments waiting")
    maker = await _log(active, HISTORY // 10 if quick else HISTORY)
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(maker.log[:-TAIL]):
        fold.fold(offset, payload)
    stalls_ms = await _stalls(fold)
    async with fresh_cluster() as cluster:
        rig = await _seed(cluster, maker, fold)
        with_snapshot: list[Start] = []
        without: list[Start] = []
        reference, reference_ms = Reference(), list[float]()
        for number in range(1 if quick else 5):
            with_snapshot.append(await _start(rig, f"with-{number}", every_records=10_000))
            without.append(await _start(rig, f"without-{number}", every_records=0))
            reference_ms += [reference.elapsed_ms() for _ in range(REFERENCE_RUNS)]
            say(f"from the snapshot {with_snapshot[-1]}, from the first record {without[-1]}")
        await rig.driver.close()
    # A thousand times the reference: as many seconds as it takes milliseconds.
    reference_s = percentile(reference_ms, 50)
    what = f"worker, from process start to folded, {active:,} waiting"
    return (
        Row(f"{what}, longest", max(one.seconds for one in with_snapshot), "s", reference_s, gate=AtMost(3.0)),
        Row(f"{what}, median", _median(with_snapshot, "seconds"), "s", _median(without, "seconds")),
        Row("processor time of that, median", _median(with_snapshot, "busy"), "s", _median(without, "busy")),
        Row("longest stall of the event loop while a snapshot is made", max(stalls_ms), "ms", goal=AtMost(50)),
    )


def _median(starts: list[Start], what: str) -> float:
    return percentile([getattr(one, what) for one in starts], 50)


async def _log(active: int, history: int) -> LogMaker:
    """Make a log of many small decisions, at whose end that many reassignments wait, held by a freeze."""
    maker = LogMaker(active, Limits())
    for number in range(history):
        kind = Unfreeze if number % 2 else Freeze
        await maker.decide(kind(id=maker.new_id(), cluster="prod", by="ana@example", reason="history"))
    await maker.decide(Freeze(id=maker.new_id(), cluster="prod", by="ana@example", reason="nothing starts"))
    for first in range(0, active, PER_ALTER):
        await maker.decide(maker.alter(range(first, min(first + PER_ALTER, active))))
    check(len(maker.state.reassignments) == active, "not every reassignment is waiting")
    return maker


async def _stalls(fold: ShardFold) -> list[float]:
    """Make an image beside an event loop that has nothing to do, and time its pauses in milliseconds."""
    pauses: list[float] = []
    for _ in range(3):
        making = asyncio.create_task(asyncio.to_thread(encode_fold, fold.copy()))
        last = time.perf_counter()
        while not making.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            pauses.append((now - last) * 1000)
            last = now
        await making
    return pauses


async def _seed(cluster: LocalCluster, maker: LogMaker, fold: ShardFold) -> Rig:
    connection = LogConnection(cluster.bootstrap, TopicNames("start"))
    await topics.init(connection, shards=1)
    journal = KafkaJournal(connection, 1, "seed")
    await journal.start()
    try:
        for first in range(1, len(maker.log), 500):
            some = maker.log[first : first + 500]
            await asyncio.gather(
                *(journal.append(0, payload, record_headers(decode_record(payload))) for payload in some)
            )
        written = await write_snapshot(journal, connection.topics, fold)
        record = vouching(maker.fold, written.digest)
        await journal.append(0, encode_record(record), record_headers(record))
    finally:
        await journal.close()
    directory = cluster.directory / "start"
    directory.mkdir()
    return Rig(cluster, directory, connection, KafkaDriver("observer", cluster.bootstrap))


async def _start(rig: Rig, name: str, *, every_records: int) -> Start:
    """Start a worker and time how long it takes until it says that the log is folded."""
    settings = rig.directory / "drover.toml"
    settings.write_text(
        f'[log]\nbootstrap = "{rig.cluster.bootstrap}"\nprefix = "start"\n\n'
        f"[worker]\nsnapshot_every_records = {every_records}\n",
        encoding="utf-8",
    )
    log_file = rig.directory / f"{name}.log"
    began = time.monotonic()
    await rig.start_worker(name)
    while REPLAYED not in (said := _said(log_file)):
        check(time.monotonic() - began < TIMEOUT_S, lambda: f"the worker did not fold the log:\n{_said(log_file)}")
        await asyncio.sleep(POLL_S)
    took = time.monotonic() - began
    times = psutil.Process(rig.workers[name].pid).cpu_times()
    await rig.end_worker(name)
    used = "snapshots are used" in said
    check(used is (every_records > 0), f"the snapshot was {'' if used else 'not '}used:\n{said}")
    return Start(took, times.user + times.system)


def _said(log_file: Path) -> str:
    return log_file.read_text(encoding="utf-8") if log_file.exists() else ""


METHOD = f"""\
One shard with {HISTORY:,} small decisions and then 100 commands that leave 100,000 reassignments waiting; its snapshot
is {TAIL} of those commands (10,000 partitions) old. All of it stands on a real four-broker Kafka. `drover worker` is
started as a user would, by turns with and without snapshots, five times each: seconds from the start of the process to
its word that the log is folded, from where on it may join the group. *Baseline*: from the first record; for the
longest, a thousand times a fixed piece of plain Python (`bench/reference.py`), which takes 1 ms on the machine for
which the gate was chosen. The last row: an image of that state is made in a thread, as a worker does, beside an event
loop that wakes every millisecond."""
BENCHMARK = Benchmark("start", "Start with 100,000 reassignments", METHOD, run)
