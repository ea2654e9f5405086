"""PURE: the Kafka protocol requests that Drover sends, and decoding of the responses, with raw error codes.

Uses kafka-python's protocol classes, because its own methods drop the error message of each partition in
AlterPartitionReassignments and KIP-860's flag, and turn error codes into exceptions.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import ConfigOperation
from drover.events.partitions import TopicPartition
from drover.facts import NONE, UNKNOWN_SERVER_ERROR, CallResult, Move, PartitionFacts
from drover.traits import BrokerVersion

CONTROLLER_TIMEOUT_MS = 3000
PREFERRED_ELECTION = 0
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
FETCH_API = 1
LISTENER_NOT_FOUND = 72
METADATA_FEATURE = "metadata.version"
ELR_FEATURE = "eligible.leader.replicas.version"
DYNAMIC_SOURCE = {TOPIC_RESOURCE: 1, BROKER_RESOURCE: 2}  # DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic of a Metadata response; `code` is Kafka's error code, and a missing topic has no partitions."""

    code: int
    topic_id: str
    partitions: Mapping[int, PartitionFacts]
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class Metadata:
    """A Metadata response: the live brokers with their racks, and the requested topics."""

    kafka_cluster_id: str
    racks: Mapping[int, str | None]
    topics: Mapping[str, DescribedTopic]

    def partitions(self) -> dict[TopicPartition, PartitionFacts]:
        """Return every partition of every topic that exists, in their order."""
        return {
            TopicPartition(name, number): facts
            for name, topic in sorted(self.topics.items())
            if topic.code == NONE
            for number, facts in topic.partitions.items()
        }


@dataclass(frozen=True, slots=True)
class DescribedConfigs:
    """A resource of a DescribeConfigs response: every value, and those that are set dynamically on the resource."""

    result: CallResult
    effective: Mapping[str, str]
    own: Mapping[str, str]


def topic_id_text(topic_id: UUID | None) -> str:
    """Format a topic id as `kafka-topics --describe` does, in URL-safe base64; empty without an id."""
    if topic_id is None:
        return ""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def metadata_request(topics: Collection[str] | None) -> Any:
    """Request the brokers and these topics, without creating any; None requests all topics."""
    if topics is None:
        return MetadataRequest(topics=None, allow_auto_topic_creation=False)
    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(set(topics))]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)


def read_metadata(response: Any) -> Metadata:
    """Decode a Metadata response."""
    return Metadata(
        kafka_cluster_id=response.cluster_id,
        racks={broker.node_id: broker.rack for broker in sorted(response.brokers, key=lambda entry: entry.node_id)},
        topics={topic.name: _read_topic(topic) for topic in response.topics},
    )


def _read_topic(topic: Any) -> DescribedTopic:
    topic_id = topic_id_text(topic.topic_id)
    partitions = {
        partition.partition_index: PartitionFacts(
            topic_id=topic_id,
            leader=None if partition.leader_id < 0 else partition.leader_id,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            leader_lacks_listener=partition.error_code == LISTENER_NOT_FOUND,
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }
    return DescribedTopic(topic.error_code, topic_id, partitions, bool(topic.is_internal))


def versions_request() -> Any:
    """Request a broker's API versions and features; version 3 (Kafka 2.4) is the first with features."""
    return ApiVersionsRequest(client_software_name="drover", client_software_version="1", min_version=3)


def read_versions(response: Any) -> BrokerVersion:
    """Decode the versions that a broker supports, and the features in force."""
    supported = {feature.name: feature.max_version for feature in response.supported_features or ()}
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    fetch = next((api.max_version for api in response.api_keys if api.api_key == FETCH_API), 0)
    return BrokerVersion(
        supported_metadata_version=supported.get(METADATA_FEATURE),
        metadata_version=finalized.get(METADATA_FEATURE),
        fetch_version=fetch,
        elr_version=finalized.get(ELR_FEATURE, 0),
    )


def alter_request(requests: Sequence[AlterRequest]) -> Any:
    """Alter or cancel moves; allows changes of the replication factor (KIP-860's flag, version 1)."""
    ordered = sorted(requests, key=lambda request: request.partition)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=CONTROLLER_TIMEOUT_MS,
        allow_replication_factor_change=True,
        topics=[
            (
                topic,
                [
                    (change.partition.partition, None if change.replicas is None else list(change.replicas))
                    for change in group
                ],
            )
            for topic, group in groupby(ordered, key=lambda request: request.partition.topic)
        ],
    )


def read_alter(response: Any, requests: Sequence[AlterRequest]) -> dict[TopicPartition, CallResult]:
    """Decode every partition's answer; a refusal of the whole request is the answer of each of its partitions."""
    if response.error_code != NONE:
        whole = CallResult(response.error_code, response.error_message)
        return {request.partition: whole for request in requests}
    answers = {
        TopicPartition(topic.name, answer.partition_index): CallResult(answer.error_code, answer.error_message)
        for topic in response.responses
        for answer in topic.partitions
    }
    silent = CallResult(UNKNOWN_SERVER_ERROR, "Kafka's answer does not mention this partition")
    return {request.partition: answers.get(request.partition, silent) for request in requests}


def elect_request(partitions: Collection[TopicPartition]) -> Any:
    """Request an election of preferred leaders."""
    return ElectLeadersRequest(
        election_type=PREFERRED_ELECTION,
        topic_partitions=[
            (topic, [key.partition for key in group])
            for topic, group in groupby(sorted(partitions), key=lambda partition: partition.topic)
        ],
        timeout_ms=CONTROLLER_TIMEOUT_MS,
    )


def read_elect(response: Any, partitions: Collection[TopicPartition]) -> dict[TopicPartition, CallResult]:
    """Decode every partition's answer; a refusal of the whole request is the answer of each of its partitions."""
    if response.error_code != NONE:
        whole = CallResult(response.error_code)
        return dict.fromkeys(partitions, whole)
    answers = {
        TopicPartition(topic.topic, answer.partition_id): CallResult(answer.error_code, answer.error_message)
        for topic in response.replica_election_results
        for answer in topic.partition_result
    }
    silent = CallResult(UNKNOWN_SERVER_ERROR, "Kafka's answer does not mention this partition")
    return {partition: answers.get(partition, silent) for partition in partitions}


def list_request() -> Any:
    """Request every partition that is moving."""
    return ListPartitionReassignmentsRequest(timeout_ms=CONTROLLER_TIMEOUT_MS, topics=None)


def read_list(response: Any) -> dict[TopicPartition, Move]:
    """Decode the moves, ordered by partition."""
    moves = {
        TopicPartition(topic.name, partition.partition_index): Move(
            replicas=tuple(partition.replicas),
            adding=tuple(partition.adding_replicas),
            removing=tuple(partition.removing_replicas),
        )
        for topic in response.topics
        for partition in topic.partitions
    }
    return dict(sorted(moves.items()))


def log_dirs_request(partitions: Collection[TopicPartition]) -> Any:
    """Request the sizes of a broker's replicas of these partitions."""
    return DescribeLogDirsRequest(
        topics=[
            (topic, [partition.partition for partition in group])
            for topic, group in groupby(sorted(partitions), key=lambda partition: partition.topic)
        ]
    )


def read_log_dirs(response: Any) -> dict[TopicPartition, int]:
    """Decode the bytes per replica; a replica that moves to another directory counts where it is now."""
    sizes: dict[TopicPartition, int] = {}
    for directory in response.results:
        for topic in directory.topics:
            for partition in topic.partitions:
                if not partition.is_future_key:
                    sizes[TopicPartition(topic.name, partition.partition_index)] = partition.partition_size
    return sizes


def configs_request(kind: int, names: Collection[str], keys: Sequence[str] | None) -> Any:
    """Request config keys of resources of one kind; None requests all keys."""
    wanted = None if keys is None else list(keys)
    return DescribeConfigsRequest(resources=[(kind, name, wanted) for name in sorted(set(names))])


def read_configs(response: Any) -> dict[str, DescribedConfigs]:
    """Decode the configs per resource name."""
    described: dict[str, DescribedConfigs] = {}
    for resource in response.results:
        own_source = DYNAMIC_SOURCE[resource.resource_type]
        configs = [config for config in resource.configs if config.value is not None]
        described[resource.resource_name] = DescribedConfigs(
            result=CallResult(resource.error_code, resource.error_message or None),
            effective={config.name: config.value for config in configs},
            own={config.name: config.value for config in configs if config.config_source == own_source},
        )
    return described


def alter_configs_request(kind: int, operations: Mapping[str, Sequence[ConfigOperation]]) -> Any:
    """Change configs of resources of one kind, each named once."""
    return IncrementalAlterConfigsRequest(
        resources=[
            (kind, name, [(operation.key, int(operation.kind), operation.value) for operation in operations[name]])
            for name in sorted(operations)
        ],
        validate_only=False,
    )


def read_alter_configs(response: Any) -> dict[str, CallResult]:
    """Decode the answer per resource name."""
    return {
        answer.resource_name: CallResult(answer.error_code, answer.error_message or None)
        for answer in response.responses
    }
