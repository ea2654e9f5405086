"""A worker that starts from snapshots and writes them: quicker, never another result, and never the cause of an end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NoReturn

import pytest
import pytest_asyncio

from drover.agents import snapshots
from drover.agents.host import ShardHost
from drover.agents.snapshots import SnapshotKeeper
from drover.errors import LogUnavailableError
from drover.events.codec import decode_record as decode_log_record
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire, Batch
from drover.fold.log import ShardFold
from drover.fold.snapshot import Manifest, decode_record, manifest_digest
from drover.journal import snapshots as stored_snapshots
from drover.journal.snapshots import write_snapshot
from drover.service.metrics import Metrics
from drover.testing.memory_journal import MemoryJournal, MemorySender, StoredRecord
from tests.runtime.world import SHARDS, FakeGroup, World, arrival_of, freeze

EVERY = 20


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_snapshots, "SHORT_LOG", 1)
    monkeypatch.setattr(snapshots, "SHORTEST_PAUSE_S", 0.0)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


async def serving(world: World, owner: str = "w") -> tuple[ShardHost, FakeGroup]:
    host, group, _ = await world.host(owner, snapshot_every_records=EVERY)
    await world.assign(host, range(SHARDS), group.generation)
    return host, group


async def decide(world: World, host: ShardHost, group: FakeGroup, count: int) -> None:
    """Decide that many commands of shard 0, each in a record of its own."""
    for _ in range(count):
        number = host.shards[0].next_offsets[1]
        world.command(freeze(f"f{number}"))
        host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
        await world.until(partial(is_decided, host, number), "a decision")


def is_decided(host: ShardHost, number: int) -> bool:
    return host.shards[0].next_offsets[1] > number


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return "".join(capsys.readouterr())


def manifests(world: World, shard: int = 0) -> list[Manifest]:
    records = map(decode_record, world.broker.values(world.broker.topics.snapshots, shard))
    return [record for record in records if isinstance(record, Manifest)]


def anchored(world: World) -> list[bytes]:
    """The digests of snapshots that the log of shard 0 carries."""
    records = map(decode_log_record, world.broker.values(world.broker.topics.events, 0))
    return [one.snapshot_digest for one in records if isinstance(one, Batch) and one.snapshot_digest is not None]


def replayed(world: World, until: int | None = None) -> ShardFold:
    fold = ShardFold(0, SHARDS)
    for offset, payload in enumerate(world.broker.values(world.broker.topics.events, 0)[:until]):
        fold.fold(offset, payload)
    return fold


async def test_a_snapshot_is_written_when_enough_was_appended(world: World) -> None:
    host, group = await serving(world)
    await decide(world, host, group, 3)
    assert manifests(world) == []
    await decide(world, host, group, EVERY)
    await world.until(lambda: manifests(world), "a snapshot")
    (manifest,) = manifests(world)
    assert manifest.position >= EVERY
    assert manifest.state_hash == replayed(world, manifest.position).state.hash()
    await world.until(lambda: anchored(world), "the log to vouch for it, although nothing else is to be recorded")
    value = world.broker.values(world.broker.topics.snapshots, 0)[-1]
    assert anchored(world) == [manifest_digest(value)]
    await decide(world, host, group, 3)
    assert len(manifests(world)) == 1


async def test_a_clean_stop_leaves_a_snapshot_and_the_next_worker_starts_from_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    host, group = await serving(world)
    await decide(world, host, group, 5)
    await host.close_shards()
    (manifest,) = manifests(world)
    # The last record anchors it.
    assert manifest.position == len(world.broker.values(world.broker.topics.events, 0)) - 1
    second, group = await serving(world, "second")
    assert second.shards[0].fold.state.hash() == replayed(world).state.hash()
    assert list(second.shards[0].fold.decided_commands.items()) == list(replayed(world).decided_commands.items())
    assert "snapshots are used" in said(capsys)
    await decide(world, second, group, 2)
    world.command(freeze("f0"))
    second.arrive(0, arrival_of(freeze("f0"), 7), group.generation)
    await world.until(lambda: len(world.outcomes()) == 8, "the duplicate's outcome")
    assert world.outcomes()[-1].verdict == "duplicate"


async def test_a_worker_starts_without_its_snapshots_where_nobody_lets_it_look_for_them(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, group = await serving(world)
    await decide(world, host, group, 5)
    await host.close_shards()

    def reader(*_: object, **__: object) -> NoReturn:
        raise LogUnavailableError("no further connection is taken")

    monkeypatch.setattr(MemoryJournal, "reader", reader)
    second, _ = await serving(world, "second")
    assert second.shards[0].fold.state.hash() == replayed(world).state.hash()
    assert "no further connection is taken" in said(capsys)


async def test_a_snapshot_that_the_tail_contradicts_is_not_used(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    host, group = await serving(world)
    await decide(world, host, group, 5)
    wrong = host.shards[0].fold.copy()
    wrong.sequence += 1
    await decide(world, host, group, 2)
    written = await write_snapshot(MemoryJournal(world.broker, SHARDS), world.broker.topics, wrong)
    host.shards[0].core.anchor_snapshot(written.digest)
    await decide(world, host, group, 1)
    second, _ = await serving(world, "second")
    assert second.shards[0].fold.sequence == replayed(world).sequence
    assert "snapshots are not used" in said(capsys)


async def test_what_cannot_be_written_harms_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    host, group = await serving(world)
    world.broker.aside_sends = 1
    await decide(world, host, group, EVERY + 3)
    await world.until(lambda: b'result="failed"' in host._metrics.render(), "a failure to be counted")
    assert manifests(world) == []
    world.broker.aside_sends = None
    await decide(world, host, group, 1)
    await world.until(lambda: manifests(world), "a snapshot")
    assert "no snapshot was written" in said(capsys)


async def test_a_log_that_grew_without_snapshots_gets_one_with_its_next_batch(world: World) -> None:
    for epoch in range(1, EVERY + 1):
        acquire = Acquire(schema=SCHEMA_VERSION, epoch=epoch, token=b"old", owner="old", group="g", generation=epoch)
        world.broker.put(world.broker.topics.events, 0, StoredRecord(encode_record(acquire)))
    host, group = await serving(world)
    await decide(world, host, group, 1)
    await world.until(lambda: manifests(world), "a snapshot")


async def test_without_the_setting_nothing_is_read_or_written(world: World) -> None:
    host, group, _ = await world.serving_host()
    await decide(world, host, group, EVERY + 1)
    await host.close_shards()
    assert manifests(world) == []


class Away(MemoryJournal):
    """A log whose Kafka goes away while something is sent aside: closing that connection takes its time."""

    def __init__(self, world: World) -> None:
        super().__init__(world.broker, SHARDS)
        self.sending, self.closing, self.answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def aside(self) -> AsyncGenerator[MemorySender, None]:
        self.sending.set()
        try:
            await self.answered.wait()
            yield MemorySender(self._broker)
        finally:
            self.closing.set()
            await self.answered.wait()


@pytest.fixture
async def away(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Away]:
    monkeypatch.setattr(snapshots, "STOP_TIMEOUT_S", 0.3)
    monkeypatch.setattr(snapshots, "LET_GO_S", 0.02)
    journal = Away(world)
    yield journal
    journal.answered.set()


async def test_a_stop_waits_for_no_snapshot_whose_producer_cannot_be_closed(world: World, away: Away) -> None:
    """It waited for what was left to be sent, up to ten seconds after its five, and the worker ended with 71."""
    keeper = SnapshotKeeper(away, world.broker.topics, 1, Metrics())
    anchored: list[bytes] = []
    async with asyncio.timeout(20):
        await asyncio.gather(*(keeper.shard_closing(grown(shard), anchored.append) for shard in range(SHARDS)))
        await away.closing.wait()
        await keeper.close()
    away.answered.set()
    await asyncio.sleep(0)
    assert anchored == []


async def test_a_stop_waits_for_no_snapshot_that_is_just_written(world: World, away: Away) -> None:
    keeper = SnapshotKeeper(away, world.broker.topics, 1, Metrics())
    keeper.batch_appended(grown(0), 1, lambda _: None)
    await away.sending.wait()
    async with asyncio.timeout(20):
        await keeper.close()
    assert away.closing.is_set()


def grown(shard: int) -> ShardFold:
    fold = ShardFold(shard, SHARDS)
    fold.position = 1
    return fold
