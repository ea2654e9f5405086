"""The plan of a heal: who gets the replicas, and which partitions are left."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import structs

from drover.events.clusters import HoldRole
from drover.events.commands import Freeze, Unfreeze
from drover.events.healing import HealPlanned, LeftReason
from drover.events.partitions import TopicPartition
from drover.facts import Move, PartitionFacts
from drover.inventory import Inventory, LogDirectory, RegisteredBroker, named_brokers
from drover.planner.capacities import Capacities, Capacity
from drover.planner.goals import with_limits
from drover.planner.model import BrokerSet
from drover.planner.placement import Placement
from drover.planner.rules import NO_RULES, Rules
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal, gather_brokers_to_heal
from drover.reconcile.healing.heal_plan import HealPlan, plan_heal
from drover.reconcile.messages import PlanHeal, TakeInventory
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment
from drover.state.scheduling import HeldBroker
from tests.healing.support import healing_world, told
from tests.shard.world import CLUSTER, World, alter

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
DUE = BrokersToHeal((3,), frozenset((3,)))
KAFKA_STORAGE_ERROR = 56
TOTAL = 1000


def inventory(
    lists: Mapping[TopicPartition, tuple[int, ...]],
    racks: Mapping[int, str | None],
    *,
    free: Mapping[int, int] | None = None,
    size: int = 100,
) -> Inventory:
    """Make a look at a cluster whose broker 3 is dead; each disk has 1000 bytes, of which half are free by default."""
    registered = {
        broker: RegisteredBroker(
            broker, rack, broker != 3, (LogDirectory("/d", TOTAL, (free or {}).get(broker, TOTAL // 2)),)
        )
        for broker, rack in racks.items()
    }
    partitions = {
        key: PartitionFacts("id", next((one for one in replicas if one != 3), None), replicas, _without(replicas))
        for key, replicas in lists.items()
    }
    sizes = {key: dict.fromkeys(_without(replicas), size) for key, replicas in lists.items()}
    return Inventory("cluster", 0, named_brokers(registered, partitions), partitions, sizes)


def _without(replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one for one in replicas if one != 3)


def targets(plan: HealPlan) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition(one.topic, one.partition): one.target for one in plan.assignments}


ALIKE = dict.fromkeys((1, 2, 3, 4, 5), "a")


def test_a_broker_without_room_on_its_disk_gets_nothing() -> None:
    seen = inventory({KEY: (1, 2, 3)}, ALIKE, free={4: 240, 5: 260})
    assert targets(plan_heal(seen, DUE, 85)) == {KEY: (1, 2, 5)}
    assert targets(plan_heal(seen, DUE, 86)) == {KEY: (1, 2, 4)}


def test_a_cordoned_broker_receives_nothing_and_the_partition_without_another_one_names_it() -> None:
    seen = inventory({KEY: (1, 2, 3)}, ALIKE)
    brokers = {**seen.brokers, 4: cordoned(seen.brokers[4])}
    assert targets(plan_heal(replace(seen, brokers=brokers), DUE, 85)) == {KEY: (1, 2, 5)}
    both = {**brokers, 5: cordoned(seen.brokers[5])}
    plan = plan_heal(replace(seen, brokers=both), DUE, 85)
    assert plan.assignments == ()
    (left,) = plan.left
    assert left.why is LeftReason.NO_BROKER
    assert "broker 4 is cordoned" in left.detail
    assert "broker 5 is cordoned" in left.detail


def cordoned(broker: RegisteredBroker) -> RegisteredBroker:
    directories = broker.directories or ()
    return replace(broker, directories=tuple(replace(one, is_cordoned=True) for one in directories))


def test_room_is_used_once_and_the_partition_that_finds_none_is_named() -> None:
    seen = inventory({KEY: (1, 2, 3), OTHER: (2, 1, 3)}, {1: "a", 2: "b", 3: "c", 4: "a"}, free={4: 299}, size=100)
    plan = plan_heal(seen, DUE, 85)
    assert len(plan.assignments) == 1, "two racks are gone for one, and the disk has no room for both"
    (left,) = plan.left
    assert left.why is LeftReason.NO_BROKER
    assert "room" in left.detail or "disk" in left.detail


def test_a_spared_broker_is_taken_only_where_nobody_else_may_be() -> None:
    seen = inventory({KEY: (1, 2, 3)}, ALIKE)
    assert targets(plan_heal(seen, replace(DUE, spared=frozenset((4,))), 85)) == {KEY: (1, 2, 5)}
    both = replace(DUE, spared=frozenset((4, 5)))
    assert targets(plan_heal(seen, both, 85))[KEY][:2] == (1, 2)
    gone = replace(both, away=frozenset((3, 4, 5)))
    assert [one.why for one in plan_heal(seen, gone, 85).left] == [LeftReason.NO_BROKER]


def test_another_rack_counts_more_than_a_spared_broker() -> None:
    seen = inventory({KEY: (1, 2, 3)}, {1: "a", 2: "b", 3: "c", 4: "c", 5: "a"})
    assert targets(plan_heal(seen, replace(DUE, spared=frozenset((4,))), 85)) == {KEY: (1, 2, 4)}


def test_a_broker_that_does_not_show_its_disks_is_spared() -> None:
    seen = inventory({KEY: (1, 2, 3)}, ALIKE)
    silent = replace(seen.brokers[4], directories=None)
    assert targets(plan_heal(replace(seen, brokers={**seen.brokers, 4: silent}), DUE, 85)) == {KEY: (1, 2, 5)}


def test_where_all_living_brokers_are_spared_one_of_them_is_taken() -> None:
    seen = inventory({KEY: (1, 2, 3), OTHER: (2, 1, 3)}, ALIKE)
    lists = targets(plan_heal(seen, replace(DUE, spared=frozenset((1, 2, 4, 5))), 85))
    assert {key: (kept, new in {4, 5}) for key, (*kept, new) in lists.items()} == {
        KEY: ([1, 2], True),
        OTHER: ([2, 1], True),
    }
    silent = {number: replace(broker, directories=None) for number, broker in seen.brokers.items()}
    plan = plan_heal(replace(seen, brokers=silent, replica_bytes={}), DUE, 85)
    assert set(targets(plan)) == {KEY, OTHER}
    assert not plan.left


def test_partitions_are_named_with_the_reason_where_no_broker_may_receive_anything() -> None:
    seen = inventory({KEY: (1, 2, 3), OTHER: (2, 1, 3)}, ALIKE)
    failing = {
        number: replace(broker, directories=(LogDirectory("/d", TOTAL, TOTAL, KAFKA_STORAGE_ERROR),))
        for number, broker in seen.brokers.items()
    }
    plan = plan_heal(replace(seen, brokers=failing), DUE, 85)
    assert [(left.partition, left.why) for left in plan.left] == [(0, LeftReason.NO_BROKER), (1, LeftReason.NO_BROKER)]
    assert plan.left[0].detail.startswith(
        "no broker may receive replicas; log directory /d of broker 1 has failed (Kafka error 56); "
    )


def test_what_kafka_moves_already_is_left() -> None:
    seen = inventory({KEY: (1, 2, 3)}, ALIKE)
    moving = structs.replace(seen.partitions[KEY], move=Move((1, 2, 3, 4), (4,), (3,)))
    (left,) = plan_heal(replace(seen, partitions={KEY: moving}), DUE, 85).left
    assert left.why is LeftReason.MOVING


def test_listed_brokers_and_those_that_somebody_drains_are_spared() -> None:
    state = ClusterState("prod")
    state.blacklist = (1,)
    for key, original, target in ((KEY, (2, 4), (5, 4)), (OTHER, (4, 6), (4, 7))):
        state.put(
            Reassignment(
                key=key, topic_id="id", plan="p", number=0, original=original, target=target, created_ms=0,
                phase=Phase.PENDING, since_ms=0, current=original,
            )
        )  # fmt: skip
    state.rebuild_indexes()
    found = gather_brokers_to_heal(state, (3,), {3, 8}, {TopicPartition("elsewhere", 0)})
    assert found.spared == {1, 2, 6}
    assert found.away == {3, 8}
    assert found.moving == {KEY, OTHER, TopicPartition("elsewhere", 0)}
    assert found.destinations == {KEY: (5, 4), OTHER: (4, 7)}


def test_room_that_other_moves_will_take_is_not_given_to_replacements() -> None:
    # A disk takes 350 bytes more; 300 will come with a move that waits in the log, or that Kafka has just begun.
    seen = inventory({KEY: (1, 2, 3), OTHER: (1, 2)}, ALIKE, free={4: 500, 5: 500}, size=300)
    assert targets(plan_heal(seen, DUE, 85)) == {KEY: (1, 2, 4)}
    waits = replace(DUE, moving=frozenset((OTHER,)), destinations={OTHER: (1, 4)})
    assert targets(plan_heal(seen, waits, 85)) == {KEY: (1, 2, 5)}
    begun = structs.replace(seen.partitions[OTHER], replicas=(1, 4, 2), move=Move((1, 4, 2), (4,), (2,)))
    moves = replace(seen, partitions={**seen.partitions, OTHER: begun})
    assert targets(plan_heal(moves, DUE, 85)) == {KEY: (1, 2, 5)}


def within(*brokers: int) -> Rules:
    return replace(NO_RULES, placement=Placement(broker_sets=(BrokerSet("gold", brokers, ("ord*",)),)))


def test_a_topic_is_healed_within_its_broker_set_also_by_a_spared_broker_or_in_fewer_racks() -> None:
    lists = {KEY: (1, 2, 3), TopicPartition("other", 0): (1, 2, 3)}
    seen = inventory(lists, ALIKE)
    assert targets(plan_heal(seen, DUE, 85, within(1, 2, 3, 4)))[KEY] == (1, 2, 4)
    assert targets(plan_heal(seen, DUE, 85, within(1, 2, 3, 5)))[KEY] == (1, 2, 5)
    spared = replace(DUE, spared=frozenset((5,)))
    assert targets(plan_heal(seen, spared, 85, within(1, 2, 3, 5)))[KEY] == (1, 2, 5)
    racks = inventory(lists, {1: "a", 2: "b", 3: "c", 4: "c", 5: "a"})
    assert targets(plan_heal(racks, DUE, 85, within(1, 2, 3, 5)))[KEY] == (1, 2, 5)


def test_a_partition_whose_broker_set_has_no_other_broker_is_left_and_the_reason_names_the_set() -> None:
    seen = inventory({KEY: (1, 2, 3), TopicPartition("other", 0): (1, 2, 3)}, ALIKE)
    plan = plan_heal(seen, DUE, 85, within(1, 2, 3))
    assert [assignment.topic for assignment in plan.assignments] == ["other"]
    (left,) = plan.left
    assert (left.topic, left.why) == ("orders", LeftReason.NO_BROKER)
    assert left.detail == "orders:0: no broker of its broker set can take a replica from broker 3"


def test_a_heal_gives_no_broker_more_replicas_than_it_may_have() -> None:
    seen = inventory({KEY: (1, 2, 3), OTHER: (2, 1, 3)}, dict.fromkeys((1, 2, 3, 4, 5, 6), "a"), free={5: 400, 6: 300})
    assert {each[2] for each in targets(plan_heal(seen, DUE, 85)).values()} == {4, 5}
    few = Capacities(Capacity(max_replicas=2), {4: Capacity(max_replicas=0), 5: Capacity(max_replicas=1)})
    assert {each[2] for each in targets(plan_heal(seen, DUE, 85, replace(NO_RULES, capacities=few))).values()} == {5, 6}


def test_a_disk_whose_size_only_the_settings_have_is_not_filled_by_a_heal() -> None:
    seen = inventory({KEY: (1, 2, 3), OTHER: (4, 1)}, ALIKE)
    unknown = {
        number: replace(broker, directories=(LogDirectory("/d", None, None),))
        for number, broker in seen.brokers.items()
    }
    old = replace(seen, brokers=unknown)
    small = replace(NO_RULES, capacities=Capacities(Capacity(disk_bytes=TOTAL), {5: Capacity(disk_bytes=100)}))
    assert targets(plan_heal(old, DUE, 85)) == {KEY: (1, 2, 5)}
    assert targets(plan_heal(old, DUE, 85, small)) == {KEY: (1, 2, 4)}


def test_a_heal_leaves_no_disk_above_a_limit_that_it_could_have_spared() -> None:
    # Broker 4 has one large replica, and broker 5 many small ones.
    many = {TopicPartition("small", number): (1, 2, 5) for number in range(40)}
    seen = inventory({KEY: (1, 2, 3), OTHER: (4, 1), **many}, ALIKE, size=1)
    seen = replace(seen, replica_bytes={**seen.replica_bytes, KEY: {1: 2, 2: 2}, OTHER: {1: 499, 4: 499}})
    limited = replace(NO_RULES, limits=with_limits(NO_RULES.limits, {"disk": 0.5}, {}))
    assert targets(plan_heal(seen, DUE, 85)) == {KEY: (1, 2, 4)}
    assert targets(plan_heal(seen, DUE, 85, limited)) == {KEY: (1, 2, 5)}


def test_the_replacement_of_a_dead_leader_leads_unless_it_should_not() -> None:
    seen = inventory({KEY: (3, 1, 2)}, {1: "a", 2: "b", 3: "c", 4: "d"})
    assert targets(plan_heal(seen, DUE, 85)) == {KEY: (4, 1, 2)}
    racks = replace(NO_RULES, placement=Placement(leaders_in_racks=("b", "c")))
    assert targets(plan_heal(seen, DUE, 85, racks)) == {KEY: (2, 4, 1)}
    nobody = replace(NO_RULES, placement=Placement(leaders_in_racks=("c",)))
    assert targets(plan_heal(seen, DUE, 85, nobody)) == {KEY: (4, 1, 2)}


async def test_an_inventory_that_fails_is_taken_again() -> None:
    world = healing_world(failure_interval_ms=0)
    await world.run(1000)
    world.model.stop_broker(3)
    world.hold_effects = True
    await world.run(6000)
    assert world.held
    world.driver.unreachable = True
    await world.release_effects()
    world.driver.unreachable = False
    world.hold_effects = False
    await world.run(15_000)
    assert world.state.heals_planned == 1


def test_a_broker_that_is_held_gets_a_replica_only_where_no_other_may_take_it() -> None:
    state = ClusterState("c")
    for broker, role in ((4, HoldRole.BOTH), (5, HoldRole.SOURCE), (6, HoldRole.DESTINATION)):
        state.held_brokers[broker] = HeldBroker("ana", "a new disk", 0, role)
    assert gather_brokers_to_heal(state, (3,), {3}).spared == {4, 6}


async def _while_a_plan_is_made() -> World:
    """Return a world in which broker 3 is dead, and the plan for it has been asked for."""
    world = healing_world(failure_interval_ms=0)
    await _until_a_plan_is_made(world)
    return world


async def _until_a_plan_is_made(world: World) -> None:
    await world.run(1000)
    world.model.stop_broker(3)
    world.hold_effects = True
    await run_until(world, lambda: any(isinstance(effect, TakeInventory) for effect in world.held))
    await world.release_effects()
    await run_until(world, lambda: any(isinstance(effect, PlanHeal) for effect in world.held))


async def test_a_plan_is_asked_for_once_and_still_fits_when_it_has_taken_long() -> None:
    world = await _while_a_plan_is_made()
    await world.run(30_000)
    assert [type(effect) for effect in world.held] == [PlanHeal]
    await world.release_effects()
    world.hold_effects = False
    await world.run(1000)
    (planned,) = told(world, HealPlanned)
    assert planned.brokers == (3,)


async def test_a_plan_for_other_brokers_than_those_that_are_due_now_is_made_again() -> None:
    world = await _while_a_plan_is_made()
    world.model.stop_broker(6)
    await run_until(world, lambda: 6 in world.state.absent_brokers)
    await world.release_effects()
    await run_until(world, lambda: any(isinstance(effect, TakeInventory) for effect in world.held))
    assert told(world, HealPlanned) == []
    world.hold_effects = False
    await world.release_effects()
    await world.run(10_000)
    assert [one.brokers for one in told(world, HealPlanned)] == [(3, 6)]


async def test_a_plan_still_fits_when_other_partitions_have_begun_to_move_meanwhile() -> None:
    world = healing_world(failure_interval_ms=0)
    world.model.create_topic("other", {0: [1, 2]}, partition_bytes=1_000_000)
    await _until_a_plan_is_made(world)
    await world.send(alter({TopicPartition("other", 0): [1, 4]}))
    await world.run(1000)
    await world.release_effects()
    await world.run(200)
    assert not any(isinstance(effect, TakeInventory) for effect in world.held)
    assert [one.brokers for one in told(world, HealPlanned)] == [(3,)]


async def test_a_plan_that_a_freeze_has_overtaken_is_forgotten() -> None:
    world = await _while_a_plan_is_made()
    await world.send(Freeze(cluster=CLUSTER, by="ana", reason="test", id="freeze"))
    await world.release_effects()
    await world.run(1000)
    await world.send(Unfreeze(cluster=CLUSTER, by="ana", reason="test", id="unfreeze"))
    await run_until(world, lambda: any(isinstance(effect, TakeInventory) for effect in world.held))
    assert told(world, HealPlanned) == []


async def run_until(world: World, is_so: Callable[[], bool], within_ms: int = 60_000) -> None:
    for _ in range(within_ms // 200):
        if is_so():
            return
        await world.run(200)
    raise AssertionError(f"still not so: {world.held}")
