"""Metrics of a record: commands' outcomes, and the reassignments that end in it.

A record is read before it is folded, because the fold forgets ended reassignments; it is counted once it is valid.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from drover.events.commands import AnyCommand
from drover.events.reassignments import ReassignmentCompleted, StepConfirmed
from drover.fold.plans import Ending
from drover.service.metrics import Metrics
from drover.shard.messages import ProposedBatch
from drover.state.cluster import ClusterState

TYPES = frozenset(str(command.__struct_config__.tag) for command in get_args(AnyCommand))


@dataclass(frozen=True, slots=True)
class Ended:
    """A reassignment that ends: how, and how long after it was accepted."""

    cluster: str
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a record: endings, and copied bytes by cluster."""

    endings: tuple[Ended, ...]
    copied: tuple[tuple[str, int], ...]


def counted(clusters: Mapping[str, ClusterState], proposed: ProposedBatch) -> Counted:
    """Return the endings and copied bytes of a record, from the states before it."""
    endings, copied = [], []
    at_ms = proposed.record.at_ms
    for event in proposed.record.events:
        if not isinstance(event, Ending | StepConfirmed):
            continue
        state = clusters.get(event.cluster)
        before = None if state is None else state.reassignments.get(event.key)
        if isinstance(event, Ending) and before is not None:
            outcome = str(event.__struct_config__.tag).removeprefix("reassignment-")
            endings.append(Ended(event.cluster, outcome, (at_ms - before.created_ms) / 1000))
        if isinstance(event, StepConfirmed):
            copied.append((event.cluster, event.bytes_copied))
        elif isinstance(event, ReassignmentCompleted):
            # The event has the total, of which the confirmed steps were already counted.
            copied.append((event.cluster, event.bytes_copied - (0 if before is None else before.bytes_copied)))
    return Counted(tuple(endings), tuple(copied))


def report(metrics: Metrics, counts: Counted, proposed: ProposedBatch, topics: Sequence[str]) -> None:
    """Count a valid record; `topics` are the command topics in their order."""
    for ended in counts.endings:
        metrics.reassignment_ended(ended.cluster, ended.outcome, ended.seconds)
    for cluster, amount in counts.copied:
        metrics.copied(cluster, amount)
    arrived_ms = {(topics[arrival.topic_index], arrival.offset): arrival.timestamp_ms for arrival in proposed.taken}
    # Look up each series once, because a lookup takes longer than counting.
    decided: Counter[tuple[str, str]] = Counter()
    waits_s: dict[str, list[float]] = {}
    for outcome in proposed.record.outcomes:
        # The type of an unreadable command is untrusted, and must not become a label.
        type_ = outcome.type if outcome.type in TYPES else "unknown"
        decided[type_, outcome.verdict] += 1
        since_ms = arrived_ms.get((outcome.topic, outcome.offset))
        if since_ms is not None:
            waits_s.setdefault(type_, []).append((proposed.record.at_ms - since_ms) / 1000)
    for (type_, verdict), count in decided.items():
        metrics.commands_decided(type_, verdict, count)
    for type_, waits in waits_s.items():
        metrics.outcomes_recorded(type_, waits)
