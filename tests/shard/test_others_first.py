"""What others change between a decision and its first call."""

import pytest

from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentCreated
from tests.shard.sound import sound
from tests.shard.world import World, alter

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def world() -> World:
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    return made


@pytest.mark.parametrize("queue", [False, True])
async def test_where_others_were_first_another_target_begins_from_the_list_that_is_there(queue: bool) -> None:
    made = world()
    made.put(alter({FIRST: [4, 2, 3]}))
    made.hold_effects = True
    await made.settle()
    made.model.alter([AlterRequest(FIRST, (5, 2, 3))])
    made.model.advance(1001)
    made.hold_effects = False
    await made.release_effects()
    await made.run(5000)
    blocked = made.reassignment(FIRST).block
    assert blocked is not None
    assert blocked.why is Blocker.UNMANAGED_CHANGE
    await made.send(alter({FIRST: [1, 2, 3]}, queue=queue))
    await made.finish()
    assert made.replicas(FIRST) == (1, 2, 3)
    queued = [event for event in made.events() if isinstance(event, ReassignmentCreated) and event.key == FIRST]
    assert [event.original for event in queued] == [(1, 2, 3), (5, 2, 3)]
    sound(made)


async def test_the_same_target_again_begins_from_the_list_that_is_there_also_in_a_frozen_cluster() -> None:
    """Nobody had looked at the partition for a while, and it was said not to exist."""
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1_000_000)
    await made.freeze()
    await made.send(alter({FIRST: [4, 2, 3], SECOND: [4, 3, 1]}))
    made.model.alter([AlterRequest(FIRST, (5, 2, 3)), AlterRequest(SECOND, (5, 3, 1))])
    await made.run(5000)
    await made.unfreeze()
    await made.run(5000)
    blocked = made.reassignment(SECOND).block
    assert blocked is not None
    assert blocked.why is Blocker.UNMANAGED_CHANGE
    await made.freeze()
    await made.run(10_500)
    outcome = await made.send(alter({SECOND: [4, 3, 1]}, id="again"))
    assert outcome.verdict == "accepted", outcome.refusals
    sound(made)
