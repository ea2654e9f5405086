"""PURE: predict what an owner would decide about commands now."""

from collections.abc import Sequence

from drover.brokers import unreachable_brokers
from drover.decide.commands import decide, observations_needed
from drover.decide.decision import Decision, Facts, OwnTopics
from drover.events.commands import AnyCommand
from drover.events.partitions import TopicPartition
from drover.facts import Observation
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState


def partitions_to_see(commands: Sequence[AnyCommand], state: ClusterState) -> frozenset[TopicPartition]:
    """Return the partitions that an owner would observe before it decides these commands."""
    return frozenset(key for command in commands for key in observations_needed(command, state).worth)


def trial(
    commands: Sequence[AnyCommand], state: ClusterState, seen: Observation, own_topics: OwnTopics, at_ms: int
) -> tuple[Decision, ...]:
    """Decide commands in their order, each on what those before it would make of the state; `state` stays as it is.

    `seen` holds the partitions of `partitions_to_see`, `at_ms` is the present in ms since epoch.
    """
    facts = Facts(
        partitions=seen.partitions,
        moves=seen.moves,
        live_brokers=frozenset(seen.live_brokers),
        min_isr=seen.min_isr,
        own_topics=own_topics,
        appended_ms=at_ms,
        decided_ms=at_ms,
        unreachable=unreachable_brokers(seen.live_brokers, seen.partitions.values()),
    )
    supposed = state.copy()
    decisions: list[Decision] = []
    for command in commands:
        decision = decide(command, supposed, facts)
        decisions.append(decision)
        for event in decision.events:
            apply(supposed, event, at_ms)
    return tuple(decisions)
