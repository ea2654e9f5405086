"""PURE: the story of a cluster in sentences: what people asked for, and what came of it.

Of the events, those that an operator would tell a colleague have words here. The others are details of how it was done:
`drover history --events` shows all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drover.events import adaptation, brokers, clusters, healing, leadership, plans, reassignments, throttles, unmanaged
from drover.events.base import Event
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.state.limit_names import in_words

SHOWN_PARTITIONS = 3

# What each type of command asks for; alter and cancel count partitions besides.
ASKED_FOR: Mapping[str, str] = {
    "throttle": "set a throttle",
    "restore-throttles": "delete leftover throttles",
    "limits": "change limits",
    "pause": "pause",
    "resume": "resume",
    "hold-broker": "hold a broker",
    "release-broker": "release a broker",
    "freeze": "freeze the cluster",
    "unfreeze": "end a freeze",
    "repair": "end moves that never end",
    "blacklist": "replace the list of brokers that should not lead",
    "demote-broker": "move leaders off a broker",
    "restore-broker": "let a broker lead again",
    "balance-leaders": "balance the leaders",
    "broker-failed": "record that a broker failed",
    "broker-returned": "record that a broker is back",
    "heal": "change the healing of a broker",
    "request-refused": "do something in ZooKeeper that was refused",
}

_BEFORE_PLAN = {"pause": "", "resume": "", "throttle": " for", "limits": " for"}


def _listed(numbers: Iterable[object]) -> str:
    return ",".join(map(str, numbers))


def _brokers(numbers: tuple[int, ...]) -> str:
    return f"broker{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _completed(event: reassignments.ReassignmentCompleted) -> str:
    lagging = f", {_brokers(event.out_of_sync)} out of sync" if event.out_of_sync else ""
    return f"done, replicas {_listed(event.replicas)}{lagging}"


def _rolled_back(event: reassignments.ReassignmentRolledBack) -> str:
    missing = f", {_brokers(event.missing)} missing" if event.missing else ""
    return f"rolled back, replicas {_listed(event.replicas)}{missing}"


# What happened to a partition; `replicas` and details follow the first comma or colon.
OF_PARTITIONS: Mapping[type[Event], Callable[[Any], str]] = {
    reassignments.ReassignmentCompleted: _completed,
    reassignments.ReassignmentRolledBack: _rolled_back,
    reassignments.ReassignmentStopped: lambda event: f"stopped, replicas {_listed(event.replicas)}",
    reassignments.ReassignmentFailed: lambda event: f"failed, {event.why.value}: {event.detail}",
    reassignments.ReassignmentBlocked: lambda event: f"blocked, {event.why.value}: {event.detail}",
    reassignments.ReassignmentUnblocked: lambda _: "not blocked any more",
    reassignments.RollbackSkipped: lambda event: f"rollback or stop deferred, {event.why.value}",
    reassignments.LateChangeFound: lambda event: f"changed late by Kafka, replicas {_listed(event.replicas)}",
    unmanaged.UnmanagedMoveSeen: lambda event: f"moved by somebody else, replicas {_listed(event.replicas)}",
    unmanaged.UnmanagedMoveEnded: lambda _: "not moved by somebody else any more",
    leadership.LeaderOrderLeft: lambda event: f"reordered by somebody else, replicas {_listed(event.replicas)}",
}


def _finished(event: plans.PlanFinished) -> str:
    names = ("completed", "rolled_back", "stopped", "failed", "withdrawn")
    counts = [f"{getattr(event, name):,} {name.replace('_', ' ')}" for name in names if getattr(event, name)]
    return f"plan {event.plan} has ended: {', '.join(counts) or 'nothing had to move'}"


def _limits(event: clusters.LimitsChanged) -> str:
    changes = [f"{change.name} is {in_words(change.value)}" for change in (*event.changed, *event.reset)]
    return f"limits changed: {', '.join(changes)}"


def _blacklist(event: brokers.BlacklistSet) -> str:
    return f"{_brokers(event.brokers)} should not lead" if event.brokers else "every broker may lead"


def _allowance(event: adaptation.BrokerAllowanceChanged) -> str:
    share = f"1/{1 << event.halvings} of its slots" if event.halvings else "all of its slots"
    return f"broker {event.broker} may use {share}: {event.detail}"


def _heal_ended(event: healing.HealChunkEnded) -> str:
    others = {"cancelled": event.cancelled, "failed": event.failed}
    rest = "".join(f", {count:,} {word}" for word, count in others.items() if count)
    return f"chunk {event.chunk} of {event.heal} has ended: {event.healed:,} partitions healed{rest}"


def _of_plan(event: clusters.WindowClosed | clusters.WindowOpened) -> str:
    return f"of plan {event.plan} " if event.plan else ""


# What happened to plans, brokers and the cluster.
OF_OTHERS: Mapping[type[Event], Callable[[Any], str]] = {
    plans.PlanFinished: _finished,
    plans.PlanThrottleSet: lambda event: f"the throttle of plan {event.plan} is {event.bytes_per_second:,} B/s",
    plans.PlanThrottleCleared: lambda event: f"plan {event.plan} has no throttle of its own any more",
    plans.PlanThrottleRaised: (
        lambda event: f"the throttle of plan {event.plan} was raised to {event.bytes_per_second:,} B/s: {event.detail}"
    ),
    plans.ClusterThrottleSet: lambda event: (
        "plans without a throttle of their own have none"
        if event.bytes_per_second is None
        else f"the throttle of plans without one of their own is {event.bytes_per_second:,} B/s"
    ),
    clusters.LimitsChanged: _limits,
    clusters.ClusterMismatched: lambda event: (
        f"another Kafka cluster answers: {event.found_kafka_cluster_id} instead of {event.expected_kafka_cluster_id}"
    ),
    clusters.ClusterMatched: lambda _: "the right Kafka cluster answers again",
    clusters.ClusterOutOfReach: lambda event: f"the cluster is out of reach: {event.detail}",
    clusters.ClusterWithinReach: lambda _: "the cluster is within reach again",
    clusters.ClusterUnfrozen: lambda _: "the cluster is not frozen any more",
    clusters.UnreachableBrokersChanged: lambda event: (
        f"{_brokers(event.brokers)} cannot be reached by Drover's listener"
        if event.brokers
        else "every broker can be reached by Drover's listener"
    ),
    clusters.WindowClosed: lambda event: f"the maintenance window {_of_plan(event)}has closed",
    clusters.WindowOpened: lambda event: f"the maintenance window {_of_plan(event)}has opened",
    clusters.BrokerHeld: lambda event: f"broker {event.broker} is held ({event.role.value})",
    clusters.BrokerReleased: lambda event: f"broker {event.broker} is not held any more",
    brokers.BlacklistSet: _blacklist,
    brokers.BrokerFailureRecorded: lambda event: f"broker {event.broker} counts as failed",
    brokers.BrokerReturnRecorded: lambda event: f"broker {event.broker} does not count as failed any more",
    leadership.LeaderBalanceEnded: lambda event: (
        f"the balance of leaders has ended: {event.elected:,} elected, {event.left:,} left"
    ),
    adaptation.BrokerAllowanceChanged: _allowance,
    adaptation.StartsSuspended: lambda event: (
        f"only repairs begin: {event.count:,} partitions have fewer replicas in sync than min.insync.replicas"
    ),
    adaptation.StartsResumed: lambda _: "all moves may begin again: no partition is below min.insync.replicas",
    healing.BrokerOutageNoted: lambda event: f"broker {event.broker} is away",
    healing.BrokerOutageEnded: lambda event: (
        f"broker {event.broker} does not count as away any more: {event.why.value}"
    ),
    healing.BrokerOutageAlarmed: lambda event: f"broker {event.broker} has been away for {event.away_ms // 1000:,} s",
    healing.HealingBraked: lambda event: f"healing is held back, {event.why.value}: {event.detail}",
    healing.HealingReleased: lambda event: f"healing is not held back any more by {event.why.value}",
    healing.HealPlanned: lambda event: (
        f"{event.heal} replaces {_brokers(event.brokers)}: {event.partitions:,} partitions in {event.chunks:,} chunks"
    ),
    healing.HealPartitionsLeft: lambda event: f"{event.count:,} partitions cannot be healed now",
    healing.HealChunkEnded: _heal_ended,
    healing.HealEnded: lambda event: f"{event.heal} has ended: {event.why.value}",
    throttles.BrokerThrottleRefused: lambda event: (
        f"Kafka refuses the throttle of broker {event.broker}: {event.message or event.code}"
    ),
    throttles.TopicThrottleRefused: lambda event: (
        f"Kafka refuses the throttled replicas of topic {event.topic}: {event.message or event.code}"
    ),
    throttles.BrokerThrottleChanged: lambda event: f"somebody else has changed the throttle of broker {event.broker}",
    throttles.TopicThrottleChanged: lambda event: f"somebody else has changed the throttled replicas of {event.topic}",
    throttles.BrokerThrottleLeft: lambda event: f"the throttle of broker {event.broker} was not put back",
    throttles.TopicThrottleLeft: lambda event: (
        f"the throttled replicas of {event.topic} were not put back: {event.detail}"
    ),
}


def happened(event: Event) -> str | None:
    """Say what happened to the partition of an event; None for a detail, and for an event of something else."""
    words = OF_PARTITIONS.get(type(event))
    return None if words is None else words(event)


def event_sentence(event: Event) -> str | None:
    """Say what an event that is not about a partition means; None for a detail."""
    words = OF_OTHERS.get(type(event))
    return None if words is None else words(event)


def partition_sentence(words: str, partitions: tuple[TopicPartition, ...], plan: str | None) -> str:
    """Say what happened to one partition or, with what is the same for all, to several."""
    owner = f" of plan {plan}" if plan else ""
    if len(partitions) == 1:
        return f"{partitions[0]}{owner} {words}"
    shown = ", ".join(map(str, partitions[:SHOWN_PARTITIONS]))
    more = len(partitions) - SHOWN_PARTITIONS
    named = f"{shown} and {more:,} more" if more > 0 else shown
    return f"{len(partitions):,} partitions{owner} {same_for_all(words)}: {named}"


def same_for_all(words: str) -> str:
    """Return the part of a partition's words that does not name its own replicas or details."""
    return words.partition(", replicas")[0].partition(":")[0]


def command_sentence(outcome: Outcome, detail: str) -> str:
    """Say who asked for what and why, and what was refused; `detail` are the outcome's refusals and remarks."""
    asked = ASKED_FOR.get(outcome.type, outcome.type)
    count = (
        len(outcome.accepted) + len(outcome.unchanged) + sum(refusal.key is not None for refusal in outcome.refusals)
    )
    partitions = f"{count:,} partition{'' if count == 1 else 's'}"
    if outcome.type == "alter":
        asked = f"move {partitions}"
    elif outcome.type == "cancel":
        asked = f"cancel the moves of {partitions}"
    plan = f"{_BEFORE_PLAN.get(outcome.type, ' in')} plan {outcome.plan}" if outcome.plan else ""
    request = f"{outcome.by or 'somebody'} asked to {asked}{plan}: {outcome.reason}"
    if outcome.verdict == "accepted" and not outcome.refusals:
        return request
    return f"{request} ({outcome.verdict}; {detail})" if detail else f"{request} ({outcome.verdict})"
