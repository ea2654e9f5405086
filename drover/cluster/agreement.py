"""PURE: combine List, Describe, List into one `Observation`; the same for the real and the simulated driver."""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from drover.events.partitions import TopicPartition
from drover.facts import Move, PartitionFacts

Moves = Mapping[TopicPartition, Move]
Described = Mapping[TopicPartition, PartitionFacts | None]


def agreed_moves(before: Moves, after: Moves) -> dict[TopicPartition, Move]:
    """Return the moves that are equal in both Lists."""
    return {partition: move for partition, move in before.items() if after.get(partition) == move}


def agreed_partitions(
    asked: Collection[TopicPartition], before: Moves, described: Described, after: Moves
) -> dict[TopicPartition, PartitionFacts | None]:
    """Return the asked partitions that were described and on which both Lists agree, each with its move."""
    agreed: dict[TopicPartition, PartitionFacts | None] = {}
    for partition in sorted(set(asked)):
        move = before.get(partition)
        if partition not in described or after.get(partition) != move:
            continue
        facts = described[partition]
        agreed[partition] = None if facts is None else replace(facts, move=move)
    return agreed


def with_known_min_isr(
    agreed: Mapping[TopicPartition, PartitionFacts | None], min_isr: Mapping[str, int]
) -> dict[TopicPartition, PartitionFacts | None]:
    """Add min ISR; leave out partitions whose topic the broker that was asked for configs does not know yet."""
    return {partition: facts for partition, facts in agreed.items() if facts is None or partition.topic in min_isr}
