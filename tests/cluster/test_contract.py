"""The contract of `ClusterDriver`: every test runs on simulated twins and on a real Kafka.

That is Kafka 4.3.1 unless `--kafka` says otherwise. What a test expects where versions differ follows from the traits.
"""

from collections.abc import Mapping

import pytest

from drover.cluster.port import (
    AddThrottledReplicas,
    AlterRequest,
    SetBrokerRates,
)
from drover.events.partitions import TopicPartition
from drover.events.traits import Completion, Retarget
from drover.facts import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerRates,
    Move,
    ThrottledReplicas,
)
from drover.reconcile.moves.call_pace import FIRST_IN_ZOOKEEPER_MODE
from tests.cluster.support import (
    RECORD_BYTES,
    ClusterUnderTest,
    eventually,
    facts,
    settled,
)

BROKERS = (1, 2, 3, 4)
SLOW = BrokerRates(leader_bytes_per_second=20_000, follower_bytes_per_second=20_000)
UNTHROTTLED = BrokerRates(None, None)
BROKER_NOT_AVAILABLE = 8
RECORDS = 48


async def alter_one(cluster: ClusterUnderTest, partition: TopicPartition, *replicas: int) -> int:
    """Alter one partition and return Kafka's code."""
    return (await cluster.driver.alter([AlterRequest(partition, replicas)]))[partition].code


async def cancel(cluster: ClusterUnderTest, partition: TopicPartition) -> int:
    """Cancel one partition's move and return Kafka's code."""
    return (await cluster.driver.alter([AlterRequest(partition, None)]))[partition].code


async def throttled_topic(cluster: ClusterUnderTest, assignments: Mapping[int, tuple[int, ...]]) -> str:
    """Create a topic whose moves take long until `unthrottle` is called: three fetches' worth, 3 MiB a partition."""
    topic = await cluster.create_topic(assignments, records=RECORDS)
    every_pair = tuple(f"{number}:{broker}" for number in assignments for broker in BROKERS)
    results = await cluster.driver.change_throttles(
        [
            *(SetBrokerRates(broker, SLOW) for broker in BROKERS),
            AddThrottledReplicas(topic, ThrottledReplicas(every_pair, every_pair)),
        ]
    )
    assert {result.code for result in results.values()} == {NONE}
    await eventually(
        cluster,
        lambda: cluster.driver.broker_rates(BROKERS),
        lambda rates: rates == dict.fromkeys(BROKERS, SLOW),
    )
    return topic


async def unthrottle(cluster: ClusterUnderTest) -> None:
    """Delete the rates on every broker again."""
    await cluster.driver.change_throttles([SetBrokerRates(broker, UNTHROTTLED) for broker in BROKERS])
    await eventually(
        cluster,
        lambda: cluster.driver.broker_rates(BROKERS),
        lambda rates: rates == dict.fromkeys(BROKERS, UNTHROTTLED),
    )


async def test_identify_names_the_cluster_and_the_racks_of_live_brokers(cluster: ClusterUnderTest) -> None:
    identity = await cluster.driver.identify()
    assert identity.kafka_cluster_id
    assert tuple(identity.racks) == BROKERS
    assert len(set(identity.racks.values())) == 3


async def test_an_idle_cluster_lists_nothing(cluster: ClusterUnderTest) -> None:
    assert (await cluster.driver.list_moves()).moves == {}


async def test_an_alter_of_an_unknown_partition_is_answered_with_3_and_a_cancel_with_3_or_85(
    cluster: ClusterUnderTest,
) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    unknown = [TopicPartition(topic, 77), TopicPartition("no-such-topic", 0)]
    altered = await cluster.driver.alter([AlterRequest(partition, (1, 2)) for partition in unknown])
    cancelled = await cluster.driver.alter([AlterRequest(partition, None) for partition in unknown])
    expected = dict.fromkeys(unknown, UNKNOWN_TOPIC_OR_PARTITION)
    assert {partition: result.code for partition, result in altered.items()} == expected
    if cluster.traits.zookeeper_mode:
        expected = dict.fromkeys(unknown, NO_REASSIGNMENT_IN_PROGRESS)
    assert {partition: result.code for partition, result in cancelled.items()} == expected
    assert all(result.message for result in altered.values())


@pytest.mark.parametrize("replicas", [(1, 1), (1, 99), ()], ids=["duplicate", "unknown broker", "empty"])
async def test_a_wrong_list_is_answered_with_39_and_its_reason(
    cluster: ClusterUnderTest, replicas: tuple[int, ...]
) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    result = (await cluster.driver.alter([AlterRequest(partition, replicas)]))[partition]
    assert result.code == INVALID_REPLICA_ASSIGNMENT
    assert result.message


async def test_each_partition_of_one_call_has_its_own_answer(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3), 1: (1, 2, 3), 2: (1, 2, 3)})
    first, second, third = (TopicPartition(topic, number) for number in range(3))
    results = await cluster.driver.alter(
        [AlterRequest(third, None), AlterRequest(first, (3, 2, 1)), AlterRequest(second, (1, 99))]
    )
    assert {partition: result.code for partition, result in results.items()} == {
        first: NONE,
        second: INVALID_REPLICA_ASSIGNMENT,
        third: NO_REASSIGNMENT_IN_PROGRESS,
    }


async def test_cancelling_what_does_not_move_is_answered_with_85(cluster: ClusterUnderTest) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    assert await cancel(cluster, partition) == NO_REASSIGNMENT_IN_PROGRESS


async def test_a_reorder_completes_at_once_and_leaves_the_leader(cluster: ClusterUnderTest) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    assert await alter_one(cluster, partition, 2, 3, 1) == NONE
    assert partition not in (await cluster.driver.list_moves()).moves
    assert (await settled(cluster, partition, (2, 3, 1))).leader == 1


async def test_an_alter_to_the_current_list_changes_nothing(cluster: ClusterUnderTest) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    before = await facts(cluster, partition)
    assert await alter_one(cluster, partition, 1, 2, 3) == NONE
    assert partition not in (await cluster.driver.list_moves()).moves
    assert await facts(cluster, partition) == before


async def test_a_throttled_move_shows_its_bytes_and_ends_when_the_throttle_goes(cluster: ClusterUnderTest) -> None:
    # First of the throttled tests: Kafka's quotas remember the bytes of the last 11 s, which would hold this one up.
    topic = await throttled_topic(cluster, {0: (1, 2)})
    partition = TopicPartition(topic, 0)
    assert await alter_one(cluster, partition, 1, 4) == NONE

    async def held() -> Mapping[int, int]:
        return (await cluster.driver.log_directories([topic])).sizes[partition]

    full = (await held())[1]
    assert full >= RECORDS * RECORD_BYTES
    some = await eventually(cluster, held, lambda sizes: sizes.get(4, 0) > 0)
    assert some[1] == some[2] == full
    await unthrottle(cluster)
    await settled(cluster, partition, (1, 4))
    assert await eventually(cluster, held, lambda sizes: set(sizes) == {1, 4}) == {1: full, 4: full}


async def test_a_throttled_move_is_listed_and_observed_and_its_cancel_loses_the_order(
    cluster: ClusterUnderTest,
) -> None:
    partition = TopicPartition(await throttled_topic(cluster, {0: (1, 2, 3)}), 0)
    assert await alter_one(cluster, partition, 4, 2, 1) == NONE
    move = Move(replicas=(4, 2, 1, 3), adding=(4,), removing=(3,))
    assert (await cluster.driver.list_moves()).moves[partition] == move
    seen = await eventually(cluster, lambda: facts(cluster, partition), lambda found: found.replicas == move.replicas)
    assert (seen.move, set(seen.isr), seen.leader) == (move, {1, 2, 3}, 1)
    assert await cancel(cluster, partition) == NONE
    await settled(cluster, partition, (2, 1, 3))
    assert await alter_one(cluster, partition, 1, 2, 3) == NONE
    assert partition not in (await cluster.driver.list_moves()).moves
    await settled(cluster, partition, (1, 2, 3))
    await unthrottle(cluster)


async def test_a_retarget_to_the_original_set_ends_at_once_or_leaves_a_broker_in_both_lists_until_it_is_cancelled(
    cluster: ClusterUnderTest,
) -> None:
    partition = TopicPartition(await throttled_topic(cluster, {0: (3, 1, 2)}), 0)
    assert await alter_one(cluster, partition, 4, 1, 2) == NONE
    if cluster.traits.completion is Completion.TARGET:
        assert await alter_one(cluster, partition, 1, 2, 3) == NONE
        assert partition not in (await cluster.driver.list_moves()).moves
        await settled(cluster, partition, (1, 2, 3))
        await unthrottle(cluster)
        return
    odd = Move(replicas=(1, 2, 3, 4), adding=(4,), removing=(4,))
    for _repeated in range(2):
        assert await alter_one(cluster, partition, 1, 2, 3) == NONE
        assert (await cluster.driver.list_moves()).moves[partition] == odd
    await unthrottle(cluster)
    everybody = await eventually(
        cluster, lambda: facts(cluster, partition), lambda found: set(found.isr) == {1, 2, 3, 4}
    )
    assert everybody.move == odd
    assert await cancel(cluster, partition) == NONE
    await settled(cluster, partition, (1, 2, 3))


async def test_a_retarget_to_a_superset_is_accepted_and_changes_nothing_or_removes_nothing_any_more(
    cluster: ClusterUnderTest,
) -> None:
    partition = TopicPartition(await throttled_topic(cluster, {0: (2, 3, 1)}), 0)
    assert await alter_one(cluster, partition, 4, 3, 1) == NONE
    before = (await cluster.driver.list_moves()).moves[partition]
    assert before == Move(replicas=(4, 3, 1, 2), adding=(4,), removing=(2,))
    assert await alter_one(cluster, partition, 4, 3, 1, 2) == NONE
    if cluster.traits.retarget is Retarget.ORIGINAL:
        before = Move(replicas=(4, 3, 1, 2), adding=(4,), removing=())
    assert (await cluster.driver.list_moves()).moves[partition] == before
    assert await cancel(cluster, partition) == NONE
    await unthrottle(cluster)


async def test_a_partition_grows_step_by_step_and_drops_what_it_left(cluster: ClusterUnderTest) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2)}, records=1), 0)
    for step in [(1, 2, 3), (1, 2, 3, 4), (3, 4)]:
        assert await alter_one(cluster, partition, *step) == NONE
        await settled(cluster, partition, step)
        # A broker may show the end of a move before it shows the ISR that ended it.
        await eventually(
            cluster, lambda: facts(cluster, partition), lambda found: set(found.isr) == set(found.replicas)
        )
    assert (await facts(cluster, partition)).leader in {3, 4}


async def test_a_topic_id_changes_when_a_topic_is_made_again(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    partition = TopicPartition(topic, 0)
    before = (await facts(cluster, partition)).topic_id
    await cluster.recreate_topic(topic, {0: (1, 2, 3)})
    after = (await facts(cluster, partition)).topic_id
    assert len(before) == len(after) == 22
    assert before != after


async def test_partition_counts_name_what_does_not_exist(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2), 1: (2, 3), 2: (3, 1)})
    assert await cluster.driver.partition_counts([topic, "no-such-topic"]) == {topic: 3, "no-such-topic": None}


async def test_an_observation_says_what_exists_what_does_not_and_what_moves(cluster: ClusterUnderTest) -> None:
    topic = await throttled_topic(cluster, {0: (1, 2, 3), 1: (2, 3, 1)})
    idle, moving = TopicPartition(topic, 0), TopicPartition(topic, 1)
    missing = [TopicPartition(topic, 2), TopicPartition("no-such-topic", 0)]
    assert await alter_one(cluster, moving, 4, 2, 1) == NONE
    observation = await cluster.driver.observe([idle, moving, *missing], with_min_isr=True)
    assert set(observation.partitions) == {idle, moving, *missing}
    assert [observation.partitions[partition] for partition in missing] == [None, None]
    identity = await cluster.driver.identify()
    assert observation.kafka_cluster_id == identity.kafka_cluster_id
    assert observation.cluster == "under-test"
    assert observation.live_brokers == BROKERS
    assert observation.started_ms <= observation.ended_ms
    assert observation.moves == (await cluster.driver.list_moves()).moves
    assert observation.min_isr == {topic: observation.min_isr[topic]}
    seen_idle, seen_moving = observation.partitions[idle], observation.partitions[moving]
    assert seen_idle is not None
    assert seen_idle.move is None
    assert seen_moving is not None
    assert seen_moving.move == observation.moves[moving]
    assert await cancel(cluster, moving) == NONE
    await unthrottle(cluster)


async def test_an_observation_continues_from_a_listing_and_leaves_out_what_has_changed_since(
    cluster: ClusterUnderTest,
) -> None:
    topic = await throttled_topic(cluster, {0: (1, 2, 3), 1: (2, 3, 1)})
    idle, moving = TopicPartition(topic, 0), TopicPartition(topic, 1)
    before = await cluster.driver.list_moves()
    assert await alter_one(cluster, moving, 4, 2, 1) == NONE
    began = await cluster.driver.observe([idle, moving], since=before)
    assert set(began.partitions) == {idle}
    assert moving not in began.moves

    during = await cluster.driver.list_moves()
    seen = await cluster.driver.observe([idle, moving], since=during)
    assert seen.moves == during.moves
    assert {key: found and found.move for key, found in seen.partitions.items()} == {
        idle: None,
        moving: Move(replicas=(4, 2, 1, 3), adding=(4,), removing=(3,)),
    }

    assert await cancel(cluster, moving) == NONE
    ended = await cluster.driver.observe([idle, moving], since=during)
    assert set(ended.partitions) == {idle}
    assert ended.moves == {}
    assert [began.started_ms, seen.started_ms, ended.started_ms] == [
        before.started_ms,
        during.started_ms,
        during.started_ms,
    ]
    assert before.started_ms <= during.started_ms <= seen.ended_ms <= ended.ended_ms
    await unthrottle(cluster)


async def test_min_isr_is_the_topics_own(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)}, configs={"min.insync.replicas": "2"})
    for _from_the_cache_too in range(2):
        observation = await cluster.driver.observe([TopicPartition(topic, 0)], with_min_isr=True)
        assert observation.min_isr == {topic: 2}
    assert (await cluster.driver.observe([TopicPartition(topic, 0)])).min_isr == {}


async def test_a_thousand_partitions_are_altered_in_one_call_or_as_many_as_drover_begins_with(
    cluster: ClusterUnderTest,
) -> None:
    count = FIRST_IN_ZOOKEEPER_MODE if cluster.traits.zookeeper_mode else 1000
    topic = await cluster.create_topic(dict.fromkeys(range(count), (1, 2)))
    partitions = [TopicPartition(topic, number) for number in range(count)]
    results = await cluster.driver.alter([AlterRequest(partition, (2, 1)) for partition in partitions])
    assert set(results) == set(partitions)
    assert {result.code for result in results.values()} == {NONE}

    async def lists() -> set[tuple[int, ...] | None]:
        seen = await cluster.driver.observe(partitions)
        found = (seen.partitions.get(partition) for partition in partitions)
        return {None if one is None else one.replicas for one in found}

    assert await eventually(cluster, lists, lambda found: found == {(2, 1)})


async def test_a_thousand_and_one_partitions_are_a_mistake_of_the_caller(cluster: ClusterUnderTest) -> None:
    too_many = [AlterRequest(TopicPartition("t", number), (1,)) for number in range(1001)]
    with pytest.raises(AssertionError, match="1001"):
        await cluster.driver.alter(too_many)


@pytest.mark.kills(3)
async def test_a_dead_destination_is_refused_or_accepted_and_does_not_stop_the_cancel(
    cluster: ClusterUnderTest,
) -> None:
    dead_target = TopicPartition(await cluster.create_topic({0: (1, 2, 4)}, records=1), 0)
    topic = await cluster.create_topic({0: (1, 2)}, records=1)
    shrinking = TopicPartition(topic, 0)
    await cluster.driver.alter([AlterRequest(shrinking, (1, 2, 4, 3))])
    await settled(cluster, shrinking, (1, 2, 4, 3))
    await cluster.stop_broker(3)
    assert 3 not in await cluster.driver.broker_rates(BROKERS)
    assert 3 not in (await cluster.driver.log_directories([topic])).sizes[shrinking]
    rates = SetBrokerRates(3, SLOW)
    assert (await cluster.driver.change_throttles([rates]))[rates].code == BROKER_NOT_AVAILABLE

    if cluster.traits.takes_dead_destinations:
        assert await alter_one(cluster, dead_target, 3, 2, 1) == NONE
        assert (await cluster.driver.list_moves()).moves[dead_target].adding == (3,)
        assert await cancel(cluster, dead_target) == NONE
        await settled(cluster, dead_target, (2, 1, 4))
    else:
        assert await alter_one(cluster, dead_target, 3, 2, 1) == INVALID_REPLICA_ASSIGNMENT
        assert await cancel(cluster, dead_target) == NO_REASSIGNMENT_IN_PROGRESS

    await eventually(cluster, lambda: facts(cluster, shrinking), lambda found: set(found.isr) == {1, 2, 4})
    assert await alter_one(cluster, shrinking, 4, 3) == NONE
    if cluster.traits.completion is Completion.ADDED:
        assert shrinking not in (await cluster.driver.list_moves()).moves
        await settled(cluster, shrinking, (4, 3))
        await cluster.start_broker(3)
        return
    waiting = (await cluster.driver.list_moves()).moves[shrinking]
    assert waiting == Move(replicas=(4, 3, 1, 2), adding=(), removing=(1, 2))
    assert await cancel(cluster, shrinking) == NONE
    await settled(cluster, shrinking, (4, 3, 1, 2))
    assert await alter_one(cluster, shrinking, 1, 2) == NONE
    assert shrinking not in (await cluster.driver.list_moves()).moves
    await settled(cluster, shrinking, (1, 2))
    await cluster.start_broker(3)
    assert tuple((await cluster.driver.identify()).racks) == BROKERS
