"""Unregistered brokers: Kafka refuses every list that names one, so none is sent, and every way has an end."""

from typing import Any

import pytest
from msgspec.structs import replace

from drover.cluster.port import AlterRequest
from drover.decide.rollback_guards import GONE_MS
from drover.events.commands import BrokerFailed
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import Blocker, CallIntended, CallRejected, ReassignmentRolledBack, ReassignmentStopped
from drover.events.throttles import BrokerThrottleLeft, Rates
from drover.facts import CallResult
from drover.state.phase import Phase
from drover.state.reassignment import LATE_MS
from drover.traits import LATEST
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, World, alter, rollback, stop

KEY = TopicPartition("orders", 0)
# It does not say who is registered: only its answers tell.
BEFORE_4_0 = replace(LATEST, kafka="3.9")


def world(*replicas: int, min_isr: int = 1, partition_bytes: int = 1000, **model: Any) -> World:
    made = World(brokers=8, joins_by_itself=False, **model)
    configs = {"min.insync.replicas": str(min_isr)}
    made.model.create_topic("orders", {0: list(replicas)}, partition_bytes=partition_bytes, configs=configs)
    return made


def unregister(made: World, *brokers: int) -> None:
    """These brokers die, and an operator unregisters them."""
    for broker in brokers:
        made.model.stop_broker(broker)
        made.model.unregister(broker)


async def survey(made: World) -> None:
    """Let the owner see who is registered."""
    made.core.deliver(await made.driver.survey())
    await made.settle()


def sent(made: World) -> list[tuple[int, ...] | None]:
    """The lists of all calls; None is a cancel."""
    return [event.replicas for event in made.events() if isinstance(event, CallIntended)]


def refusals(made: World) -> list[CallRejected]:
    return [event for event in made.events() if isinstance(event, CallRejected)]


def end(made: World) -> ReassignmentRolledBack:
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    return ended


# -- rollbacks and stops


@pytest.mark.parametrize("traits", [LATEST, BEFORE_4_0])
@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize("owner_changes", [False, True])
async def test_a_rollback_to_an_unregistered_broker_ends_and_names_it(
    traits: Any, *, reported: bool, owner_changes: bool
) -> None:
    """L4: one refused call tells it, also to a successor."""
    made = world(1, 2, 3, traits=traits)
    await made.send(alter({KEY: [4, 2, 3]}, id="p"))
    await made.run(500)
    unregister(made, 1)
    if reported:
        now_ms = made.now.wall_ms
        await made.send(BrokerFailed(id="f", cluster=CLUSTER, by="ana", reason="burnt", broker=1, at_ms=now_ms))
    await made.send(rollback(KEY))
    while not refusals(made):
        made.model.advance(100)
        await made.look()
        await made.turn()
    if owner_changes:
        made.crash()
    await made.finish()
    assert sent(made) == [(4, 2, 3), None, (1, 2, 3)]
    assert [event.unregistered for event in refusals(made)] == [1]
    assert made.replicas(KEY) == (2, 3, 1)
    assert (end(made).replicas, end(made).missing) == ((2, 3, 1), (1,))
    assert made.state.plans["p"].rolled_back == 1
    sound(made)


async def test_what_a_survey_has_shown_is_not_tried() -> None:
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 2, 3]}))
    await made.run(500)
    unregister(made, 1)
    await survey(made)
    await made.send(rollback(KEY))
    await made.finish()
    assert sent(made) == [(4, 2, 3), None]
    assert (end(made).replicas, end(made).missing) == ((2, 3, 1), (1,))


async def test_the_original_order_comes_back_when_the_broker_registers_again() -> None:
    """X9: until then Kafka takes no new order of the list."""
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 2, 3]}))
    await made.run(500)
    unregister(made, 1)
    await made.send(rollback(KEY))
    await made.finish()
    await made.run(20_000)
    assert made.replicas(KEY) == (2, 3, 1)
    made.model.joins_by_itself = True
    made.model.start_broker(1)
    await made.run(20_000)
    assert made.replicas(KEY) == (1, 2, 3)
    assert not made.state.orders


async def test_what_waits_for_the_rollback_follows_it() -> None:
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 2, 3]}))
    await made.run(500)
    unregister(made, 1)
    await made.send(alter({KEY: [5, 2, 3]}, id="next"))
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (5, 2, 3)
    assert made.state.plans["next"].completed == 1


async def test_what_steps_have_added_stays_in_the_place_of_an_unregistered_broker() -> None:
    """The owner asks by itself who is registered: nobody has reported the broker, and ten minutes are not waited."""
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 5, 6]}))
    await made.run(500)
    made.model.join_isr(KEY, 4)
    await made.run(500)
    made.model.stop_broker(1)
    await made.send(rollback(KEY))
    await made.run(5000)
    assert made.reassignment(KEY).block is not None
    made.model.unregister(1)
    await made.finish(30_000)
    assert sent(made)[-1] == (2, 3, 4)
    assert (end(made).replicas, end(made).missing) == ((2, 3, 4), (1,))
    assert not refusals(made)
    sound(made)


@pytest.mark.parametrize("traits", [LATEST, BEFORE_4_0])
async def test_a_rollback_by_steps_copies_back_only_what_is_registered(traits: Any) -> None:
    made = world(1, 2, 3, traits=traits)
    await made.send(alter({KEY: [4, 5, 6]}, stepping=Stepping.SWAP))
    for added in (4, 5):
        await made.run(1000)
        made.model.join_isr(KEY, added)
        await made.run(1000)
    assert made.reassignment(KEY).current == (4, 5, 3), "brokers 1 and 2 were dropped"
    unregister(made, 1)
    await survey(made)
    await made.send(rollback(KEY))
    await made.run(500)
    made.model.joins_by_itself = True
    await made.run(2000)
    made.model.advance(GONE_MS if traits is BEFORE_4_0 else 0)
    await made.finish()
    assert (end(made).replicas, end(made).missing) == ((2, 3, 4), (1,))
    assert 1 not in {broker for replicas in sent(made)[4:] for broker in replicas or ()}
    sound(made)


async def test_a_stop_keeps_what_steps_have_brought_in_and_names_what_is_unregistered() -> None:
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 5, 6]}))
    await made.run(500)
    made.model.join_isr(KEY, 4)
    await made.run(500)
    unregister(made, 1)
    await survey(made)
    await made.send(stop(KEY))
    await made.finish()
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentStopped)]
    assert (set(ended.replicas), ended.missing) == ({1, 2, 3, 4}, (1,))


async def test_a_broker_that_registers_again_in_time_is_kept() -> None:
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 2, 3]}))
    await made.run(500)
    unregister(made, 1)
    await survey(made)
    made.model.start_broker(1)
    await made.run(500)
    await made.send(rollback(KEY))
    await made.finish()
    assert (end(made).replicas, end(made).missing) == ((1, 2, 3), ())


# -- steps


@pytest.mark.parametrize("stepping", Stepping)
@pytest.mark.parametrize("min_isr", [1, 2])
async def test_unregistered_brokers_are_dropped_in_the_first_step(stepping: Stepping, min_isr: int) -> None:
    made = world(6, 1, 2, min_isr=min_isr)
    unregister(made, 1, 2)
    await survey(made)
    await made.send(alter({KEY: [6, 5, 4]}, id="p", stepping=stepping))
    made.model.joins_by_itself = True
    await made.finish()
    assert sent(made) == [(6, 5, 4)]
    assert made.replicas(KEY) == (6, 5, 4)
    assert made.state.plans["p"].completed == 1
    sound(made)


@pytest.mark.parametrize("stepping", Stepping)
@pytest.mark.parametrize("traits", [LATEST, BEFORE_4_0])
async def test_where_nobody_has_said_so_kafkas_answers_tell(stepping: Stepping, traits: Any) -> None:
    """Kafka names one such broker at a time."""
    made = world(6, 1, 2, traits=traits)
    unregister(made, 1, 2)
    await made.send(alter({KEY: [6, 5, 4]}, id="p", stepping=stepping))
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (6, 5, 4)
    assert made.state.plans["p"].completed == 1
    assert len(refusals(made)) <= 2
    sound(made)


async def test_a_target_that_keeps_an_unregistered_broker_is_refused() -> None:
    made = world(6, 1, 2)
    unregister(made, 1)
    await survey(made)
    outcome = await made.send(alter({KEY: [6, 1, 5]}))
    assert outcome.verdict == "refused"
    assert "broker 1 is not registered with Kafka" in outcome.refusals[0].detail


async def test_a_target_whose_broker_is_unregistered_later_is_blocked_until_that_registers_again() -> None:
    made = world(1, 2, 3)
    await made.freeze()
    await made.send(alter({KEY: [1, 2, 4]}, id="p"))
    unregister(made, 4)
    await survey(made)
    await made.unfreeze()
    await made.run(2000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert (block.why, "broker 4 of the target" in block.detail) == (Blocker.UNREGISTERED_BROKER, True)
    made.model.start_broker(4)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.state.plans["p"].completed == 1


async def test_a_step_that_names_an_unregistered_broker_of_its_target_fails_its_plan() -> None:
    made = world(1, 2, 3, traits=BEFORE_4_0)
    await made.send(alter({KEY: [1, 4, 5]}, id="p"))
    await made.run(500)
    made.model.join_isr(KEY, 4)
    unregister(made, 1)
    await made.finish()
    assert made.state.plans["p"].failed == 1
    assert made.state.plans["p"].completed == 0


# -- moves of others


async def stuck_rollback(*, lost: bool = False) -> World:
    """[1,2,3] on its way to [4,5,6]: 4 is in, 5 was being copied, and the way back waits for broker 3.

    With `lost` the answer to the call of the step with 5 was lost, and it had no effect.
    """
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 5, 6]}, id="p"))
    await made.run(500)
    made.hold_effects = lost
    made.model.join_isr(KEY, 4)
    await made.run(500 if lost else 1000)
    if lost:
        assert made.reassignment(KEY).phase is Phase.INTENDED
        made.model.stop_controller()
        made.hold_effects = False
        await made.release_effects()
        made.model.start_controller()
    made.model.stop_broker(3)
    await made.send(rollback(KEY))
    await made.run(5000)
    assert KEY not in made.model.moves()
    assert made.reassignment(KEY).block is not None
    return made


@pytest.mark.parametrize("theirs", [(1, 2, 3, 4, 5), (4, 5, 6), (1, 2, 3)])
@pytest.mark.parametrize("owner_changes", [False, True])
async def test_a_move_of_others_is_not_fought_whatever_its_list_is(
    theirs: tuple[int, ...], *, owner_changes: bool
) -> None:
    """Promise 10: the first is the very list of the step that the rollback has cancelled."""
    made = await stuck_rollback()
    if owner_changes:
        made.crash()
    await others_move(made, theirs)
    await made.run(10_000)
    assert made.model.moves()[KEY].target == theirs
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.UNMANAGED_CHANGE


async def test_a_list_that_kafka_refused_to_send_back_is_others_when_it_moves() -> None:
    made = world(1, 2, 3)
    await made.send(alter({KEY: [4, 2, 3]}, id="p"))
    await made.run(500)
    made.hold_effects = True
    await made.send(rollback(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.run(100)
    await made.release_effects()
    while made.reassignment(KEY).phase is not Phase.RESTORE_INTENDED:
        await made.run(100)
    made.driver.refuse_next(KEY, CallResult(44, "by a policy"))
    made.hold_effects = False
    await made.release_effects()
    await others_move(made, (4, 2, 3))
    await made.run(10_000)
    assert made.model.moves()[KEY].target == (4, 2, 3)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 3)
    assert made.state.plans["p"].completed == 1


async def test_a_call_whose_answer_was_lost_is_ours_for_a_minute_after_it_was_seen_to_do_nothing() -> None:
    """Promise 10: once it has expired, whoever moves the partition to its list is somebody else."""
    made = await stuck_rollback(lost=True)
    made.model.advance(LATE_MS)
    await made.run(1000)
    await others_move(made, (1, 2, 3, 4, 5))
    await made.run(10_000)
    assert made.model.moves()[KEY].target == (1, 2, 3, 4, 5)


async def test_a_late_effect_of_a_lost_call_is_taken_back_while_it_may_be_ours() -> None:
    made = await stuck_rollback(lost=True)
    await others_move(made, (1, 2, 3, 4, 5))
    await made.run(10_000)
    assert KEY not in made.model.moves()


async def others_move(made: World, replicas: tuple[int, ...]) -> None:
    made.model.alter([AlterRequest(KEY, replicas)])


# -- throttles


async def test_a_throttle_that_is_owed_to_an_unregistered_broker_is_given_up() -> None:
    made = world(1, 2, 3, partition_bytes=10_000_000)
    await made.send(alter({KEY: [4, 2, 3]}, throttle_bytes_per_second=1_000_000))
    await made.run(3000)
    assert 1 in made.state.broker_throttles
    unregister(made, 1)
    await made.send(rollback(KEY))
    await made.finish()
    left = [event for event in made.events() if isinstance(event, BrokerThrottleLeft)]
    assert [(event.broker, event.found, event.unregistered) for event in left] == [
        (1, Rates(1_000_000, 1_000_000), True)
    ]
    sound(made)
