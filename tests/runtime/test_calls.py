"""What one look asks of a cluster, and from which moment on what it saw counts."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from threading import Event

import pytest

from drover.agents import calls
from drover.agents.calls import carry_out, look, result_of
from drover.cluster.port import AddThrottledReplicas, Listing, RemoveThrottledReplicas, ThrottleChange
from drover.events.healing import LeftReason
from drover.events.partitions import TopicPartition
from drover.facts import NO_REPLICAS, CallResult, Move, Observation, ThrottledReplicas
from drover.planner.model import BrokerSet
from drover.planner.placement import Placement
from drover.planner.rules import NO_RULES
from drover.reconcile.contract import Urgency
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal
from drover.reconcile.healing.heal_plan import HealPlan
from drover.reconcile.messages import (
    CallEnded,
    ChangeThrottles,
    HealPlanMade,
    Identified,
    Input,
    PlanHeal,
    ThrottlesChanged,
    ThrottlesRead,
)
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver
from tests.shard.world import CLUSTER, World, alter

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
BETWEEN_MS = 40


@pytest.fixture
def world() -> World:
    made = World(joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    return made


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When each List was answered."""
    answered_ms: list[int] = []
    answer = ClusterModel.moves

    def counted(model: ClusterModel) -> dict[TopicPartition, Move]:
        answered_ms.append(model.now_ms)
        return answer(model)

    monkeypatch.setattr(ClusterModel, "moves", counted)
    return answered_ms


async def look_once(world: World) -> Input | None:
    return await look(world.driver, world.core, CLUSTER, lambda: world.now)


async def start_moving(world: World) -> None:
    await world.send(alter({ORDERS: [4, 2, 3]}))
    await world.settle()
    assert ORDERS in world.model.moves()
    assert world.core.cluster(CLUSTER).attention(world.now).urgency is Urgency.BUSY


async def test_a_look_at_what_moves_takes_two_lists(world: World, lists: list[int]) -> None:
    await start_moving(world)
    world.model.advance(100)
    lists.clear()
    seen = await look_once(world)
    assert isinstance(seen, Observation)
    assert ORDERS in seen.partitions
    assert len(lists) == 2


async def test_a_look_that_wants_nothing_takes_one_list(world: World, lists: list[int]) -> None:
    idle = await look_once(world)
    assert isinstance(idle, Identified)
    assert len(lists) == 1
    await start_moving(world)
    world.model.advance(100)
    await world.look()
    await world.settle()
    lists.clear()
    assert await look_once(world) is None
    assert len(lists) == 1


async def test_a_look_began_when_its_first_list_did(
    world: World, lists: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_moving(world)
    world.model.advance(100)
    began_ms = world.model.now_ms
    lists.clear()
    observe = SimulatedDriver.observe

    async def later(
        driver: SimulatedDriver,
        partitions: Collection[TopicPartition],
        *,
        since: Listing | None = None,
        with_min_isr: bool = False,
    ) -> Observation:
        world.model.advance(BETWEEN_MS)
        return await observe(driver, partitions, since=since, with_min_isr=with_min_isr)

    monkeypatch.setattr(SimulatedDriver, "observe", later)
    seen = await look_once(world)
    assert isinstance(seen, Observation)
    assert lists == [began_ms, began_ms + BETWEEN_MS]
    assert (seen.started_ms, seen.ended_ms) == (began_ms, began_ms + BETWEEN_MS)


@pytest.mark.parametrize(
    ("ended", "result"),
    [
        (CallEnded(CLUSTER, (), 0, {ORDERS: CallResult(0)}), "accepted"),
        (CallEnded(CLUSTER, (), 0, {ORDERS: CallResult(0), OTHER: CallResult(39)}), "rejected"),
        (CallEnded(CLUSTER, (), 0, None, detail="not in time"), "lapsed"),
        (CallEnded(CLUSTER, (), 0, None, lost=True), "lost"),
        (ThrottlesChanged(CLUSTER, 0, {1: CallResult(0)}, {}), "accepted"),
        (ThrottlesChanged(CLUSTER, 0, {1: CallResult(44)}, {}), "rejected"),
        (ThrottlesChanged(CLUSTER, 0, {}, {}), "lost"),
        (ThrottlesRead(CLUSTER, 0, {}, {}), "lost"),
    ],
)
def test_the_result_of_a_call_has_one_of_four_names(ended: Input, result: str) -> None:
    assert result_of(ended) == result


async def test_a_heal_is_planned_while_the_loop_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    loop_went_on = Event()

    def slow(*_: object) -> HealPlan:
        assert loop_went_on.wait(20), "the loop stands still while a plan is made"
        return HealPlan((), ())

    monkeypatch.setattr(calls, "plan_heal", slow)
    wanted = PlanHeal(CLUSTER, await world.driver.inventory(), BrokersToHeal((3,), frozenset({3})), 85)
    made = asyncio.create_task(carry_out(world.driver, wanted, lambda: world.now))
    await asyncio.sleep(0)
    loop_went_on.set()
    assert await made == HealPlanMade(CLUSTER, wanted.to_heal, HealPlan((), ()))


async def test_a_heal_is_planned_by_the_rules_of_its_cluster(world: World) -> None:
    world.model.stop_broker(3)
    wanted = PlanHeal(CLUSTER, await world.driver.inventory(), BrokersToHeal((3,), frozenset({3})), 85)
    placement = Placement(broker_sets=(BrokerSet("gold", (1, 2, 3), ("orders",)),))
    made = await carry_out(world.driver, wanted, lambda: world.now, replace(NO_RULES, placement=placement))
    assert isinstance(made, HealPlanMade)
    assert (made.plan.assignments, [left.why for left in made.plan.left]) == ((), [LeftReason.NO_BROKER])


@pytest.fixture
def throttle_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ThrottleChange, ...]]:
    """Record the changes of each `change_throttles` call."""
    made: list[tuple[ThrottleChange, ...]] = []
    change = SimulatedDriver.change_throttles

    async def noted(driver: SimulatedDriver, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        made.append(tuple(changes))
        return await change(driver, changes)

    monkeypatch.setattr(SimulatedDriver, "change_throttles", noted)
    return made


async def change_lists(world: World, remove: ThrottledReplicas, add: ThrottledReplicas) -> CallResult:
    wanted = ChangeThrottles(
        CLUSTER, {}, {"orders": add}, {"orders": remove}, {"orders": NO_REPLICAS}, world.now.monotonic_ms
    )
    changed = await carry_out(world.driver, wanted, lambda: world.now)
    assert isinstance(changed, ThrottlesChanged)
    return changed.topics["orders"]


async def test_entries_are_removed_and_added_within_the_time_limit_of_one_call(
    world: World, throttle_calls: list[tuple[ThrottleChange, ...]]
) -> None:
    """A second call could add entries after a successor had written its own."""
    first, second = ThrottledReplicas(("0:1",), ()), ThrottledReplicas(("0:2",), ("0:3",))
    for remove, add in ((NO_REPLICAS, first), (first, second), (NO_REPLICAS, NO_REPLICAS), (second, NO_REPLICAS)):
        assert (await change_lists(world, remove, add)).accepted
    assert [[type(change) for change in changes] for changes in throttle_calls] == [
        [AddThrottledReplicas],
        [RemoveThrottledReplicas, AddThrottledReplicas],
        [RemoveThrottledReplicas],
    ]
    assert await world.driver.throttled_replicas(["orders"]) == {"orders": NO_REPLICAS}


async def test_no_entries_are_added_when_the_removal_is_refused(world: World) -> None:
    added = ThrottledReplicas(("0:1",), ())
    assert not (await change_lists(world, ThrottledReplicas(("first:1",), ()), added)).accepted
    assert await world.driver.throttled_replicas(["orders"]) == {"orders": NO_REPLICAS}


def test_a_stop_does_not_wait_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that planned a heal stopped only once the plan was there, or was ended by the watchdog before."""
    may_end, has_ended = Event(), Event()

    def plan(*_: object) -> HealPlan:
        may_end.wait()
        has_ended.set()
        return HealPlan((), ())

    async def stop() -> None:
        world = World()
        wanted = PlanHeal(CLUSTER, await world.driver.inventory(), BrokersToHeal((3,), frozenset({3})), 85)
        planning = asyncio.create_task(carry_out(world.driver, wanted, lambda: world.now))
        await asyncio.sleep(0.05)
        planning.cancel()
        await asyncio.gather(planning, return_exceptions=True)

    monkeypatch.setattr(calls, "plan_heal", plan)
    asyncio.run(stop())
    assert not has_ended.is_set()
    may_end.set()
