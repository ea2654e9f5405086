"""State may change while a worker awaits a call: here a fake changes it in the middle of one."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NoReturn

import pytest
import pytest_asyncio

from drover.agents import snapshots
from drover.agents.host import ShardHost
from drover.errors import AppendUnknownError, LogUnavailableError
from drover.events.codec import decode_record
from drover.events.records import Acquire
from drover.testing.memory_journal import StoredRecord
from tests.runtime.world import SHARDS, World, arrival_of, freeze


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def _acquires(world: World, shard: int) -> list[Acquire]:
    records = map(decode_record, world.broker.values(world.broker.topics.events, shard))
    return [record for record in records if isinstance(record, Acquire)]


async def test_a_shard_that_is_revoked_while_its_last_snapshot_is_written_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group may rebalance until it is left: the worker ended with an assertion and 70, and left no group."""
    shard_host, group, _ = await world.host("w", snapshot_every_records=20)
    await world.assign(shard_host, range(SHARDS), group.generation)
    shard_host.arrive(0, arrival_of(freeze("f0"), 0), group.generation)
    await world.until(lambda: shard_host.shards[0].next_offsets[1] == 1, "a decision")

    async def write(*_: object) -> NoReturn:
        shard_host.partitions_revoked()
        raise LogUnavailableError("not written")

    monkeypatch.setattr(snapshots, "write_snapshot", write)
    await shard_host.close_shards()
    assert len(world.batches()) == 1, "a shard that was taken away gets no closing record"


async def test_a_gap_is_forgotten_when_the_consumer_is_set_back_before_it_was_looked_at(world: World) -> None:
    host, group, _ = await world.serving_host()
    for number in range(3):
        world.command(freeze(f"f{number}"))
    host.arrive(0, arrival_of(freeze("f2"), 2), group.generation)
    host.positions_set(host.positions())
    await world.until(lambda: not host.shards[0].delivery._proofs, "the gap to be looked at")
    assert not world.ended
    for number in range(3):
        host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
    await world.until(lambda: len(world.outcomes()) == 3, "all three outcomes")


async def test_a_gap_of_a_shard_that_was_revoked_meanwhile_may_be_unreadable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_host, group, _ = await world.serving_host()

    async def first_offset(*_: object) -> NoReturn:
        shard_host.partitions_revoked()
        raise LogUnavailableError("nobody answers")

    monkeypatch.setattr(shard_host.log.journal, "first_offset", first_offset)
    shard_host.arrive(0, arrival_of(freeze("f2"), 2), group.generation)
    await world.until(lambda: not shard_host.shards[0].delivery._proofs, "the gap to be looked at")
    assert not world.ended


class Bounds:
    """The journal's bounds; whoever asks for those of a topic for the first time loses the shards meanwhile."""

    def __init__(self, shard_host: ShardHost, topic: str) -> None:
        self._host, self._topic, self._real = shard_host, topic, shard_host.log.journal.bounds
        self.asked = 0

    async def __call__(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        found = await self._real(topic, at_least)
        if topic == self._topic:
            self.asked += 1
            if self.asked == 1:
                self._host.partitions_revoked()
        return found


async def test_shards_that_are_revoked_while_the_topics_are_checked_are_not_taken_from_the_next_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_host, group, _ = await world.host("w")
    bounds = Bounds(shard_host, world.broker.topics.commands[-1])
    monkeypatch.setattr(shard_host.log.journal, "bounds", bounds)
    await world.assign(shard_host, range(SHARDS), group.generation)
    assert bounds.asked == 1
    assert _acquires(world, 0) == _acquires(world, 1) == []


class Append:
    """The journal's append; `before` runs once, before the first record is written."""

    def __init__(self, shard_host: ShardHost, before: Any) -> None:
        self._real, self._before = shard_host.log.journal.append, before

    async def __call__(self, shard: int, payload: bytes, headers: Any) -> int:
        if self._before is not None:
            before, self._before = self._before, None
            await before()
        return await self._real(shard, payload, headers)


async def test_a_shard_that_is_damaged_while_it_is_acquired_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The barrier counted as overtaken: no shard was served until the group was joined again, after 20 s."""
    shard_host, group, clusters = await world.serving_host()
    shard_host.partitions_revoked()
    token = shard_host.shards[0].fold.token

    async def damage() -> None:
        world.broker.put(world.broker.topics.events, 0, StoredRecord(b"\xc1" + token))
        await world.until(lambda: shard_host.shards[0].is_damaged, "the damage to be seen")

    monkeypatch.setattr(shard_host.log.journal, "append", Append(shard_host, damage))
    group.generation += 1
    await world.assign(shard_host, range(SHARDS), group.generation)
    assert [shard.assigned for shard in shard_host.shards] == [False, True]
    assert clusters.owned == [1]
    assert shard_host.is_joined


async def test_a_barrier_that_fails_while_the_worker_is_stopped_is_no_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_host, group, _ = await world.host("w")

    async def stop() -> NoReturn:
        await shard_host.close_shards()
        raise AppendUnknownError("the leader is away")

    monkeypatch.setattr(shard_host.log.journal, "append", Append(shard_host, stop))
    await world.assign(shard_host, range(SHARDS), group.generation)
    assert not shard_host.is_joined


async def test_a_last_record_that_nobody_confirms_does_not_keep_a_worker_in_its_group(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker ended without leaving it, and its shards were served by nobody until the session was over."""
    shard_host, group, _ = await world.serving_host()
    world.command(freeze("f0"))
    shard_host.arrive(0, arrival_of(freeze("f0"), 0), group.generation)
    await world.until(lambda: shard_host.shards[0].next_offsets[1] == 1, "a decision")

    async def append(*_: object) -> NoReturn:
        raise AppendUnknownError("no acknowledgement")

    with monkeypatch.context() as patched:
        patched.setattr(shard_host.log.journal, "append", append)
        await shard_host.close_shards()
    assert not any(shard.assigned for shard in shard_host.shards)
