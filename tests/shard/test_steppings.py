"""KIP-435's steppings on the model cluster: there, back from every step, and around brokers that die."""

from collections.abc import Callable

import pytest

from drover.client.views.waiting_reason import waiting_reason
from drover.errors import ClusterError, ClusterUnavailableError, OutcomeUnknownError
from drover.events.commands import BrokerFailed, Cancel, Demote
from drover.events.leadership import ElectionOutcome, LeaderElectionEnded, LeaderElectionIntended
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened, Stepping
from drover.events.reassignments import (
    Blocker,
    Call,
    CallIntended,
    ReassignmentCompleted,
    ReassignmentRolledBack,
    ReassignmentStopped,
    StepConfirmed,
    StepTakenBack,
)
from drover.state.broker_directions import BrokerDirection
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from drover.testing.simulated import Loss
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter, rollback, stop

KEY = TopicPartition("orders", 0)


async def moving(
    stepping: Stepping | None = Stepping.SWAP,
    limits: Limits | None = None,
    throttle: int | None = None,
    min_isr: int = 1,
) -> World:
    """[1,2,3] on its way to [4,5,6]; nothing joins by itself."""
    made = World(brokers=7, limits=limits, joins_by_itself=False)
    configs = {"min.insync.replicas": str(min_isr)}
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000, configs=configs)
    await made.send(alter({KEY: [4, 5, 6]}, id="p", stepping=stepping, throttle_bytes_per_second=throttle))
    await made.run(1000)
    return made


async def joined(made: World, brokers: int) -> None:
    """Let so many of 4, 5 and 6 join, one after the other."""
    for broker in (4, 5, 6)[:brokers]:
        made.model.join_isr(KEY, broker)
        await made.run(2500)


def lists(made: World) -> list[tuple[int, ...]]:
    return [event.replicas for event in made.events() if isinstance(event, StepConfirmed | ReassignmentCompleted)]


async def test_swap_drops_as_many_as_it_has_added() -> None:
    made = await moving()
    await joined(made, 3)
    await made.finish()
    assert lists(made) == [(4, 1, 2, 3), (4, 2, 3), (4, 5, 3), (4, 5, 6)]
    assert [event.stepping for event in made.events() if isinstance(event, PlanOpened)] == [Stepping.SWAP]
    sound(made)


async def test_the_clusters_stepping_is_for_plans_without_one() -> None:
    made = await moving(None, Limits(stepping=Stepping.SINGLE))
    assert made.model.moves()[KEY].adding == (4, 5, 6)
    assert made.reassignment(KEY).step is not None
    other = await moving(Stepping.GROW, Limits(stepping=Stepping.SINGLE))
    assert other.model.moves()[KEY].adding == (4,)


async def test_a_plan_takes_another_stepping_from_its_next_step_on() -> None:
    made = await moving(Stepping.GROW)
    await made.send(alter({KEY: [4, 5, 6]}, plan="p", stepping=Stepping.SINGLE))
    await joined(made, 1)
    assert made.reassignment(KEY).current == (1, 2, 3, 4)
    assert made.model.moves()[KEY].adding == (5, 6)


@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize("stepping", list(Stepping))
async def test_a_rollback_from_any_step_restores_the_list_and_its_order(stepping: Stepping, done: int) -> None:
    made = await moving(stepping, throttle=500_000)
    await joined(made, done)
    await made.send(rollback(KEY))
    await made.run(2000)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    assert (ended.replicas, ended.missing) == ((1, 2, 3), ())
    assert set(made.model.stored_bytes(KEY)) == {1, 2, 3}
    assert not made.state.broker_throttles
    sound(made)


@pytest.mark.parametrize(("done", "expected"), [(0, (1, 2, 3)), (1, (4, 2, 3)), (2, (4, 5, 3))])
async def test_a_stop_keeps_what_the_steps_have_made(done: int, expected: tuple[int, ...]) -> None:
    made = await moving()
    await joined(made, done)
    await made.send(stop(KEY))
    await made.finish()
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentStopped)]
    assert ended.replicas == made.replicas(KEY) == expected
    sound(made)


async def test_a_step_that_was_done_before_its_cancel_counts() -> None:
    """What it has dropped is copied back; nobody else is suspected."""
    made = await moving()
    await joined(made, 1)
    made.hold_effects = True
    await made.send(rollback(KEY))
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.run(100)
    made.hold_effects = False
    made.model.join_isr(KEY, 5)
    made.model.joins_by_itself = True
    await made.release_effects()
    await made.finish()
    assert (4, 5, 3) in lists(made)
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.state.plans["p"].rolled_back == 1
    sound(made)


@pytest.mark.parametrize("loss", list(Loss))
async def test_a_lost_drop_is_not_taken_for_a_rollback_that_gave_up(loss: Loss) -> None:
    """The step that only drops ends at a list of originals and target members, as a reduced rollback does."""
    made = await moving()
    made.model.join_isr(KEY, 4)
    while "leader-election-ended" not in made.tags(KEY):
        await made.run(100)
    made.driver.lose_next(loss)
    await made.run(7000)
    await made.send(rollback(KEY))
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    assert ended.missing == ()
    sound(made)


async def test_a_rollback_is_not_deferred_where_the_confirmed_list_is_in_sync() -> None:
    """The last step copies; of the originals only 3 is left, fewer than min.insync.replicas, and that is safe."""
    made = await moving(min_isr=2)
    await joined(made, 2)
    assert made.reassignment(KEY).current == (4, 5, 3)
    await made.send(rollback(KEY))
    await made.run(2000)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert "rollback-skipped" not in made.tags(KEY)


@pytest.mark.parametrize("stepping", [Stepping.GROW, Stepping.SWAP])
async def test_another_replica_is_copied_where_one_has_died(stepping: Stepping) -> None:
    """After a minute, since a restart takes less; what is dead comes last, by name, and goes on when it is back."""
    made = await moving(stepping)
    made.model.stop_broker(4)
    await made.run(40_000)
    assert made.model.moves()[KEY].adding == (4,)
    await made.run(30_000)
    (taken,) = [event for event in made.events() if isinstance(event, StepTakenBack)]
    assert (taken.step, taken.replicas) == (1, (1, 2, 3))
    assert made.model.moves()[KEY].adding == (5,)
    made.model.join_isr(KEY, 5)
    await made.run(3000)
    made.model.join_isr(KEY, 6)
    await made.run(3000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert (block.why, "broker 4" in block.detail) == (Blocker.DEAD_DESTINATION, True)
    assert waiting_reason(made.state, KEY) is not None
    made.model.start_broker(4)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (4, 5, 6)
    sound(made)


async def test_a_reported_failure_is_not_waited_for() -> None:
    made = await moving(throttle=500_000)
    made.model.stop_broker(4)
    await made.run(1000)
    await made.send(
        BrokerFailed(id="f", cluster=CLUSTER, by="ana", reason="it burnt", broker=4, at_ms=made.now.wall_ms)
    )
    await made.run(4000)
    assert made.model.moves()[KEY].adding == (5,)


async def test_a_dead_destination_is_left_where_there_is_nothing_else_to_copy() -> None:
    made = await moving()
    await joined(made, 2)
    made.model.stop_broker(6)
    await made.run(70_000)
    assert made.model.moves()[KEY].adding == (6,)
    assert "step-taken-back" not in made.tags(KEY)


@pytest.mark.parametrize("cancels", [rollback, stop])
async def test_a_cancellation_overtakes_the_change_of_a_step(cancels: Callable[..., Cancel]) -> None:
    made = await moving()
    made.model.stop_broker(4)
    made.hold_effects = False
    while not any(isinstance(one, CallIntended) and one.call is Call.CANCEL for one in made.events()):
        await made.run(100)
    await made.send(cancels(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    sound(made)


async def test_a_prepared_step_goes_elsewhere_when_its_broker_dies() -> None:
    """Its throttle is not in force yet, nothing was sent: another replica is prepared at once."""
    made = World(brokers=7, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    made.hold_effects = True
    await made.send(alter({KEY: [4, 5, 6]}, id="p", stepping=Stepping.SWAP, throttle_bytes_per_second=500_000))
    while KEY not in made.state.reassignments or made.reassignment(KEY).phase is not Phase.PREPARED:
        await made.run(100)
    made.model.stop_broker(4)
    made.hold_effects = False
    await made.release_effects()
    await made.run(4000)
    step = made.reassignment(KEY).step
    assert step is not None
    assert (step.number, step.adding, made.reassignment(KEY).phase) == (1, (5,), Phase.COPYING)
    assert made.state.moves.loads == {BrokerDirection(1, "out"): 1, BrokerDirection(5, "in"): 1}
    assert set(made.state.broker_throttles) >= {1, 5}


async def test_a_prepared_step_names_the_full_broker_while_there_is_no_room_elsewhere() -> None:
    """It goes on as soon as there is, although the broker that it was prepared for stays dead (seed 20,001,050)."""
    made = World(brokers=7, limits=Limits(max_moves_per_broker=1), joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [7, 2, 3]}, partition_bytes=1000)
    await made.send(alter({TopicPartition("orders", 1): [5, 2, 3]}))
    await made.run(1000)
    made.hold_effects = True
    await made.send(alter({KEY: [4, 5, 3]}, id="p", stepping=Stepping.SWAP, throttle_bytes_per_second=500_000))
    while KEY not in made.state.reassignments or made.reassignment(KEY).phase is not Phase.PREPARED:
        await made.run(100)
    made.model.stop_broker(4)
    made.hold_effects = False
    await made.release_effects()
    await made.run(4000)
    assert "slots of broker 5 (1 of 1 copies in)" in str(waiting_reason(made.state, KEY))
    assert made.reassignment(KEY).block is None
    made.model.join_isr(TopicPartition("orders", 1), 5)
    await made.run(4000)
    assert made.model.moves()[KEY].adding == (5,)
    assert made.reassignment(KEY).block is None


async def test_the_step_that_brings_in_a_leader_is_followed_by_its_election() -> None:
    """R435-3: the first of the target leads before the present leader is dropped."""
    made = await moving()
    await joined(made, 1)
    tags = made.tags(KEY)
    at = tags.index("step-confirmed")
    assert tags[at : at + 3] == ["step-confirmed", "leader-election-intended", "leader-election-ended"]
    partition = made.model.partition(KEY)
    assert partition is not None
    assert partition.leader == 4
    step = made.reassignment(KEY).step
    assert step is not None
    assert step.leader == 4
    await joined(made, 3)
    await made.finish()
    assert made.tags(KEY).count("leader-election-intended") == 1
    assert made.replicas(KEY) == (4, 5, 6)
    sound(made)


async def test_the_rows_of_the_kips_example_are_those_that_it_prints() -> None:
    """R435-6: (0,1,2,3,4) to (5,6,7,8,9), two replicas at a time; brokers are counted from 1 here."""
    made = World(brokers=10, limits=Limits(max_replicas_per_step=2, stepping=Stepping.SWAP))
    made.model.create_topic("orders", {0: [10, 1, 2, 3, 4]})
    await made.send(alter({KEY: [5, 6, 7, 8, 9]}))
    await made.finish()
    assert lists(made) == [(5, 10, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 8, 4), (5, 6, 7, 8, 9)]
    sound(made)


async def test_a_broker_that_should_not_lead_is_not_elected_on_the_way() -> None:
    made = await moving()
    await made.send(Demote(id="d", cluster=CLUSTER, by="ana", reason="slow", broker=4))
    await joined(made, 3)
    made.model.joins_by_itself = True
    await made.finish()
    elections = [event for event in made.events() if isinstance(event, LeaderElectionIntended)]
    assert 4 not in {election.replicas[0] for election in elections}
    assert set(made.replicas(KEY)) == {4, 5, 6}


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [(OutcomeUnknownError, ElectionOutcome.UNKNOWN), (ClusterUnavailableError, ElectionOutcome.NOT_SENT)],
)
async def test_an_election_that_fails_is_not_held_again_and_holds_up_nothing(
    fault: type[ClusterError], outcome: ElectionOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await moving()

    async def fail(_: object) -> None:
        raise fault("no answer")

    monkeypatch.setattr(made.driver, "elect_leaders", fail)
    await joined(made, 1)
    made.model.joins_by_itself = True
    await made.finish()
    assert [event.outcome for event in made.events() if isinstance(event, LeaderElectionEnded)] == [outcome]
    assert made.replicas(KEY) == (4, 5, 6)
    sound(made)


@pytest.mark.parametrize("death", [Death.AFTER_APPEND, Death.AFTER_EFFECTS])
async def test_a_successor_goes_on_from_an_election_that_was_open(death: Death) -> None:
    made = await moving()
    made.model.join_isr(KEY, 4)
    for _ in range(40):
        made.model.advance(100)
        await made.look()
        if any(isinstance(event, StepConfirmed) for event in made.events()):
            break
        await made.turn()
    await made.turn(die=death)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (4, 5, 6)
    assert not made.state.elections
    sound(made)


async def test_elections_of_steps_are_leader_movements_too() -> None:
    made = World(brokers=7, limits=Limits(max_leader_movements=1, stepping=Stepping.SWAP), joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]})
    other = TopicPartition("orders", 1)
    await made.send(alter({KEY: [4, 5, 6], other: [4, 5, 6]}))
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEY}
    assert "max_leader_movements is 1" in str(waiting_reason(made.state, other))
    made.model.joins_by_itself = True
    await made.finish()
    assert {made.replicas(KEY), made.replicas(other)} == {(4, 5, 6)}
