"""A call was lost, and old metadata is shown: no list counts before it has lasted."""

from drover.capability.messages import AlterPartitions, CallEnded
from drover.cluster.port import AlterRequest
from drover.reassignment.phase import Phase
from events.partitions import TopicPartition
from tests.shard.world import CLUSTER, World, alter, rollback

KEY = TopicPartition("orders", 0)


async def begun(replicas: list[int], target: list[int]) -> World:
    """A move that is copying; metadata shows the list from before it."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: replicas}, partition_bytes=1000)
    made.driver.freeze_metadata()
    await made.send(alter({KEY: target}))
    await made.settle()
    assert made.reassignment(KEY).phase is Phase.COPYING
    return made


async def rolls_back_to(call: Phase, made: World) -> None:
    """A rollback is asked for, and goes on until this call is intended."""
    made.put(rollback(KEY))
    made.hold_effects = True
    while made.reassignment(KEY).phase is not call:
        await made.turn()
        if made.held and made.reassignment(KEY).phase is not call:
            await made.release_effects()
        made.model.advance(100)
        await made.look()


async def loses_it(made: World, *, arrives: bool) -> None:
    """Nobody hears whether the call has arrived."""
    (effect,) = [effect for effect in made.held if isinstance(effect, AlterPartitions)]
    if arrives:
        await made.release_effects()
        made.core._inputs.clear()
    made.held.clear()
    made.hold_effects = False
    made.core.deliver(CallEnded(CLUSTER, tuple(effect.requests), made.now.monotonic_ms, None, lost=True))
    await made.settle()


async def ends(made: World, ending: str, replicas: tuple[int, ...]) -> None:
    """For a second metadata stays old, then it shows the truth."""
    await made.run(1000)
    made.driver.thaw_metadata()
    await made.finish()
    assert made.tags(KEY)[-1] == ending
    assert made.replicas(KEY) == replicas


async def test_the_list_from_before_a_step_that_was_done_does_not_pass_for_its_cancel() -> None:
    """Simulation seed 901290: the cancel never arrived, the grown replica stayed, and it ended as rolled back."""
    made = await begun([1, 2, 3], [3, 4, 5])
    await rolls_back_to(Phase.CANCEL_INTENDED, made)
    await loses_it(made, arrives=False)
    made.model.join_isr(KEY, 4)
    await ends(made, "reassignment-rolled-back", (1, 2, 3))
    assert made.tags(KEY).count("call-intended") == 3


async def test_the_list_from_during_a_move_that_was_cancelled_does_not_pass_for_its_end() -> None:
    """Simulation seed 900592: the merged list of a move that only adds is its target, and it ended as completed."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2]}, partition_bytes=1000)
    await made.send(alter({KEY: [1, 2, 3]}))
    await made.run(300)
    made.driver.freeze_metadata()
    await rolls_back_to(Phase.CANCEL_INTENDED, made)
    await loses_it(made, arrives=True)
    await ends(made, "reassignment-rolled-back", (1, 2))


async def test_the_list_from_before_the_move_does_not_pass_for_its_restore() -> None:
    made = await begun([1, 2, 3], [4, 2, 1])
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await rolls_back_to(Phase.RESTORE_INTENDED, made)
    assert made.replicas(KEY) == (2, 1, 3)
    made.driver._frozen = old
    await loses_it(made, arrives=False)
    await ends(made, "reassignment-rolled-back", (1, 2, 3))


async def test_a_list_from_some_time_before_does_not_pass_for_the_end_of_a_lost_step() -> None:
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [2, 1, 3]}, partition_bytes=1000)
    made.driver.freeze_metadata()
    old = made.driver._frozen
    made.driver.thaw_metadata()
    made.model.alter([AlterRequest(KEY, (1, 2, 3))])
    made.hold_effects = True
    await made.send(alter({KEY: [2, 1, 3]}))
    await loses_it(made, arrives=False)
    made.driver._frozen = old
    await ends(made, "reassignment-completed", (2, 1, 3))


async def test_what_was_observed_before_the_owner_stood_still_is_looked_at_anew() -> None:
    """S9: the topic was deleted and created again meanwhile, and the old one's list was the target's."""
    made = World(brokers=4)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({KEY: [4, 2, 3]}))
    while made.reassignment(KEY).phase is not Phase.COPYING:
        await made.run(100)
    made.model.advance(100)
    await made.look()
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.model.advance(5000)
    await made.finish()
    assert made.tags(KEY)[-1] == "reassignment-failed"
