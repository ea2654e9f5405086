"""No record is larger than the log takes: what is too much for one is divided."""

import pytest

from drover.events.partitions import TopicPartition
from drover.shard import proposals
from tests.shard.sound import sound
from tests.shard.world import World, alter, rollback


async def test_what_follows_from_a_decision_is_divided_into_records_and_nothing_is_called_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proposals, "RECORD_BYTES", 3000)
    world = World(brokers=5)
    world.model.create_topic("orders", {number: [1, 2, 3] for number in range(10)}, partition_bytes=1000)
    keys = [TopicPartition("orders", number) for number in range(10)]
    for number, key in enumerate(keys):
        world.put(alter({key: (4, 2, 1)}, id=f"a{number}"))
    await world.turn()
    first = world.batches()[-1]
    assert len(first.outcomes) == 10
    assert world.core.effects(world.now) == ()
    world.put(rollback(keys[0], id="away"))
    await world.turn()
    second = world.batches()[-1]
    assert (second.outcomes, second.cursors, second.at_ms) == ((), first.cursors, first.at_ms)
    await world.finish()
    assert all(len(payload) < 6000 for payload in world.log)
    assert world.replicas(keys[1]) == (4, 2, 1)
    assert [outcome.id for outcome in world.outcomes()] == [*(f"a{number}" for number in range(10)), "away"]
    sound(world)


@pytest.mark.parametrize("turns", range(1, 6))
async def test_an_owner_that_dies_between_two_such_records_loses_no_decision(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "RECORD_BYTES", 3000)
    world = World(brokers=5)
    world.model.create_topic("orders", {number: [1, 2, 3] for number in range(10)}, partition_bytes=1000)
    keys = [TopicPartition("orders", number) for number in range(10)]
    world.put(alter(dict.fromkeys(keys, (4, 2, 1)), id="a", throttle_bytes_per_second=1_000_000))
    for _ in range(turns):
        await world.turn()
    world.crash()
    await world.finish()
    assert [outcome.verdict for outcome in world.outcomes()] == ["accepted"]
    assert {world.replicas(key) for key in keys} == {(4, 2, 1)}
    sound(world)
