"""Old metadata is shown after a lost call, or to a new owner: no list from before passes for the one that is there."""

import itertools

import pytest

from drover.cluster.port import AlterRequest
from drover.events.commands import Blacklist
from drover.events.partitions import TopicPartition
from drover.events.refusals import RefusalCode
from drover.reconcile.messages import AlterPartitions, CallEnded
from drover.reconcile.observations import METADATA_LAG_MS
from drover.state.lists import LISTS_KEPT_MS, ListsState
from drover.state.phase import Phase
from drover.state.scheduling import Limits
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


async def test_a_new_owner_does_not_take_the_list_from_before_a_move_for_the_original() -> None:
    """Simulation seed 81080385: the predecessor knew what it had done, and its successor believed old metadata."""
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.driver.freeze_metadata()
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.finish()
    made.driver._frozen = old
    made.crash()
    outcome = await made.send(alter({KEY: [4, 5, 1]}))
    assert [refusal.code for refusal in outcome.refusals] == [RefusalCode.CLUSTER_UNAVAILABLE], "a worker looks again"
    made.driver.thaw_metadata()
    await made.send(alter({KEY: [4, 5, 1]}))
    assert made.reassignment(KEY).original == (4, 2, 1)


async def test_a_new_owner_does_not_take_the_list_from_before_a_restore_for_its_result() -> None:
    """Simulation seed 81083502: the list was restored with a listed broker last, which is not listed any more."""
    made = await begun([1, 2, 3], [4, 2, 1])
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await made.send(Blacklist(id="list-1", cluster=CLUSTER, by="ana", reason="test", brokers=(2,)))
    made.put(rollback(KEY))
    made.hold_effects = True
    while made.reassignment(KEY).phase is not Phase.RESTORING:
        made.model.advance(100)
        await made.look()
        await made.settle()
        await made.release_effects()
        await made.settle()
    made.driver._frozen = old
    made.hold_effects = False
    await made.send(Blacklist(id="list-2", cluster=CLUSTER, by="ana", reason="test", brokers=()))
    made.crash()
    await made.run(1000)
    assert made.reassignment(KEY).phase is Phase.RESTORING
    made.driver.thaw_metadata()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.tags(KEY).count("call-intended") == 4


@pytest.mark.parametrize("lost", [False, True], ids=["never-sent", "lost"])
@pytest.mark.parametrize("takeover", [False, True], ids=["same-owner", "new-owner"])
async def test_the_list_that_a_restore_has_replaced_does_not_pass_for_the_next_one(
    *, takeover: bool, lost: bool
) -> None:
    """Simulation seed 81651731: a broker was listed after the restore, so that the list before it was wanted again."""
    made = await begun([1, 2, 3], [4, 2, 3])
    made.driver.thaw_metadata()
    await rolls_back_to(Phase.RESTORE_INTENDED, made)
    assert made.replicas(KEY) == (2, 3, 1)
    made.driver.freeze_metadata()
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await made.release_effects()
    await made.send(Blacklist(id="list", cluster=CLUSTER, by="ana", reason="test", brokers=(1,)))
    while made.reassignment(KEY).restoring != (2, 3, 1):
        await made.turn()
        made.model.advance(10)
        await made.look()
    assert made.replicas(KEY) == (1, 2, 3)
    await made.settle()
    made.held.clear()
    made.hold_effects = False
    made.core.deliver(CallEnded(CLUSTER, (KEY,), made.now.monotonic_ms, None, lost=lost))
    await made.settle()
    if takeover:
        made.crash()
    made.driver._frozen = old
    await made.run(1000)
    assert "reassignment-rolled-back" not in made.tags(KEY)
    made.driver.thaw_metadata()
    await made.finish()
    assert "reassignment-rolled-back" in made.tags(KEY)
    assert made.replicas(KEY) == (2, 3, 1)
    assert made.tags(KEY).count("call-intended") == 5


async def test_a_new_owner_does_not_take_the_list_from_before_a_confirmed_step_for_its_rollback() -> None:
    made = World(brokers=6, joins_by_itself=False, limits=Limits(max_replicas_per_step=1))
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    made.driver.freeze_metadata()
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await made.send(alter({KEY: [4, 5, 6]}))
    await made.settle()
    await made.freeze()
    made.model.join_isr(KEY, 4)
    await made.run(1000)
    assert made.reassignment(KEY).phase is Phase.CONFIRMED
    assert made.replicas(KEY) == (1, 2, 3, 4)
    made.driver._frozen = old
    made.crash()
    made.put(rollback(KEY))
    await made.run(1000)
    assert "reassignment-rolled-back" not in made.tags(KEY)
    made.driver.thaw_metadata()
    await made.finish()
    assert made.tags(KEY)[-1] == "reassignment-rolled-back"
    assert made.replicas(KEY) == (1, 2, 3)


async def test_a_step_begins_on_no_look_that_is_half_a_second_old() -> None:
    """Somebody else may have moved the partition since."""
    made = World(brokers=4)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.freeze()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(300)
    made.model.advance(600)
    await made.unfreeze()
    await made.settle()
    assert made.reassignment(KEY).phase is Phase.PENDING
    await made.look()
    await made.settle()
    assert made.reassignment(KEY).phase is Phase.COPYING


async def test_what_others_change_after_a_takeover_is_believed_after_two_seconds() -> None:
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.finish()
    made.crash()
    made.model.alter([AlterRequest(KEY, (1, 2, 4))])
    outcome = await made.send(alter({KEY: [5, 2, 1]}))
    assert outcome.refusals
    await made.run(METADATA_LAG_MS)
    await made.send(alter({KEY: [5, 2, 1]}))
    assert made.reassignment(KEY).original == (1, 2, 4)


def test_the_lists_of_what_ended_long_ago_are_dropped() -> None:
    state = ListsState("prod")
    for number in range(100):
        state.leave_list(TopicPartition("orders", number), (1, 2, 3), number * 1000)
    assert len(state.lists_left) + len(state.lists_before) <= 2 * LISTS_KEPT_MS // 1000 + 2
    assert min(key.partition for key in state.recent_lists(99_000)) == 89


def test_a_clock_that_was_wrong_leaves_no_lists_behind() -> None:
    state = ListsState("prod")
    state.leave_list(KEY, (1, 2, 3), 1_000_000)
    assert state.recent_lists(1000) == {}
    state.leave_list(TopicPartition("orders", 1), (1, 2, 3), 1000)
    assert list(state.recent_lists(1000)) == [TopicPartition("orders", 1)]


def test_a_list_that_was_left_again_counts_as_it_was_left_last() -> None:
    state = ListsState("prod")
    for at_ms, replicas in ((1, (1, 2)), (LISTS_KEPT_MS - 1, (2, 3)), (LISTS_KEPT_MS + 2, (3, 4))):
        state.leave_list(KEY, replicas, at_ms)
    assert state.lists_before
    assert state.recent_lists(LISTS_KEPT_MS + 3) == {KEY: ((3, 4), LISTS_KEPT_MS + 2)}


async def test_a_new_owner_that_saw_the_end_of_a_move_does_not_believe_a_broker_that_is_behind() -> None:
    """Simulation seed 81561868: one broker showed the new order, and the next one still the order from before."""
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.driver.freeze_metadata()
    old = made.driver._frozen
    made.driver.thaw_metadata()
    await made.send(alter({KEY: [1, 3, 2]}))
    while made.reassignment(KEY).phase is not Phase.COPYING:
        made.model.advance(100)
        await made.look()
        await made.settle()
    made.crash()
    await made.driver_sees({KEY})
    assert made.tags(KEY)[-1] == "reassignment-completed"
    made.driver._frozen = old
    outcome = await made.send(alter({KEY: [4, 3, 2]}))
    assert [refusal.code for refusal in outcome.refusals] == [RefusalCode.CLUSTER_UNAVAILABLE], "a worker looks again"
    made.driver.thaw_metadata()
    await made.send(alter({KEY: [4, 3, 2]}))
    assert made.reassignment(KEY).original == (1, 3, 2)


async def recreated(*, queue: bool = False, frozen: bool = False) -> World:
    """A move of a topic that was made anew a moment ago; the brokers that are asked next still show the one before."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    made.driver.freeze_metadata((False,))
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [2, 1, 3]}, partition_bytes=1000)
    if frozen:
        await made.freeze()
    await made.send(alter({KEY: [2, 1, 4]}, queue=queue))
    made.driver._stale_replies = itertools.repeat(True)
    return made


async def test_a_copy_goes_on_while_a_broker_shows_the_topic_from_before_it_was_made_anew() -> None:
    """It ended as gone, and the copy went on without a throttle as a move of somebody else's."""
    made = await recreated()
    await ends_at_target(made)


@pytest.mark.parametrize("queue", [False, True], ids=["pending", "queued"])
async def test_what_waits_stays_while_a_broker_shows_the_topic_from_before_it_was_made_anew(*, queue: bool) -> None:
    made = await recreated(queue=queue, frozen=True)
    await made.run(1500)
    assert KEY in (made.state.queue if queue else made.state.reassignments)
    made.driver.thaw_metadata()
    await made.unfreeze()
    await ends_at_target(made)


async def test_an_entry_of_the_queue_is_not_refused_since_a_broker_shows_the_topic_from_before() -> None:
    made = await recreated(queue=True, frozen=True)
    await made.unfreeze()
    await ends_at_target(made)


async def ends_at_target(made: World) -> None:
    await made.run(1500)
    made.driver.thaw_metadata()
    await made.run(1500)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.tags(KEY)[-1] == "reassignment-completed"
    assert made.replicas(KEY) == (2, 1, 4)
