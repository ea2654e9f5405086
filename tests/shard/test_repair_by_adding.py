"""Below min.insync.replicas an alter is the repair: what adds replicas is never held back, only what drops some."""

import pytest

from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, CallIntended
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import World, alter

KEY = TopicPartition("orders", 0)


async def short(min_isr: int, *dead: int, max_replicas_per_step: int = 1) -> World:
    """[1,2,3], of which some are dead and out of the ISR."""
    made = World(brokers=5, limits=Limits(max_replicas_per_step=max_replicas_per_step))
    configs = {"min.insync.replicas": str(min_isr)}
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000, configs=configs)
    for broker in dead:
        made.model.stop_broker(broker)
    await made.run(500)
    return made


@pytest.mark.parametrize("max_replicas_per_step", [1, 2])
async def test_two_dead_brokers_are_replaced(max_replicas_per_step: int) -> None:
    made = await short(2, 2, 3, max_replicas_per_step=max_replicas_per_step)
    await made.send(alter({KEY: [1, 4, 5]}))
    await made.finish()
    assert made.replicas(KEY) == (1, 4, 5)
    sound(made)


@pytest.mark.parametrize("throttle", [None, 1_000_000])
async def test_one_dead_broker_is_replaced_where_all_must_be_in_sync(throttle: int | None) -> None:
    made = await short(3, 3)
    await made.send(alter({KEY: [1, 2, 4]}, throttle_bytes_per_second=throttle))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 4)
    steps = [event.replicas for event in made.events() if isinstance(event, CallIntended)]
    assert steps == [(1, 2, 3, 4), (1, 2, 4)]
    sound(made)


async def test_what_drops_a_replica_in_sync_waits_by_name_until_enough_are_back() -> None:
    made = await short(3, 3)
    await made.send(alter({KEY: [2, 4, 3]}))
    await made.run(3000)
    assert made.replicas(KEY) == (1, 2, 3, 4)
    waiting = made.reassignment(KEY)
    assert waiting.phase is Phase.CONFIRMED
    assert waiting.block is not None
    assert waiting.block.why is Blocker.REPLICAS_OUT_OF_SYNC
    made.model.start_broker(3)
    await made.finish()
    assert made.replicas(KEY) == (2, 4, 3)


async def test_a_shrink_below_min_isr_waits() -> None:
    made = await short(2, 2, 3)
    await made.send(alter({KEY: [1, 2]}))
    await made.run(3000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert (block.why, "bring replicas 2, 3 back" in block.detail) == (Blocker.BELOW_MIN_ISR, True)
