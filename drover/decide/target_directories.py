"""Remarks on an alter about the log directories of brokers that get new replicas."""

from collections.abc import Collection, Iterator

from drover.cluster_model import closed_by_directories
from drover.decide.decision import Facts
from drover.decide.unseen import NAMED_AT_MOST
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from drover.planner.disks import DiskCode
from drover.state.cluster import ClusterState

_CONSEQUENCE = {
    DiskCode.CORDONED: "Kafka 4.3 copies there all the same, and 4.4 refuses it; cancel it if that is not meant",
    DiskCode.FAILED: "a copy that Kafka puts there waits until it is repaired and the broker restarted",
}


def directory_remarks(
    command: Alter, accepted: Collection[TopicPartition], state: ClusterState, facts: Facts
) -> tuple[str, ...]:
    """Say which brokers that get new replicas are cordoned (KIP-1066) or have a log directory that has failed.

    `facts.directories` are the brokers' last descriptions; a broker without one gets no remark.
    """
    if not any(
        directory.is_cordoned or directory.code
        for directories in facts.directories.values()
        for directory in directories
    ):
        return ()
    receiving = facts.directories.keys() & set(_receiving(command, frozenset(accepted), state, facts))
    remarks = [
        f"{remark.cause}: {_CONSEQUENCE[remark.code]}"
        for broker in sorted(receiving)
        for remark in closed_by_directories(broker, facts.directories[broker])
    ]
    if len(remarks) > NAMED_AT_MOST:
        remarks[NAMED_AT_MOST:] = [f"{len(remarks) - NAMED_AT_MOST} more like these: `drover describe` names them"]
    return tuple(remarks)


def _receiving(
    command: Alter, accepted: Collection[TopicPartition], state: ClusterState, facts: Facts
) -> Iterator[int]:
    for target in command.partitions:
        if target.replicas is None or target.key not in accepted:
            continue
        active, seen = state.reassignments.get(target.key), facts.partitions.get(target.key)
        present = active.original if active is not None else () if seen is None else seen.replicas
        yield from (broker for broker in target.replicas if broker not in present)
