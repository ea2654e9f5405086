"""PURE: the requests for an `Inventory`, and decoding of their answers."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest

from drover.cluster.messages import Metadata, read_log_dirs
from drover.events.partitions import TopicPartition
from drover.facts import NONE
from drover.inventory import LogDirectories, LogDirectory, RegisteredBroker

FENCED_BROKERS_VERSION = 2
"""The first version of DescribeCluster that lists fenced brokers (KIP-1073)."""


def brokers_request() -> Any:
    """Request every registered broker, including fenced ones if the cluster supports it (KIP-1073)."""
    return DescribeClusterRequest(include_fenced_brokers=True)


def read_brokers(response: Any, metadata: Metadata) -> dict[int, RegisteredBroker]:
    """Return the registered brokers; those in Metadata are alive."""
    racks = {broker.broker_id: broker.rack for broker in response.brokers} | dict(metadata.racks)
    return {
        broker: RegisteredBroker(broker, rack, is_alive=broker in metadata.racks)
        for broker, rack in sorted(racks.items())
    }


def read_registered(response: Any, metadata: Metadata) -> frozenset[int] | None:
    """Return the registered brokers, fenced ones included; None before Kafka 4.0, which does not list those."""
    if response.error_code != NONE or response.version < FENCED_BROKERS_VERSION:
        return None
    return frozenset(broker.broker_id for broker in response.brokers).union(metadata.racks)


def every_directory_request() -> Any:
    """Request all log directories of a broker, with their replicas."""
    return DescribeLogDirsRequest(topics=None)


def read_directories(response: Any) -> tuple[LogDirectory, ...]:
    """Return the log directories; Kafka sends -1 for an unknown size, and cordoned directories from version 5 on."""
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
    """Return the sizes of these partitions' replicas from the answers of brokers; None stands for no answer.

    A broker that denies the user Describe on the cluster counts as not answering.
    """
    responses = {broker: response for broker, response in answers.items() if response is not None}
    stored = {broker: read_log_dirs(response) for broker, response in responses.items()}
    return LogDirectories(
        sizes={key: {broker: sizes[key] for broker, sizes in stored.items() if key in sizes} for key in asked},
        directories={
            broker: directories for broker, response in responses.items() if (directories := read_directories(response))
        },
    )


def by_partition(stored: Mapping[int, Mapping[TopicPartition, int]]) -> dict[TopicPartition, dict[int, int]]:
    """Regroup replica sizes by partition instead of by broker."""
    turned: dict[TopicPartition, dict[int, int]] = {}
    for broker, sizes in sorted(stored.items()):
        for partition, size in sizes.items():
            turned.setdefault(partition, {})[broker] = size
    return dict(sorted(turned.items()))


def _size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size
