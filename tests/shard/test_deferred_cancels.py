"""A rollback or stop that KIP-236's guards hold off (R236-8): it is said, and tried again until it is withdrawn."""

import pytest

from drover.client.transfers import Transfers
from drover.client.views.status_rows import status_rows
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CancelMode, ReassignmentCompleted, SkipReason
from drover.state.phase import Phase
from tests.shard.sound import sound
from tests.shard.world import World, alter, cancel, rollback, stop

KEY = TopicPartition("orders", 0)


async def deferred(mode: str = "rollback") -> World:
    """[1,2,3] to [4,2,3]; only 1 and 4, which is not in yet, live, and two must be in sync."""
    made = World(brokers=5, joins_by_itself=False)
    configs = {"min.insync.replicas": "2"}
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000, configs=configs)
    await made.send(alter({KEY: [4, 2, 3]}, id="p"))
    await made.run(500)
    for broker in (2, 3):
        made.model.stop_broker(broker)
    await made.run(3000)
    await made.send(cancel(KEY, mode=mode))
    await made.run(500)
    return made


def statement(made: World) -> str | None:
    (row,) = status_rows(made.state, Transfers())
    return row.deferred


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_the_outcome_the_state_and_the_status_say_it(mode: CancelMode) -> None:
    made = await deferred(mode.value)
    (one,) = made.outcomes()[-1].deferred
    assert (one.topic, one.partition, one.why) == (*KEY, SkipReason.BELOW_MIN_ISR)
    entry = made.reassignment(KEY)
    assert (entry.phase, entry.cancel_mode, entry.deferred_by) == (Phase.COPYING, None, SkipReason.BELOW_MIN_ISR)
    assert entry.asked is not None
    assert (entry.asked.mode, entry.asked.by, entry.asked.reason) == (mode, "bob", "test")
    said = statement(made)
    assert said is not None
    assert said.startswith(f"the {mode.value} that bob asked for (test) is deferred, below-min-isr: it is tried again")


async def test_while_the_guard_stands_it_is_not_tried_again() -> None:
    made = await deferred()
    await made.run(5000)
    assert made.tags(KEY).count("rollback-requested") == 1
    sound(made)


@pytest.mark.parametrize("crashes", [False, True])
async def test_it_is_tried_again_when_the_guard_is_satisfied_whoever_owns_the_shard(*, crashes: bool) -> None:
    made = await deferred()
    if crashes:
        made.crash()
    made.model.start_broker(2)
    await made.run(200)
    made.model.join_isr(KEY, 2)
    await made.run(9000 if crashes else 3000)
    made.model.start_broker(3)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    tags = made.tags(KEY)
    assert tags.count("rollback-requested") == 2
    assert tags[-1] == "reassignment-rolled-back"
    sound(made)


async def test_an_alter_with_the_same_target_withdraws_it() -> None:
    made = await deferred()
    outcome = await made.send(alter({KEY: [4, 2, 3]}))
    assert [one.partition for one in outcome.unchanged] == [0]
    assert made.tags(KEY)[-1] == "cancel-withdrawn"
    assert statement(made) is None
    made.model.start_broker(2)
    await made.run(200)
    made.model.join_isr(KEY, 2)
    await made.run(3000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert made.tags(KEY).count("rollback-requested") == 1


async def test_the_move_that_reaches_its_target_first_says_what_deferred_the_rollback() -> None:
    made = await deferred()
    made.model.join_isr(KEY, 4)
    await made.finish()
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentCompleted)]
    assert (ended.replicas, ended.deferred_by) == ((4, 2, 3), SkipReason.BELOW_MIN_ISR)
    assert set(ended.out_of_sync) == {2, 3}


async def test_a_later_stop_takes_its_place() -> None:
    made = await deferred()
    await made.send(stop(KEY))
    await made.run(500)
    asked = made.reassignment(KEY).asked
    assert asked is not None
    assert asked.mode is CancelMode.STOP


async def test_where_nothing_defers_it_the_outcome_says_nothing() -> None:
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    await made.send(alter({KEY: [4, 2, 3]}, id="p"))
    await made.run(500)
    assert (await made.send(rollback(KEY))).deferred == ()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
