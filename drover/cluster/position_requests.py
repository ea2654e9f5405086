"""PURE: the requests for how far producers and consumers have come, and decoding of the answers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from drover.events.partitions import TopicPartition
from drover.facts import NONE

# The offsets to list: the next one that is written, and the first one on the leader's disks (KIP-405).
LATEST, EARLIEST_LOCAL = -1, -4
# The first versions that take the latter, and several groups; Kafka 3.7 has both.
LOCAL_VERSION, GROUPS_VERSION = 8, 8
NO_EPOCH = CONSUMER = -1
# Share groups (KIP-932) keep no committed offsets.
SHARE = "share"


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The committed offsets of groups by partition, and the groups that could not be read."""

    offsets: Mapping[str, Mapping[TopicPartition, int]]
    unread: frozenset[str]


def offsets_request(partitions: Collection[TopicPartition], which: int) -> Any:
    """Request one offset of each partition from its leader, transactions that are not committed included."""
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=0,
        topics=[
            (topic, [(partition.partition, NO_EPOCH, which) for partition in group])
            for topic, group in groupby(sorted(partitions), key=lambda partition: partition.topic)
        ],
        min_version=LOCAL_VERSION,
    )


def read_offsets(response: Any) -> dict[TopicPartition, int]:
    """Return the offsets; a partition whose leader has moved meanwhile is left out."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == NONE and partition.offset >= 0
    }


def groups_request() -> Any:
    """Request the groups that a broker coordinates and the user may describe."""
    return ListGroupsRequest()


def read_groups(response: Any) -> list[str] | None:
    """Return the groups that may have committed offsets; None if the broker refuses or is not ready."""
    if response.error_code != NONE:
        return None
    return sorted(group.group_id for group in response.groups if group.protocol_type != SHARE)


def committed_request(groups: Collection[str]) -> Any:
    """Request all committed offsets of these groups from their coordinator."""
    return OffsetFetchRequest(
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups],
        min_version=GROUPS_VERSION,
        max_version=GROUPS_VERSION,
    )


def read_committed(response: Any) -> CommittedOffsets:
    """Return the committed offsets by group and partition."""
    offsets: dict[str, dict[TopicPartition, int]] = {}
    unread = set()
    for group in response.groups:
        if group.error_code != NONE:
            unread.add(group.group_id)
            continue
        offsets[group.group_id] = {
            TopicPartition(topic.name, partition.partition_index): partition.committed_offset
            for topic in group.topics
            for partition in topic.partitions
            if partition.error_code == NONE and partition.committed_offset >= 0
        }
    return CommittedOffsets(offsets, frozenset(unread))
