"""Commands that are too large for one record: decided in several, in order, by one owner after another."""

from collections.abc import Iterable

import pytest

from drover.events.commands import Alter, Cancel
from drover.events.outcomes import joined
from drover.events.partitions import TopicPartition
from drover.events.reassignments import RollbackRequested, StopRequested
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.shard import deciding, partly
from drover.state.plans import PlanStatus
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter, cancel

MOVES = 60
KEYS = [TopicPartition("orders", number) for number in range(MOVES)]


@pytest.fixture(autouse=True)
def small_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "MAX_DECISION_BYTES", 3000)
    monkeypatch.setattr(partly, "PART_BYTES", 1500)


async def moving(world: World) -> World:
    """A world in which all partitions are under way, twenty of them in flight."""
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1_000_000)
    await world.send(alter(dict.fromkeys(KEYS, (4, 2, 1)), id="drain"))
    await world.settle()
    await world.run(500)
    assert len(world.state.reassignments) == MOVES
    return world


def copying() -> World:
    return World(brokers=5, limits=Limits(max_partitions_in_flight=20, max_moves_per_broker=50), joins_by_itself=False)


def parts(world: World, id_: str) -> list[Outcome]:
    return [outcome for outcome in world.outcomes() if outcome.id == id_]


def named(outcome: Outcome) -> list[TopicPartition]:
    return [TopicPartition(one.topic, one.partition) for one in outcome.accepted]


def everything(found: Iterable[TopicPartition]) -> bool:
    return sorted(found) == KEYS


@pytest.mark.parametrize("scope", [{"all": True}, {"plan": "drain"}, {"topics": ("orders",)}])
@pytest.mark.parametrize("mode", ["rollback", "stop"])
async def test_an_emergency_stop_is_decided_in_parts_and_acts_from_the_first_on(
    scope: dict[str, object], mode: str
) -> None:
    world = await moving(copying())
    world.put(cancel(mode=mode, id="away", **scope))
    await world.turn()
    (first,) = parts(world, "away")
    assert first.more
    assert 0 < len(first.accepted) < MOVES
    # What was asked for in the first record is on its way before the second is decided.
    cancelled = {key for key in KEYS if (found := world.state.reassignments.get(key)) and found.is_cancelled}
    assert cancelled <= set(named(first))
    await world.settle()
    whole = joined(parts(world, "away"))
    assert not whole.more
    assert everything(named(whole))
    await world.finish()
    assert {world.replicas(key) for key in KEYS} == {(1, 2, 3)}
    asked = [event for event in world.events() if isinstance(event, RollbackRequested | StopRequested)]
    assert everything(event.key for event in asked)
    sound(world)


async def test_nothing_starts_between_the_parts_of_a_cancel_and_no_other_command_is_decided() -> None:
    world = await moving(copying())
    started = {key for key, one in world.state.reassignments.items() if one.in_flight}
    world.put(cancel(all=True, mode="rollback", id="away"))
    world.put(cancel(KEYS[0], mode="stop", id="later"))
    turns = 0
    while await world.turn() and not parts(world, "later"):
        world.model.advance(100)
        await world.look()
        turns += 1
    assert turns > 3
    assert {key for key, one in world.state.reassignments.items() if one.in_flight} <= started
    order = [(outcome.id, outcome.more) for outcome in world.outcomes()][-2:]
    assert order == [("away", False), ("later", False)]
    await world.finish()
    sound(world)


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_a_successor_goes_on_where_the_owner_died(death: Death, turns: int) -> None:
    world = await moving(copying())
    world.put(cancel(all=True, mode="rollback", id="away"))
    for _ in range(turns):
        await world.turn()
    await world.turn(die=death)
    await world.finish()
    assert everything(named(joined(parts(world, "away"))))
    assert {world.replicas(key) for key in KEYS} == {(1, 2, 3)}
    sound(world)


@pytest.mark.parametrize("death", [*Death, None])
async def test_an_alter_of_any_size_is_one_plan(death: Death | None) -> None:
    world = World(brokers=5, limits=Limits(max_partitions_in_flight=20, max_moves_per_broker=50))
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1000)
    keys = [*KEYS, TopicPartition("nothing", 1)]
    world.put(alter(dict.fromkeys(keys, (4, 2, 1)), id="drain", only_when_idle=True))
    await world.turn()
    await world.turn(die=death)
    await world.finish()
    found = parts(world, "drain")
    assert len(found) > 3
    whole = joined(found)
    assert everything(named(whole))
    assert [refusal.code for refusal in whole.refusals] == [RefusalCode.UNKNOWN_TOPIC_OR_PARTITION]
    plan = world.state.plans["drain"]
    assert (plan.status, plan.completed) == (PlanStatus.FINISHED, MOVES)
    assert {world.replicas(key) for key in KEYS} == {(4, 2, 1)}
    sound(world)


async def test_what_ends_by_itself_between_two_parts_is_said_to_have_ended() -> None:
    world = await moving(
        World(brokers=5, limits=Limits(max_partitions_in_flight=60, max_moves_per_broker=100), joins_by_itself=False)
    )
    world.put(cancel(all=True, mode="rollback", id="away"))
    await world.turn()
    (first,) = parts(world, "away")
    late = next(key for key in reversed(KEYS) if key not in named(first))
    world.model.join_isr(late, 4)
    world.model.advance(100)
    await world.driver_sees({late})
    await world.finish()
    whole = joined(parts(world, "away"))
    assert late in named(whole) or [refusal.key for refusal in whole.refusals] == [late]
    sound(world)


async def test_a_cluster_that_gets_out_of_reach_refuses_the_rest_at_once() -> None:
    world = World(brokers=5)
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1000)
    world.put(alter(dict.fromkeys(KEYS, (4, 2, 1)), id="drain"))
    await world.turn()
    world.driver.unreachable = True
    await world.settle()
    *_, last = parts(world, "drain")
    assert (last.verdict, last.more) == ("refused", False)
    assert last.refusals[0].code is RefusalCode.CLUSTER_UNAVAILABLE
    world.driver.unreachable = False
    await world.finish()
    sound(world)


async def test_a_repetition_is_known_by_the_first_record_and_answered_after_the_last() -> None:
    world = await moving(copying())
    again: Cancel | Alter = cancel(all=True, mode="rollback", id="away")
    world.put(again)
    world.put(again)
    await world.finish()
    *_, last, repeated = parts(world, "away")
    assert not last.more
    assert repeated.verdict == "duplicate"
    assert again.cluster == CLUSTER
    sound(world)
