"""No record is larger than the log takes: what is deferred comes in parts, and what is too much is divided."""

import msgspec
import pytest

from drover.decide.deferral import MAX_DEFERRAL_MS
from drover.events.codec import encode_record
from drover.events.commands import Freeze
from drover.events.partitions import TopicPartition
from drover.events.records import Batch, Cursor
from drover.events.refusals import RefusalCode
from drover.events.waiting import CommandHeld
from drover.shard import batch_records
from drover.shard.deferred import MAX_DEFERRED_BYTES
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, TOPIC_IDS, World, alter, rollback

LOG_BYTES = 8 * 1024 * 1024
ORDERS = TopicPartition("orders", 0)


def old_log(world: World, commands: int, reason_bytes: int) -> None:
    """Let the log hold what a Drover without bounds deferred: each command waits for `first`."""
    events = tuple(
        CommandHeld(
            cluster=CLUSTER,
            id=f"f{number}",
            payload=msgspec.msgpack.encode(
                Freeze(id=f"f{number}", cluster=CLUSTER, by="ana", reason="r" * reason_bytes, after=("first",))
            ),
            topic="drover.cancel",
            offset=number,
        )
        for number in range(commands)
    )
    for event in events:
        fold = world.core.fold
        cursors = tuple(Cursor(id_, 0) for id_ in TOPIC_IDS)
        record = Batch(
            schema=1,
            token=fold.token,
            epoch=fold.epoch,
            sequence=fold.sequence + 1,
            at_ms=world.now.wall_ms,
            cursors=cursors,
            previous_hash=fold.chain,
            events=(event,),
        )
        world.append(encode_record(record))
    world.crash()


def largest(world: World) -> int:
    return max(map(len, world.log))


async def test_what_an_old_log_deferred_is_refused_a_part_at_a_time_when_its_time_is_over() -> None:
    world = World()
    old_log(world, commands=40, reason_bytes=230_000)
    await world.run(MAX_DEFERRAL_MS + 1000)
    assert [outcome.id for outcome in world.outcomes()] == [f"f{number}" for number in range(40)]
    assert {outcome.refusals[0].code for outcome in world.outcomes()} == {RefusalCode.AFTER_UNDECIDED}
    assert largest(world) < LOG_BYTES // 4
    assert world.is_idle


async def test_what_an_old_log_deferred_is_released_in_its_order_a_part_at_a_time() -> None:
    world = World()
    old_log(world, commands=40, reason_bytes=230_000)
    world.put(Freeze(id="first", cluster=CLUSTER, by="ana", reason="r"))
    await world.settle()
    assert [outcome.id for outcome in world.outcomes()] == ["first", *(f"f{number}" for number in range(40))]
    assert {outcome.verdict for outcome in world.outcomes()} == {"accepted"}
    assert largest(world) < LOG_BYTES // 4
    assert world.is_idle


async def test_what_waits_for_others_is_bounded_in_bytes_and_the_refusal_says_so() -> None:
    world = World()
    topic = "t" * 240
    keys = [TopicPartition(topic, number) for number in range(3000)]
    for number in range(12):
        world.put(alter(dict.fromkeys(keys, (1, 2)), id=f"a{number}", after=("never",)))
    await world.settle()
    verdicts = [(outcome.id, outcome.verdict) for outcome in world.outcomes()]
    held = [name for name, verdict in verdicts if verdict == "held"]
    assert held == [f"a{number}" for number in range(len(held))]
    assert 5 < len(held) < 12
    assert sum(len(one.payload) for one in world.state.deferred.values()) <= MAX_DEFERRED_BYTES
    refused = next(outcome for outcome in world.outcomes() if outcome.verdict == "refused")
    assert str(MAX_DEFERRED_BYTES) in refused.refusals[0].detail
    # A successor counts the same.
    world.crash()
    world.put(alter(dict.fromkeys(keys, (1, 2)), id="late", after=("never",)))
    await world.settle()
    assert world.outcomes()[-1].verdict == "refused"
    await world.run(MAX_DEFERRAL_MS + 1000)
    assert largest(world) < LOG_BYTES // 4
    assert world.is_idle


async def test_what_follows_from_a_decision_is_divided_into_records_and_nothing_is_called_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_records, "RECORD_BYTES", 3000)
    world = World(brokers=5)
    world.model.create_topic("orders", {number: [1, 2, 3] for number in range(10)}, partition_bytes=1000)
    keys = [TopicPartition("orders", number) for number in range(10)]
    for number, key in enumerate(keys):
        world.put(alter({key: (4, 2, 1)}, id=f"a{number}"))
    await world.turn()
    first = world.batches()[-1]
    assert len(first.outcomes) == 10
    assert world.core.effects(world.now) == ()
    world.put(rollback(keys[0], id="away"))
    await world.turn()
    second = world.batches()[-1]
    assert (second.outcomes, second.cursors, second.at_ms) == ((), first.cursors, first.at_ms)
    await world.finish()
    assert all(len(payload) < 6000 for payload in world.log)
    assert world.replicas(keys[1]) == (4, 2, 1)
    assert [outcome.id for outcome in world.outcomes()] == [*(f"a{number}" for number in range(10)), "away"]
    sound(world)


@pytest.mark.parametrize("turns", range(1, 6))
async def test_an_owner_that_dies_between_two_such_records_loses_no_decision(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_records, "RECORD_BYTES", 3000)
    world = World(brokers=5)
    world.model.create_topic("orders", {number: [1, 2, 3] for number in range(10)}, partition_bytes=1000)
    keys = [TopicPartition("orders", number) for number in range(10)]
    world.put(alter(dict.fromkeys(keys, (4, 2, 1)), id="a", throttle_bytes_per_second=1_000_000))
    for _ in range(turns):
        await world.turn()
    world.crash()
    await world.finish()
    assert [outcome.verdict for outcome in world.outcomes()] == ["accepted"]
    assert {world.replicas(key) for key in keys} == {(4, 2, 1)}
    sound(world)
