"""Large commands: a cancel of any size is one record, and an alter that is too large is refused with what to do."""

import pytest

from drover.events import cancelled_partitions
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.reassignments import RollbackRequested, StopRequested
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.shard import pipeline
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter, cancel

MOVES = 60
KEYS = [TopicPartition("orders", number) for number in range(MOVES)]
EVERYTHING = tuple(PartitionReference(*key) for key in KEYS)


async def moving() -> World:
    """A world in which all partitions are under way, twenty of them in flight."""
    world = World(brokers=5, limits=Limits(max_partitions_in_flight=20, max_moves_per_broker=50), joins_by_itself=False)
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1_000_000)
    await world.send(alter(dict.fromkeys(KEYS, (4, 2, 1)), id="drain"))
    await world.settle()
    await world.run(500)
    assert len(world.state.reassignments) == MOVES
    return world


def outcome(world: World, id_: str) -> Outcome:
    (found,) = (outcome for outcome in world.outcomes() if outcome.id == id_)
    return found


@pytest.mark.parametrize("scope", [{"all": True}, {"plan": "drain"}, {"topics": ("orders",)}])
@pytest.mark.parametrize("mode", ["rollback", "stop"])
async def test_an_emergency_stop_is_one_record_in_which_each_partition_takes_a_few_bytes(
    scope: dict[str, object], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await moving()
    monkeypatch.setattr(pipeline, "MAX_DECISION_BYTES", 2000)
    world.put(cancel(mode=mode, id="away", **scope))
    await world.turn()
    assert outcome(world, "away").accepted == EVERYTHING
    assert all(found.is_cancelled for found in world.state.reassignments.values())
    await world.finish()
    assert {world.replicas(key) for key in KEYS} == {(1, 2, 3)}
    asked = [event for event in world.events() if isinstance(event, RollbackRequested | StopRequested)]
    assert sorted(event.key for event in asked) == KEYS
    assert {(event.by, event.reason, event.command) for event in asked} == {("bob", "test", "away")}
    sound(world)


@pytest.mark.parametrize("death", Death)
async def test_a_successor_takes_over_all_of_a_large_cancel(death: Death) -> None:
    world = await moving()
    world.put(cancel(all=True, mode="rollback", id="away"))
    await world.turn(die=death)
    await world.finish()
    assert outcome(world, "away").accepted == EVERYTHING
    assert {world.replicas(key) for key in KEYS} == {(1, 2, 3)}
    sound(world)


async def test_what_waits_in_the_queue_is_withdrawn_in_one_record() -> None:
    world = World(brokers=5)
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1000)
    await world.freeze()
    await world.send(alter(dict.fromkeys(KEYS, (4, 2, 1)), id="later", queue=True))
    size = len(world.log)
    world.put(cancel(queued="later", mode="rollback", id="away"))
    await world.turn()
    assert outcome(world, "away").accepted == EVERYTHING
    assert world.state.queue == {}
    assert len(world.log[size]) < 100 * MOVES
    sound(world)


async def test_a_small_cancel_is_written_event_by_event() -> None:
    world = await moving()
    size = len(world.log)
    world.put(cancel(*KEYS[: cancelled_partitions.FEWEST_GATHERED - 1], mode="rollback", id="away"))
    await world.turn()
    assert world.log[size].count(b"rollback-requested") == cancelled_partitions.FEWEST_GATHERED - 1


async def test_a_decision_that_no_record_takes_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_DECISION_BYTES", 2000)
    world = World(brokers=5)
    world.model.create_topic("orders", {key.partition: [1, 2, 3] for key in KEYS}, partition_bytes=1000)
    refused = await world.send(alter(dict.fromkeys(KEYS, (4, 2, 1)), id="drain"))
    assert [(refusal.code, refusal.key) for refusal in refused.refusals] == [(RefusalCode.TOO_LARGE, None)]
    assert "split the command" in refused.refusals[0].detail
    assert world.is_idle


async def test_an_alter_of_more_than_10_000_partitions_is_refused_with_what_to_do() -> None:
    world = World(brokers=5)
    targets = tuple(PartitionTarget(topic="t", partition=number, replicas=(1, 2)) for number in range(10_001))
    refused = await world.send(Alter(id="a", cluster=CLUSTER, by="ana", reason="r", partitions=targets))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.MALFORMED]
    assert refused.refusals[0].detail == "it names 10001 partitions, at most 10000 are allowed: split the command"
