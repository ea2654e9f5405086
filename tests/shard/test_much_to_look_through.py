"""Commands that look through everything that moves: a batch decides no more of them than take half a second."""

import pytest

from drover.events.partitions import TopicPartition
from drover.reconcile import batch
from drover.state.scheduling import Limits
from tests.shard.world import World, alter, cancel

KEYS = [TopicPartition("orders", number) for number in range(30)]


async def world() -> World:
    made = World(limits=Limits(max_partitions_in_flight=1), joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: [1, 2] for key in KEYS}, partition_bytes=1)
    await made.look()
    await made.send(alter({key: [1, 3] for key in KEYS}, id="a"))
    return made


def decided(made: World) -> list[str]:
    return [outcome.id for outcome in made.outcomes() if outcome.id != "a"]


@pytest.mark.parametrize("scope", [{"topics": ("absent",)}, {"plan": "absent"}])
async def test_many_such_cancels_are_decided_over_several_batches_in_their_order(
    monkeypatch: pytest.MonkeyPatch, scope: dict[str, object]
) -> None:
    monkeypatch.setattr(batch, "FULL_LOOKED", 3 * len(KEYS))
    made = await world()
    for number in range(10):
        made.put(cancel(id=f"c{number}", mode="rollback", **scope))
    await made.turn()
    assert decided(made) == ["c0", "c1", "c2"]
    await made.settle()
    assert decided(made) == [f"c{number}" for number in range(10)]


async def test_cancels_of_partitions_are_decided_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FULL_LOOKED", 3 * len(KEYS))
    made = await world()
    for number, key in enumerate(KEYS[1:]):
        made.put(cancel(key, id=f"c{number}", mode="rollback"))
    await made.turn()
    assert len(decided(made)) == len(KEYS) - 1
