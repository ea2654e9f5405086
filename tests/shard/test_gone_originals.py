"""Original replicas whose brokers never come back: a rollback ends as close to its list as it can, and says so."""

import pytest

from drover.decide.rollback_guards import GONE_MS
from drover.events.commands import BrokerFailed
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentRolledBack
from drover.state.phase import Phase
from drover.testing.simulated import Loss
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, World, alter, rollback

KEY = TopicPartition("orders", 0)


async def grown(*, added: tuple[int, ...] = (4,), order: tuple[int, ...] = (1, 2, 3)) -> World:
    """[1,2,3] on its way to [4,5,6]: the `added` ones are in, the next one is being copied."""
    made = World(brokers=6, joins_by_itself=False)
    configs = {"min.insync.replicas": "2"}
    made.model.create_topic("orders", {0: list(order)}, partition_bytes=1000, configs=configs)
    await made.send(alter({KEY: [4, 5, 6]}, id="p"))
    await made.run(500)
    for broker in added:
        made.model.join_isr(KEY, broker)
        await made.run(1000)
    assert made.reassignment(KEY).current == (*order, *added)
    return made


async def reported(made: World, *brokers: int) -> None:
    for broker in brokers:
        await made.send(
            BrokerFailed(
                id=f"failed-{broker}", cluster=CLUSTER, by="ana", reason="it burnt", broker=broker,
                at_ms=made.now.wall_ms,
            )
        )  # fmt: skip


def end(made: World) -> ReassignmentRolledBack:
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    return ended


async def test_a_rollback_waits_for_a_dead_original_by_name_then_ends_without_it() -> None:
    made = await grown()
    made.model.stop_broker(3)
    await made.send(rollback(KEY))
    await made.run(5000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.ORIGINALS_OUT_OF_SYNC
    assert "broker 3 is not alive: after 10 minutes" in block.detail
    made.model.advance(GONE_MS - 20_000)
    await made.run(5000)
    assert KEY in made.state.reassignments
    made.model.advance(20_000)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 4)
    assert (end(made).replicas, end(made).missing) == ((1, 2, 4), (3,))
    assert made.state.plans["p"].rolled_back == 1
    sound(made)


async def test_a_broker_that_comes_back_in_time_is_kept() -> None:
    made = await grown()
    made.model.stop_broker(3)
    await made.send(rollback(KEY))
    await made.run(5000)
    made.model.start_broker(3)
    await made.run(1000)
    made.model.join_isr(KEY, 3)
    await made.finish()
    assert (made.replicas(KEY), end(made).missing) == ((1, 2, 3), ())


async def test_a_broker_that_was_reported_as_failed_is_not_waited_for() -> None:
    made = await grown(order=(3, 1, 2), added=(4, 5))
    made.model.stop_broker(3)
    await reported(made, 3)
    await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 4)
    assert end(made).missing == (3,)
    sound(made)


async def test_another_target_that_does_not_need_the_dead_one_is_reached() -> None:
    made = await grown()
    made.model.stop_broker(3)
    await reported(made, 3)
    made.model.joins_by_itself = True
    await made.send(alter({KEY: [1, 2, 5]}, id="new"))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 5)
    assert made.state.plans["new"].completed == 1
    sound(made)


async def test_where_nothing_can_be_dropped_the_list_stays_and_says_what_is_missing() -> None:
    """4 is gone too: without 3 and 4 there would be fewer replicas than there were."""
    made = await grown()
    made.model.stop_broker(3)
    made.model.stop_broker(4)
    await reported(made, 3)
    await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3, 4)
    assert (end(made).replicas, end(made).missing) == ((1, 2, 3, 4), (3,))


async def test_an_original_that_dies_while_kafka_drops_the_added_ones_does_not_keep_the_list_moving() -> None:
    """Kafka lists a shrink until its whole target is in the ISR (live fact)."""
    made = await grown()
    made.hold_effects = True
    await made.send(rollback(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.run(100)
    await made.release_effects()
    while made.reassignment(KEY).phase is not Phase.RESTORE_INTENDED:
        await made.run(100)
    made.model.stop_broker(3)
    made.hold_effects = False
    await made.release_effects()
    await made.run(3000)
    assert made.model.moves()[KEY].removing == (4,)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.ORIGINALS_OUT_OF_SYNC
    await reported(made, 3)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 4)
    assert end(made).missing == (3,)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_shorter_list_that_was_sent_is_an_end_even_if_the_broker_is_back(*, lost: bool) -> None:
    """What was dropped is not copied back; the answer of the call may have been lost."""
    made = await grown()
    made.model.stop_broker(3)
    await reported(made, 3)
    made.hold_effects = True
    await made.send(rollback(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.run(100)
    await made.release_effects()
    while made.reassignment(KEY).phase is not Phase.RESTORE_INTENDED:
        await made.run(100)
    assert made.reassignment(KEY).restoring == (1, 2, 4)
    made.model.start_broker(3)
    if lost:
        made.driver.lose_next(Loss.ANSWER)
    made.hold_effects = False
    await made.release_effects()
    await made.finish()
    assert (end(made).replicas, end(made).missing) == ((1, 2, 4), (3,))
