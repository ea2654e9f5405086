"""The requests behind an `Inventory` and what is read from their answers; no I/O."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest

from drover.cluster.messages import Metadata, read_log_dirs
from drover.events.partitions import TopicPartition
from drover.facts import NONE
from drover.inventory import LogDirectories, LogDirectory, RegisteredBroker

FENCED_BROKERS_VERSION = 2
"""The first version of DescribeCluster that names fenced brokers (KIP-1073)."""


def brokers_request() -> Any:
    """Ask for every registered broker, fenced ones included where the cluster knows how (KIP-1073)."""
    return DescribeClusterRequest(include_fenced_brokers=True)


def read_brokers(response: Any, metadata: Metadata) -> dict[int, RegisteredBroker]:
    """Read the registered brokers; those that Metadata shows are alive."""
    racks = {broker.broker_id: broker.rack for broker in response.brokers} | dict(metadata.racks)
    return {
        broker: RegisteredBroker(broker, rack, is_alive=broker in metadata.racks)
        for broker, rack in sorted(racks.items())
    }


def read_registered(response: Any, metadata: Metadata) -> frozenset[int] | None:
    """Read who is registered, fenced brokers included; None where the cluster does not name those, before 4.0."""
    if response.error_code != NONE or response.version < FENCED_BROKERS_VERSION:
        return None
    return frozenset(broker.broker_id for broker in response.brokers).union(metadata.racks)


def every_directory_request() -> Any:
    """Ask one broker for all its log directories and what is in them."""
    return DescribeLogDirsRequest(topics=None)


def read_directories(response: Any) -> tuple[LogDirectory, ...]:
    """Read the directories; -1 is Kafka's word for an unknown size. Only version 5 says what is cordoned (KIP-1066)."""
    return tuple(
        LogDirectory(
            path=directory.log_dir,
            total_bytes=_size(directory.total_bytes),
            usable_bytes=_size(directory.usable_bytes),
            code=directory.error_code,
            is_cordoned=bool(directory.is_cordoned),
        )
        for directory in sorted(response.results, key=lambda directory: directory.log_dir)
    )


def read_log_directories(answers: Mapping[int, Any], asked: Collection[TopicPartition]) -> LogDirectories:
    """Read what brokers answer to one request for these partitions; None is no answer.

    A user who may not describe the cluster gets no directories, as if the broker had not answered.
    """
    responses = {broker: response for broker, response in answers.items() if response is not None}
    held = {broker: read_log_dirs(response) for broker, response in responses.items()}
    return LogDirectories(
        sizes={key: {broker: sizes[key] for broker, sizes in held.items() if key in sizes} for key in asked},
        directories={
            broker: directories for broker, response in responses.items() if (directories := read_directories(response))
        },
    )


def by_partition(held: Mapping[int, Mapping[TopicPartition, int]]) -> dict[TopicPartition, dict[int, int]]:
    """Turn what each broker holds into who holds each partition."""
    turned: dict[TopicPartition, dict[int, int]] = {}
    for broker, sizes in sorted(held.items()):
        for partition, size in sizes.items():
            turned.setdefault(partition, {})[broker] = size
    return dict(sorted(turned.items()))


def _size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size
