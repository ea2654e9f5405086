"""The contract of surveys and elections: every test runs on the simulated twin and on a real Kafka 4.3.1."""

import pytest

from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.facts import (
    ELECTION_NOT_NEEDED,
    NONE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    PartitionFacts,
)
from tests.cluster.support import ClusterUnderTest, eventually, facts, settled


async def reorder(cluster: ClusterUnderTest, partition: TopicPartition, *replicas: int) -> None:
    """Put a partition's replicas in another order, which copies nothing."""
    answers = await cluster.driver.alter([AlterRequest(partition, replicas)])
    assert answers[partition].code == NONE
    await settled(cluster, partition, replicas)


async def elect(cluster: ClusterUnderTest, partition: TopicPartition) -> int:
    """Elect one partition's preferred leader and return Kafka's code."""
    return (await cluster.driver.elect_leaders([partition]))[partition].code


async def led_by(cluster: ClusterUnderTest, partition: TopicPartition, broker: int) -> PartitionFacts:
    """Wait until a broker leads a partition."""
    return await eventually(cluster, lambda: facts(cluster, partition), lambda seen: seen.leader == broker)


async def test_after_a_reorder_an_election_moves_the_leader_and_a_second_one_is_not_needed(
    cluster: ClusterUnderTest,
) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    await reorder(cluster, partition, 2, 3, 1)
    assert (await facts(cluster, partition)).leader == 1
    assert await elect(cluster, partition) == NONE
    seen = await led_by(cluster, partition, 2)
    assert (seen.replicas, set(seen.isr)) == ((2, 3, 1), {1, 2, 3})
    assert await elect(cluster, partition) == ELECTION_NOT_NEEDED


async def test_each_partition_of_one_election_has_its_own_answer(cluster: ClusterUnderTest) -> None:
    """TV-178: one that the right broker leads already is no error."""
    topic = await cluster.create_topic({0: (1, 2, 3), 1: (2, 3, 1)})
    led, moved = TopicPartition(topic, 0), TopicPartition(topic, 1)
    unknown = [TopicPartition(topic, 77), TopicPartition("no-such-topic", 0)]
    await reorder(cluster, moved, 3, 1, 2)
    answers = await cluster.driver.elect_leaders([led, moved, *unknown])
    assert {key: answer.code for key, answer in answers.items()} == {
        led: ELECTION_NOT_NEEDED,
        moved: NONE,
        **dict.fromkeys(unknown, UNKNOWN_TOPIC_OR_PARTITION),
    }
    await led_by(cluster, moved, 3)


@pytest.mark.kills(3)
async def test_an_election_passes_over_no_first_replica_that_is_dead(cluster: ClusterUnderTest) -> None:
    partition = TopicPartition(await cluster.create_topic({0: (1, 2, 3)}), 0)
    await reorder(cluster, partition, 3, 2, 1)
    await cluster.stop_broker(3)
    try:
        assert await elect(cluster, partition) == PREFERRED_LEADER_NOT_AVAILABLE
        assert (await facts(cluster, partition)).leader == 1
    finally:
        await cluster.start_broker(3)
    await eventually(cluster, lambda: facts(cluster, partition), lambda seen: 3 in seen.isr)
    assert await elect(cluster, partition) == NONE
    await led_by(cluster, partition, 3)


async def test_a_survey_shows_every_partition_and_who_lives(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3), 1: (2, 3, 4)})
    survey = await cluster.driver.survey()
    assert survey.live_brokers == (1, 2, 3, 4)
    assert survey.racks == (await cluster.driver.identify()).racks
    assert survey.started_ms <= survey.ended_ms
    for number, replicas in enumerate(((1, 2, 3), (2, 3, 4))):
        partition = TopicPartition(topic, number)
        seen = survey.partitions[partition]
        assert (seen.leader, seen.replicas, set(seen.isr), seen.move) == (replicas[0], replicas, set(replicas), None)
        assert seen.topic_id == (await facts(cluster, partition)).topic_id
    assert survey.kafka_cluster_id == (await cluster.driver.identify()).kafka_cluster_id


async def test_a_thousand_leaders_are_elected_in_one_call_and_one_more_is_a_mistake(cluster: ClusterUnderTest) -> None:
    partitions = [TopicPartition("no-such-topic", number) for number in range(1001)]
    answers = await cluster.driver.elect_leaders(partitions[:1000])
    assert {answer.code for answer in answers.values()} == {UNKNOWN_TOPIC_OR_PARTITION}
    with pytest.raises(AssertionError, match="1001 partitions"):
        await cluster.driver.elect_leaders(partitions)
