"""A copy whose log directory has failed: it is blocked with the path, and goes on when the directory is back."""

import pytest

from drover.decide.verdict import NOTHING
from drover.events.commands import Cancel
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentCompleted, ReassignmentUnblocked
from drover.facts import KAFKA_STORAGE_ERROR, PartitionFacts
from drover.inventory import LogDirectory
from drover.reconcile.moves.reconcile import reconcile
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment, Step
from tests.reassignment.support import context, moving, reassignment, sight
from tests.shard.world import CLUSTER, World, alter

KEY = TopicPartition("orders", 0)
FAILED = {4: (LogDirectory("/d2", None, None, code=KAFKA_STORAGE_ERROR),)}
SAID = (
    "log directory /d2 has failed (Kafka error 56, KAFKA_STORAGE_ERROR) on broker 4, where the replica should be: "
    "repair the directory and restart the broker, then the copy goes on; or cancel"
)
LIES_THERE = reassignment(Phase.COPYING, block=Block(Blocker.FAILED_LOG_DIRECTORY, SAID, 1))


# -- one look


def test_the_broker_the_path_and_kafkas_error_are_named() -> None:
    (event,) = reconcile(reassignment(Phase.COPYING), moving(), context(directory_failures=FAILED)).events
    assert isinstance(event, ReassignmentBlocked)
    assert (event.why, event.detail) == (Blocker.FAILED_LOG_DIRECTORY, SAID)
    assert reconcile(LIES_THERE, moving(), context(directory_failures=FAILED)) == NOTHING


def test_the_block_goes_when_the_directory_shows_the_replica_and_not_before_that_is_known() -> None:
    assert reconcile(LIES_THERE, moving(), context()) == NOTHING
    (event,) = reconcile(LIES_THERE, moving(), context(directory_failures={})).events
    assert isinstance(event, ReassignmentUnblocked)


def test_a_replica_in_sync_is_where_it_should_be() -> None:
    assert (
        reconcile(reassignment(Phase.COPYING), moving(isr=(1, 2, 3, 4)), context(directory_failures=FAILED)) == NOTHING
    )


def test_a_kept_replica_that_kafka_waits_for_is_named_with_its_directory_too() -> None:
    about = _shrinking()
    seen = sight((1, 4, 2, 3), (2, 3, 4), move=moving((1, 4, 2, 3), removing=(2, 3)).move)
    there = {1: FAILED[4]}
    (event,) = reconcile(about, seen, context(directory_failures=there)).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.FAILED_LOG_DIRECTORY
    assert "/d2" in event.detail
    assert "on broker 1," in event.detail


def _shrinking() -> Reassignment:
    return reassignment(Phase.COPYING, target=(1, 4), step=Step(1, True, (1, 2, 3), (1, 4), 2))


@pytest.mark.parametrize(
    ("seen", "live", "why"),
    [
        (moving(), {1, 2, 3}, Blocker.DEAD_DESTINATION),
        (moving(isr=(1,), leader=None), {1, 2, 3, 4}, Blocker.NO_LEADER),
    ],
    ids=["dead", "no leader"],
)
def test_what_keeps_the_whole_broker_or_partition_from_copying_is_named_first(
    seen: PartitionFacts, live: set[int], why: Blocker
) -> None:
    (event,) = reconcile(
        reassignment(Phase.COPYING),
        seen,
        context(directory_failures=FAILED, live=live),
    ).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is why


# -- an owner


async def copying() -> World:
    """An owner that has begun to move a partition to broker 4, two seconds ago."""
    made = World()
    made.model.replication.copy_bytes_per_second = 1000
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    await made.send(alter({KEY: [4, 2, 3]}, plan="friday"))
    await made.run(2500)
    await made.measure()
    assert made.reassignment(KEY).block is None
    return made


async def failed() -> World:
    made = await copying()
    made.model.directories.fail(4, [KEY])
    await made.measure()
    return made


def news(made: World) -> list[str]:
    tags = made.tags(KEY)
    return tags[tags.index("call-accepted") + 1 :]


async def test_the_next_look_at_the_cluster_after_a_sample_that_misses_the_replica_blocks_it() -> None:
    made = await failed()
    await made.look()
    await made.settle()
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.FAILED_LOG_DIRECTORY
    assert block.detail.startswith("log directory /simulated-failed has failed (Kafka error 56, KAFKA_STORAGE_ERROR)")
    for _ in range(5):
        await made.run(1000)
        await made.measure()
    assert news(made) == ["reassignment-blocked"]


async def test_it_goes_on_by_itself_when_the_directory_is_back() -> None:
    made = await failed()
    await made.run(1000)
    made.model.directories.repair(4)
    await made.measure()
    await made.run(500)
    assert news(made) == ["reassignment-blocked", "reassignment-unblocked"]
    made.model.replication.copy_bytes_per_second = None
    await made.finish()
    assert isinstance(made.events()[-2], ReassignmentCompleted)
    assert made.replicas(KEY) == (4, 2, 3)


async def test_a_rollback_of_what_is_blocked_restores_the_original_list() -> None:
    made = await failed()
    await made.run(1000)
    await made.send(Cancel(id="c", cluster=CLUSTER, by="ana", reason="full", mode="rollback", plan="friday"))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_a_directory_that_failed_before_the_replica_was_made_blocks_nothing() -> None:
    made = World()
    made.model.replication.copy_bytes_per_second = 1000
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    made.model.directories.fail(4, [])
    await made.send(alter({KEY: [4, 2, 3]}))
    for _ in range(5):
        await made.run(1000)
        await made.measure()
    assert news(made) == []


async def test_a_replica_that_the_last_call_has_added_may_be_made_a_moment_later() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    made.model.replication.copy_bytes_per_second = 1000
    await made.send(alter({KEY: [4, 2, 3]}))
    await made.run(500)
    made.model.directories.fail(4, [KEY])
    await made.measure()
    await made.run(500)
    assert news(made) == []
    await made.run(1500)
    await made.measure()
    await made.run(500)
    assert news(made) == ["reassignment-blocked"]


async def test_a_successor_keeps_the_block_until_it_has_looked_itself() -> None:
    made = await failed()
    await made.run(1000)
    made.crash()
    await made.run(8000)
    assert news(made) == ["reassignment-blocked"]
    await made.measure()
    await made.run(1000)
    assert news(made) == ["reassignment-blocked"]
    made.model.directories.repair(4)
    await made.measure()
    await made.run(1000)
    assert news(made) == ["reassignment-blocked", "reassignment-unblocked"]
