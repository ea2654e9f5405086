"""Calls that take effect after they were given up: taken back once, and never where that would copy data."""

from typing import Any

import pytest

from drover.agents.calls import carry_out
from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.events.reassignments import LateChangeFound, ReassignmentAdopted, ReassignmentCompleted
from drover.events.unmanaged import UnmanagedMoveSeen
from drover.reconcile.messages import AlterPartitions
from drover.state.plans import PlanStatus
from tests.shard.world import World, alter, rollback

KEY = TopicPartition("orders", 0)


def world(**options: Any) -> World:
    made = World(brokers=5, joins_by_itself=False, **options)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    return made


async def expired_calls(target: tuple[int, ...] = (4, 2, 1)) -> tuple[World, AlterPartitions]:
    """A step's call hangs in the network, its owner dies, and its successor rolls back what never seemed to begin."""
    made = world()
    made.hold_effects = True
    await made.send(alter({KEY: target}))
    (effect,) = made.held
    assert isinstance(effect, AlterPartitions)
    made.hold_effects = False
    made.crash()
    await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    return made, effect


async def takes_effect(made: World, effect: AlterPartitions) -> None:
    """The network delivers at last."""
    in_time = AlterPartitions(effect.cluster, effect.requests, made.now.monotonic_ms)
    await carry_out(made.driver, in_time, lambda: made.now)


def found(made: World, kind: type) -> int:
    return sum(isinstance(event, kind) for event in made.events())


async def test_a_late_move_is_rolled_back_under_a_plan_of_drovers_own() -> None:
    made, effect = await expired_calls()
    await takes_effect(made, effect)
    assert KEY in made.model.moves()
    await made.run(10_000)
    await made.finish()
    assert made.model.moves() == {}
    assert made.replicas(KEY) == (1, 2, 3)
    (name,) = [name for name in made.state.plans if name.startswith("drover-late-")]
    plan = made.state.plans[name]
    assert (plan.by, plan.status, plan.rolled_back) == ("drover", PlanStatus.FINISHED, 1)
    assert found(made, UnmanagedMoveSeen) == 0


async def test_a_second_time_it_is_somebody_elses() -> None:
    made, effect = await expired_calls()
    await takes_effect(made, effect)
    await made.run(10_000)
    await takes_effect(made, effect)
    await made.run(10_000)
    assert found(made, LateChangeFound) == 1
    assert set(made.state.unmanaged) == {KEY}
    assert KEY in made.model.moves()


async def test_after_a_minute_it_is_unmanaged() -> None:
    made, effect = await expired_calls()
    await made.run(61_000)
    await takes_effect(made, effect)
    await made.run(10_000)
    assert found(made, LateChangeFound) == 0
    assert set(made.state.unmanaged) == {KEY}


async def test_another_list_is_unmanaged_at_any_time() -> None:
    made, _ = await expired_calls()
    made.model.alter([AlterRequest(KEY, (5, 2, 1))])
    await made.run(5000)
    assert set(made.state.unmanaged) == {KEY}


@pytest.mark.parametrize(("target", "put_back"), [((3, 1, 2), True), ((4, 2, 1), False)])
async def test_a_late_list_in_place_is_put_back_only_without_a_copy(target: tuple[int, ...], *, put_back: bool) -> None:
    made, effect = await expired_calls(target)
    await takes_effect(made, effect)
    if not put_back:
        made.model.join_isr(KEY, 4)
    assert made.replicas(KEY) == target
    await made.run(10_000)
    await made.finish()
    assert found(made, LateChangeFound) == 1
    assert found(made, ReassignmentAdopted) == put_back
    assert made.replicas(KEY) == ((1, 2, 3) if put_back else target)


async def test_a_recreated_topic_is_not_touched() -> None:
    """S9."""
    made, effect = await expired_calls((3, 1, 2))
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await takes_effect(made, effect)
    await made.run(10_000)
    assert found(made, LateChangeFound) == 0
    assert made.replicas(KEY) == (3, 1, 2)


async def test_what_a_later_plan_asks_for_is_not_late() -> None:
    """The same list, moved to on purpose within the minute, stays."""
    made, _ = await expired_calls()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(300)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert found(made, ReassignmentCompleted) == 1
    await made.run(10_000)
    assert made.replicas(KEY) == (4, 2, 1)
    assert found(made, LateChangeFound) == 0


async def test_a_late_call_meets_the_next_plan_of_its_partition() -> None:
    """Queued while frozen: nothing of ours should move, so the late move goes and the plan ends rolled back."""
    made, effect = await expired_calls()
    await made.freeze()
    await made.send(alter({KEY: [5, 2, 1]}, plan="next"))
    await takes_effect(made, effect)
    await made.run(10_000)
    await made.finish()
    assert made.model.moves() == {}
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.state.plans["next"].rolled_back == 1


async def test_a_move_of_others_is_not_taken_back_for_a_year_because_a_clock_was_ahead() -> None:
    made = world()
    made.hold_effects = True
    await made.send(alter({KEY: (4, 2, 1)}))
    made.hold_effects = False
    made.clock_ahead_ms = 365 * 86_400_000
    made.crash()
    await made.send(rollback(KEY))
    await made.finish()
    assert KEY in made.state.expired_calls
    made.clock_ahead_ms = 0
    await made.run(120_000)
    made.model.alter([AlterRequest(KEY, (4, 2, 1))])
    await made.run(10_000)
    assert KEY in made.model.moves()
    assert KEY in made.state.unmanaged
    assert not found(made, LateChangeFound)
