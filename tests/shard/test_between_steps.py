"""Between two steps a reassignment holds no room on a broker, is the first to get some, and says what it waits for."""

from drover.client.views.waiting_reason import waiting_reason
from drover.events.partitions import TopicPartition
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import World, alter

FIRST, SECOND, *REST = (TopicPartition("orders", number) for number in range(6))


async def test_what_is_between_two_steps_goes_before_what_is_queued() -> None:
    made = World(brokers=9, limits=Limits(max_moves_per_broker=1), joins_by_itself=False)
    assignments = {0: [1, 2], 1: [3, 2], 2: [6, 2], 3: [7, 2], 4: [8, 2], 5: [9, 2]}
    made.model.create_topic("orders", {number: list(replicas) for number, replicas in assignments.items()})
    await made.send(alter({FIRST: [4, 5]}))
    await made.send(alter({SECOND: [3, 5]}))
    await made.send(alter({key: [assignments[key.partition][0], 5] for key in REST}))
    await made.run(1000)
    assert [made.reassignment(key).phase for key in (FIRST, SECOND)] == [Phase.COPYING, Phase.COPYING]
    made.model.join_isr(FIRST, 4)
    await made.run(4000)
    assert made.reassignment(FIRST).phase is Phase.CONFIRMED
    reason = waiting_reason(made.state, FIRST)
    assert reason is not None
    assert reason.why == "slots of broker 5 (1 of 1 copies in)"
    made.model.join_isr(SECOND, 5)
    await made.run(1000)
    assert made.model.moves()[FIRST].adding == (5,)
    assert {made.reassignment(key).phase for key in REST} == {Phase.PENDING}
    made.model.joins_by_itself = True
    made.model.join_isr(FIRST, 5)
    await made.finish()
    sound(made)
