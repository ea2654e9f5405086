"""Eligibility: which partitions a proposal may change, and why it leaves others alone."""

from collections import Counter
from collections.abc import Iterable

from drover.planner.layout import Layout
from drover.planner.placing import Solution, unmet
from drover.planner.proposal import Unmet, UnmetCode
from drover.unreachable import LISTENER_REMEDY


def why_not_movable(layout: Layout, partition: int) -> tuple[UnmetCode, str] | None:
    """Say why a partition has to stay as it is; None if it may change."""
    refusal = why_left_alone(layout, partition)
    unregistered = layout.unregistered.intersection(layout.replicas[partition])
    if refusal is None and unregistered:
        names = ", ".join(map(str, sorted(unregistered)))
        text = f"Kafka refuses lists that name broker {names}, which is not registered any more: drain it as well"
        return (UnmetCode.DEAD_BROKER, text)
    return refusal


def why_left_alone(layout: Layout, partition: int) -> tuple[UnmetCode, str] | None:
    """Say why no replica of a partition may change, whichever it is; None if they may."""
    facts, limits = layout.model.partitions[partition], layout.limits
    if facts.topic in limits.exclude_topics:
        return (UnmetCode.EXCLUDED, f"topic {facts.topic} is excluded")
    if facts.internal and not limits.include_internal:
        return (UnmetCode.EXCLUDED, f"topic {facts.topic} is internal, and internal topics are not included")
    if facts.moving:
        return (UnmetCode.MOVING, "it is being reassigned")
    if facts.leader is None and facts.leader_unreachable:
        return (UnmetCode.OFFLINE, f"its leader is unreachable: {LISTENER_REMEDY}")
    if facts.leader is None:
        return (UnmetCode.OFFLINE, "it has no leader to copy from")
    return None


def movable(layout: Layout) -> list[int]:
    """Return the partitions that may change."""
    return [partition for partition in range(len(layout.original)) if why_not_movable(layout, partition) is None]


def only_movable(layout: Layout, solution: Solution, wanted: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the wanted replicas (partition, broker) that may move, and name the others as unmet.

    What was left out on purpose is counted by broker; each partition that the cluster's condition holds is named.
    """
    found = []
    left_out: Counter[tuple[int, str]] = Counter()
    for partition, broker in wanted:
        refusal = why_not_movable(layout, partition)
        if refusal is None:
            found.append((partition, broker))
        elif refusal[0] is UnmetCode.EXCLUDED:
            left_out[broker, refusal[1]] += 1
        else:
            text = f"{layout.name(partition)} stays on broker {broker}: {refusal[1]}"
            solution.unmet.append(unmet(layout, refusal[0], text, partition, broker))
    for (broker, why), count in sorted(left_out.items()):
        text = f"broker {broker} keeps {count:,} partition{'s' * (count > 1)}: {why}"
        solution.unmet.append(Unmet(UnmetCode.EXCLUDED, text, broker=broker))
    return found
