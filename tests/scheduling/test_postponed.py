"""A prepared step that cannot begin gives up its room, so that nothing waits for what does not go on."""

from drover.client.views.waiting_reason import waiting_reason
from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import Blocker, Call, CallIntended, StepPostponed
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import STEP_MS, World, alter, rollback

ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
RATE = 50_000_000


def world(limits: Limits, **lists: tuple[int, ...]) -> World:
    made = World(brokers=7, limits=limits, joins_by_itself=False)
    for topic, replicas in lists.items():
        made.model.create_topic(topic, {0: replicas}, partition_bytes=1000)
    return made


async def prepared(made: World) -> None:
    """Let `orders` come as far as its throttle, which is not being set yet: the call would be next."""
    made.hold_effects = True
    for _ in range(30):
        await made.run(100)
        if ORDERS in made.state.reassignments and made.reassignment(ORDERS).phase is Phase.PREPARED:
            return
    raise AssertionError(f"never prepared: {made.state.reassignments}")


async def go_on(made: World) -> None:
    """Carry out what was held back, and let the look after it be acted on."""
    made.hold_effects = False
    await made.release_effects()
    await made.run(4000)


async def leaderless() -> World:
    """`orders` was to move its leader, the only movement allowed; `other` waits for that."""
    made = world(Limits(max_leader_movements=1), orders=(1,), other=(2, 3))
    made.put(alter({ORDERS: [4], OTHER: [5, 3]}, id="p", throttle_bytes_per_second=RATE))
    await prepared(made)
    made.model.stop_broker(1)
    await go_on(made)
    return made


async def test_a_partition_that_lost_its_leader_keeps_no_other_leader_waiting() -> None:
    made = await leaderless()
    waiting = made.reassignment(ORDERS)
    assert (waiting.phase, waiting.step) == (Phase.PENDING, None)
    assert waiting.block is not None
    assert waiting.block.why is Blocker.NO_LEADER
    assert made.reassignment(OTHER).phase is Phase.COPYING
    sound(made)


async def test_it_goes_on_when_the_leader_is_back() -> None:
    made = await leaderless()
    made.model.start_broker(1)
    made.model.joins_by_itself = True
    await made.finish()
    assert (made.replicas(ORDERS), made.replicas(OTHER)) == ((4,), (5, 3))
    assert [event.partition for event in made.events() if isinstance(event, StepPostponed)] == [0]
    sound(made)


async def test_it_ends_at_once_when_it_is_cancelled_meanwhile() -> None:
    made = await leaderless()
    await made.send(rollback(ORDERS))
    assert ORDERS not in made.state.reassignments
    assert not [event for event in made.events() if isinstance(event, CallIntended) and event.topic == "orders"]


async def test_what_must_copy_to_another_broker_waits_for_room_there_and_holds_none() -> None:
    """Its destination dies before the call; the other one is busy. What it held until then is free again."""
    made = world(Limits(max_moves_per_broker=1), orders=(1, 2, 3), other=(6, 7), third=(1, 7))
    third = TopicPartition("third", 0)
    await made.send(alter({OTHER: [6, 5]}))
    await made.run(1000)
    made.put(alter({ORDERS: [4, 5, 3]}, id="p", stepping=Stepping.SWAP, throttle_bytes_per_second=RATE))
    await prepared(made)
    made.put(alter({third: [1, 2]}))
    made.model.stop_broker(4)
    await go_on(made)
    assert made.reassignment(ORDERS).phase is Phase.PENDING
    assert "slots of broker 5 (1 of 1 copies in)" in str(waiting_reason(made.state, ORDERS))
    assert made.reassignment(third).phase is Phase.COPYING
    made.model.joins_by_itself = True
    made.model.start_broker(4)
    await made.finish()
    assert made.replicas(ORDERS) == (4, 5, 3)
    sound(made)


async def test_a_move_that_somebody_makes_of_it_before_the_call_is_recorded_as_theirs() -> None:
    """Kafka lists it while Drover has it in flight, and goes on listing it when Drover has not any more."""
    made = world(Limits(), orders=(1, 2, 3))
    made.put(alter({ORDERS: [4, 5, 3]}, id="p", throttle_bytes_per_second=RATE))
    await prepared(made)
    made.model.alter([AlterRequest(ORDERS, (6, 2, 3))])
    await made.run(1000)
    assert ORDERS in made.state.moves.in_flight
    await go_on(made)
    assert made.reassignment(ORDERS).phase is Phase.PENDING
    assert made.state.unmanaged[ORDERS].adding == (6,)
    made.model.join_isr(ORDERS, 6)
    await made.run(3000)
    assert ORDERS not in made.state.unmanaged
    sound(made)


async def test_between_two_steps_it_waits_at_the_list_of_the_last_one_and_goes_on_with_the_next_number() -> None:
    made = world(Limits(), orders=(1, 2, 3))
    await made.send(alter({ORDERS: [4, 5, 3]}, id="p", stepping=Stepping.SWAP, throttle_bytes_per_second=RATE))
    await made.run(1000)
    made.model.join_isr(ORDERS, 4)
    while made.tags(ORDERS).count("call-accepted") < 2:
        await made.run(STEP_MS)
    await prepared(made)
    made.model.stop_broker(5)
    await go_on(made)
    waiting = made.reassignment(ORDERS)
    assert (waiting.phase, waiting.current, waiting.load) == (Phase.CONFIRMED, (4, 3, 2), ())
    assert waiting.block is not None
    assert waiting.block.why is Blocker.DEAD_DESTINATION
    made.model.joins_by_itself = True
    made.model.start_broker(5)
    await made.finish()
    steps = [event.step for event in made.events() if isinstance(event, CallIntended) and event.call is Call.STEP]
    assert steps == [1, 2, 3]
    assert made.replicas(ORDERS) == (4, 5, 3)
    sound(made)
