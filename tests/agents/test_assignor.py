"""The group's assignor: the same shards of all four command topics must go to one member."""

from collections import defaultdict
from typing import Any

import pytest
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import TopicPartition

from drover.agents.driver import assigned_partitions, new_group_consumer
from drover.agents.settings import GroupSettings
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection

TOPICS = TopicNames().commands
SHARDS = 6


def _assign(assignor: Any, members: int) -> dict[str, dict[str, list[int]]]:
    """Compute what each member of a group would get: its partitions by topic."""
    cluster = ClusterMetadata()
    cluster._partitions = {topic: dict.fromkeys(range(SHARDS)) for topic in TOPICS}
    names = [f"member-{number}" for number in range(members)]
    metadata = {name: assignor.metadata(set(TOPICS)) for name in names}
    assignments = assignor.assign(cluster, metadata)
    return {
        name: assigned_partitions({TopicPartition(topic, number) for topic, number in _flat(assignment)}, TOPICS)
        for name, assignment in assignments.items()
    }


def _flat(assignment: Any) -> list[tuple[str, int]]:
    return [(topic, number) for topic, numbers in assignment.assignment for number in numbers]


def _scattered(members: dict[str, dict[str, list[int]]]) -> list[str]:
    return [name for name, topics in members.items() if len({tuple(numbers) for numbers in topics.values()}) != 1]


@pytest.mark.parametrize("members", range(1, 13))
async def test_every_member_gets_the_same_shards_of_all_four_topics(members: int) -> None:
    assigned = _assign(RangePartitionAssignor, members)
    assert _scattered(assigned) == []
    owners: defaultdict[int, list[str]] = defaultdict(list)
    for name, topics in assigned.items():
        for number in topics[TOPICS[0]]:
            owners[number].append(name)
    assert {number: len(names) for number, names in owners.items()} == dict.fromkeys(range(SHARDS), 1)


async def test_round_robin_scatters_with_four_members_and_looks_right_with_three() -> None:
    assert _scattered(_assign(RoundRobinPartitionAssignor, 4))
    assert not _scattered(_assign(RoundRobinPartitionAssignor, 3))


async def test_the_group_consumer_uses_the_range_assignor_and_reads_committed_records() -> None:
    settings = GroupSettings(LogConnection("localhost:1"), group="g", client_id="c")
    consumer = new_group_consumer(settings)
    try:
        assert consumer._partition_assignment_strategy == [RangePartitionAssignor]
        assert consumer._isolation_level == "read_committed"
        assert consumer._enable_auto_commit is False
        assert consumer._fetch_max_wait_ms == 500
    finally:
        await consumer.stop()
