"""Remarks on an alter about the log directories of brokers that get new replicas: Kafka accepts such lists."""

from collections.abc import Collection, Iterator

from drover.capability.decision import Facts
from drover.inventory import LogDirectory
from drover.state.cluster import ClusterState
from events.commands import Alter
from events.partitions import TopicPartition

MOST_NAMED = 10


def directory_remarks(
    command: Alter, accepted: Collection[TopicPartition], state: ClusterState, facts: Facts
) -> tuple[str, ...]:
    """Say which brokers that get new replicas are cordoned (KIP-1066) or have a log directory that has failed.

    `facts.directories` are what the brokers last described; nothing is said of one that has described nothing.
    """
    closed = {broker: found for broker, found in facts.directories.items() if _is_cordoned(found) or _failed(found)}
    if not closed:
        return ()
    named = sorted(closed.keys() & set(_receiving(command, frozenset(accepted), state, facts)))
    remarks = [remark for broker in named[:MOST_NAMED] for remark in _remarks(broker, closed[broker])]
    if len(named) > MOST_NAMED:
        remarks.append(f"so it is with {len(named) - MOST_NAMED} more brokers: `drover describe` names them")
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


def _remarks(broker: int, directories: tuple[LogDirectory, ...]) -> Iterator[str]:
    if _is_cordoned(directories):
        yield (
            f"broker {broker} is cordoned with all of its log directories (cordoned.log.dirs): Kafka copies there all "
            "the same; cancel it if that is not meant"
        )
    for directory in _failed(directories):
        yield (
            f"{directory.failure} on broker {broker}: a copy that Kafka puts there waits until the directory is "
            "repaired and the broker restarted"
        )


def _is_cordoned(directories: tuple[LogDirectory, ...]) -> bool:
    working = [directory for directory in directories if not directory.code]
    return bool(working) and all(directory.is_cordoned for directory in working)


def _failed(directories: tuple[LogDirectory, ...]) -> tuple[LogDirectory, ...]:
    return tuple(directory for directory in directories if directory.code)
