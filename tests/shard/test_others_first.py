"""What others change between a decision and its first call."""

import pytest

from drover.cluster.port import AlterRequest
from events.partitions import TopicPartition
from events.reassignments import Blocker, ReassignmentQueued
from tests.shard.sound import sound
from tests.shard.world import World, alter

FIRST = TopicPartition("orders", 0)


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
    assert blocked.why is Blocker.FOREIGN_CHANGE
    await made.send(alter({FIRST: [1, 2, 3]}, queue=queue))
    await made.finish()
    assert made.replicas(FIRST) == (1, 2, 3)
    queued = [event for event in made.events() if isinstance(event, ReassignmentQueued) and event.key == FIRST]
    assert [event.original for event in queued] == [(1, 2, 3), (5, 2, 3)]
    sound(made)
