"""A topic that is deleted takes with it what waits for it, whatever its turn."""

import pytest

from drover.events.partitions import TopicPartition
from drover.reconcile.debounce import CERTAIN_AFTER_MS
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import World, alter

SLOW = TopicPartition("slow", 0)
MANY = [TopicPartition("many", number) for number in range(1000)]


def world() -> World:
    made = World(brokers=5, limits=Limits(max_partitions_in_flight=1), joins_by_itself=False)
    made.model.create_topic("slow", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    made.model.create_topic("many", {key.partition: [1, 2, 3] for key in MANY}, partition_bytes=1)
    return made


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made anew"])
@pytest.mark.parametrize("queue", [False, True], ids=["pending", "queued"])
async def test_a_thousand_moves_of_a_deleted_topic_end_at_once(*, queue: bool, again: bool) -> None:
    made = world()
    await made.send(alter({SLOW: [4, 2, 3]}, id="slow"))
    await made.run(300)
    assert made.reassignment(SLOW).phase is Phase.COPYING
    await made.send(alter({key: [4, 2, 3] for key in MANY}, id="many", queue=queue))
    await made.run(1000)
    made.model.delete_topic("many")
    if again:
        made.model.create_topic("many", {key.partition: [1, 2, 3] for key in MANY}, partition_bytes=1)
    await made.run(CERTAIN_AFTER_MS + 10_000)
    assert made.reassignment(SLOW).phase is Phase.COPYING, "it holds the only slot all the time"
    assert (len(made.state.reassignments), len(made.state.queue)) == (1, 0)
    plan = made.state.plans["many"]
    assert (plan.status, plan.failed + plan.withdrawn) == (PlanStatus.FINISHED, 1000)
    sound(made)


async def test_a_topic_that_is_seen_to_be_there_loses_nothing() -> None:
    made = world()
    await made.send(alter({SLOW: [4, 2, 3]}, id="slow"))
    await made.send(alter({key: [4, 2, 3] for key in MANY[:3]}, id="many"))
    await made.run(20_000)
    assert len(made.state.moves.pending) == 3
