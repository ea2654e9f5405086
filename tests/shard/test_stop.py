"""Stop on the model cluster: what earlier steps brought in stays, the running one goes (R455-9, R455-10)."""

import pytest

from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentRolledBack, ReassignmentStopped
from drover.state.phase import Phase
from drover.testing.simulated import Loss
from tests.shard.world import World, alter, rollback, stop

KEY = TopicPartition("orders", 0)


async def second_step(original: tuple[int, ...] = (1, 2, 3)) -> World:
    """E2 of KIP-455: [1,2,3] to [3,4,5], 4 is in, 5 is being copied."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: list(original)}, partition_bytes=1000)
    await made.send(alter({KEY: [3, 4, 5]}))
    await made.run(500)
    made.model.join_isr(KEY, 4)
    await made.run(1000)
    assert made.reassignment(KEY).current == (*original, 4)
    assert made.model.moves()[KEY].adding == (5,)
    return made


async def test_e2_of_the_page() -> None:
    """TV-214."""
    made = await second_step()
    await made.send(stop(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3, 4)
    assert made.model.moves() == {}
    (plan,) = made.state.plans.values()
    assert (plan.stopped, plan.rolled_back) == (1, 0)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentStopped)]
    assert ended.replicas == (1, 2, 3, 4)


@pytest.mark.parametrize("loss", list(Loss))
async def test_a_lost_cancel_stops_all_the_same(loss: Loss) -> None:
    made = await second_step((2, 1, 3))
    made.hold_effects = True
    await made.send(stop(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.run(100)
    made.hold_effects = False
    made.driver.lose_next(loss)
    await made.release_effects()
    await made.finish()
    assert made.replicas(KEY) == (2, 1, 3, 4)


async def test_a_step_that_was_done_meanwhile_is_kept() -> None:
    made = await second_step()
    await made.send(stop(KEY))
    made.model.join_isr(KEY, 5)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3, 4, 5)


@pytest.mark.parametrize("moment", range(8))
async def test_a_stop_may_become_a_rollback_at_any_moment(moment: int) -> None:
    """The first step of one that replaces at once: Kafka's cancel loses the order, so that there is a restore."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(500)
    await made.send(stop(KEY))
    for number in range(moment):
        await (made.look() if number % 2 else made.turn())
        made.model.advance(50)
    if KEY in made.state.reassignments:
        await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    ends = [event for event in made.events() if isinstance(event, ReassignmentStopped | ReassignmentRolledBack)]
    assert len(ends) == 1


async def held_in_the_last_step() -> World:
    """All is grown; Kafka holds the last step, which drops 1 and 2, back until 5 is in sync again."""
    made = await second_step()
    await made.freeze()
    made.model.join_isr(KEY, 5)
    await made.run(2500)
    made.hold_effects = True
    await made.unfreeze()
    while made.reassignment(KEY).phase is not Phase.INTENDED:
        await made.run(100)
    made.hold_effects = False
    made.model.stop_broker(5)
    await made.release_effects()
    await made.run(300)
    assert made.model.moves()[KEY].removing == (1, 2)
    return made


async def test_the_order_that_the_cancel_of_the_last_step_loses_is_put_back() -> None:
    """X1, live fact: the null-cancel leaves [3,4,5,1,2]."""
    made = await held_in_the_last_step()
    await made.send(stop(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3, 4, 5)
    assert made.tags(KEY)[-1] == "reassignment-stopped"


async def test_after_the_restore_of_a_stop_a_rollback_goes_on_to_the_original() -> None:
    made = await held_in_the_last_step()
    await made.send(stop(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCELLING:
        await made.run(100)
    made.hold_effects = True
    while made.reassignment(KEY).phase is not Phase.RESTORE_INTENDED:
        await made.run(100)
    await made.send(rollback(KEY))
    assert made.reassignment(KEY).restoring == (1, 2, 3, 4, 5)
    made.hold_effects = False
    await made.release_effects()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.tags(KEY)[-1] == "reassignment-rolled-back"
