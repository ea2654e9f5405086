"""What a worker looked at before it waited may be gone afterwards: each fake changes it in the middle of one call."""

from collections.abc import AsyncIterator
from typing import NoReturn

import pytest
import pytest_asyncio

from drover.errors import LogUnavailableError
from drover.runtime import snapshots
from tests.runtime.world import SHARDS, World, arrival_of, freeze


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


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
