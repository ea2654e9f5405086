"""Verdicts about observations: their context, their result, and the common ones.

A mismatch is unconfirmed until it has persisted over two observations and 2 s, because brokers' metadata lags behind
the controller. A reassignment ends because of one only after 30 s, when no broker lags so far.
"""

from collections.abc import Collection, Mapping
from typing import TypedDict

from msgspec import Struct, field

from drover.brokers import Brokers
from drover.decide.copy_pace import SizeSample
from drover.decide.rollback_guards import GuardFacts
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import (
    Blocker,
    FailureReason,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    StepConfirmed,
)
from drover.events.records import ReassignmentEvent
from drover.events.traits import Completion
from drover.facts import PartitionFacts
from drover.inventory import LogDirectory
from drover.state.reassignment import Block, ExpiredCalls, Reassignment, Step

# The author of actions that Drover takes by itself.
DROVER = "drover"


class EventName(TypedDict):
    """The keyword arguments that identify an event's reassignment."""

    cluster: str
    topic: str
    partition: int


class Context(Struct, frozen=True, gc=False):
    """The inputs of a verdict besides the partition.

    `persisted` says that a mismatch has lasted for long enough to be corrected, and `is_certain` that it has lasted
    longer than any broker lags. `bytes_copied` are the bytes that the running step's
    added replicas were last seen to hold, `bytes_unknown` says that they were never seen.
    `expired_calls` are the calls of an earlier reassignment of this partition that may still take effect.
    `throttle_bytes_per_second` is the plan's, None without one; `sizes` were measured during the running step.
    `directory_failures` are by broker the failed log directories where a replica of that step is missing, None before
    the first description that counts.
    `failed` are the brokers that were reported as failed and are not alive. `stepping` is the plan's, or else the
    cluster's. `listed` are the brokers that should not lead this topic. `completion` is the cluster's trait. `racks`
    are those of the brokers that have been seen. `unreachable` and `registered` are as in `Brokers`.
    `unregistered` are the brokers of its lists without a registration: Kafka refuses every list that names one.
    """

    cluster: str
    live: Collection[int]
    min_isr: int
    max_replicas_per_step: int
    at_ms: int
    persisted: bool = False
    is_certain: bool = False
    bytes_copied: int = 0
    bytes_unknown: bool = False
    expired_calls: ExpiredCalls | None = None
    throttle_bytes_per_second: int | None = None
    sizes: tuple[SizeSample, ...] = ()
    directory_failures: Mapping[int, tuple[LogDirectory, ...]] | None = None
    failed: Collection[int] = ()
    stepping: Stepping = Stepping.GROW
    listed: Collection[int] = ()
    completion: Completion = Completion.ADDED_UNLESS_SHRINKING
    racks: Mapping[int, str | None] = field(default_factory=dict)
    unreachable: Collection[int] = ()
    registered: frozenset[int] | None = None
    unregistered: frozenset[int] = frozenset()

    @property
    def brokers(self) -> Brokers:
        """The brokers by what is known of them: alive, unreachable, registered."""
        return self.guard.brokers

    @property
    def guard(self) -> GuardFacts:
        """The part of the context that KIP-236's guards need."""
        return GuardFacts(
            self.live, self.min_isr, self.at_ms, self.failed, self.unreachable, self.registered, self.unregistered
        )


class Verdict(Struct, frozen=True, gc=False):
    """Events to record, and whether a mismatch must be seen again before it is acted on."""

    events: tuple[ReassignmentEvent, ...] = ()
    unconfirmed: bool = False


NOTHING = Verdict()
UNCONFIRMED = Verdict(unconfirmed=True)


def event_name(cluster: str, key: TopicPartition) -> EventName:
    """Return the fields that identify a partition in its events."""
    return {"cluster": cluster, "topic": key.topic, "partition": key.partition}


def blocked(reassignment: Reassignment, block: Block, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record a block, but only once while its reason and words stay the same."""
    present = reassignment.block
    if present is not None and (present.why, present.detail) == (block.why, block.detail):
        return ()
    return (ReassignmentBlocked(**event_name(cluster, reassignment.key), why=block.why, detail=block.detail),)


def reached(reassignment: Reassignment, step: Step, seen: PartitionFacts, context: Context) -> ReassignmentEvent:
    """Record that a step is done: not listed and equal as a sequence is the only proof of completion (X13)."""
    name = event_name(context.cluster, reassignment.key)
    if not step.final:
        return StepConfirmed(
            **name,
            step=step.number,
            replicas=seen.replicas,
            bytes_copied=context.bytes_copied,
            bytes_unknown=context.bytes_unknown,
        )
    if reassignment.returning_to is not None:
        given_up = reassignment.returning_to != reassignment.original
        there = seen.isr if given_up else seen.replicas
        missing = tuple(broker for broker in reassignment.original if broker not in there)
        return ReassignmentRolledBack(**name, replicas=seen.replicas, missing=missing)
    return ReassignmentCompleted(
        **name,
        replicas=seen.replicas,
        out_of_sync=tuple(broker for broker in seen.replicas if broker not in seen.isr),
        before_cancel=reassignment.is_cancelled,
        bytes_copied=reassignment.bytes_copied + context.bytes_copied,
        deferred_by=reassignment.deferred_by,
        bytes_unknown=reassignment.bytes_unknown or context.bytes_unknown,
    )


def others_move(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """Record that somebody else is moving the partition; it is left alone, and judged once that move has ended."""
    if not context.persisted:
        return UNCONFIRMED
    moving_to = list(seen.move.target) if seen.move is not None else list(seen.replicas)
    detail = f"somebody else is moving the partition to {moving_to}: wait for that, or cancel it with their tool"
    return Verdict(
        blocked(reassignment, Block(Blocker.UNMANAGED_CHANGE, detail, context.at_ms), context.cluster), unconfirmed=True
    )


def failed(reassignment: Reassignment, seen: PartitionFacts, context: Context, why: FailureReason) -> Verdict:
    """End a reassignment whose partition somebody else has changed, once that is certain."""
    if not context.is_certain:
        return UNCONFIRMED
    step = reassignment.step
    expected = list(step.replicas) if step is not None else list(reassignment.original)
    detail = f"the list is {list(seen.replicas)} where {expected} was expected: somebody else changed it"
    name = event_name(context.cluster, reassignment.key)
    return Verdict((ReassignmentFailed(**name, why=why, detail=detail, replicas=seen.replicas),))


def gone(reassignment: Reassignment, seen: PartitionFacts | None, context: Context) -> Verdict:
    """End a reassignment whose partition or topic is gone: a new incarnation is never touched (S9)."""
    if not is_gone(seen, persisted=context.persisted, is_certain=context.is_certain):
        return UNCONFIRMED
    if seen is not None:
        return Verdict((gone_by_a_new_topic(reassignment, context.cluster),))
    return Verdict((_gone(reassignment, context.cluster, "the topic or partition does not exist any more"),))


def is_gone(seen: PartitionFacts | None, *, persisted: bool, is_certain: bool) -> bool:
    """Whether an incarnation that a broker does not show, but none or another one, has been deleted.

    A broker with old metadata may not know the topic yet, for as long as it takes to make a thousand replicas of it, or
    for a moment still show an incarnation from before. `persisted` and `is_certain` are as in `Context`.
    """
    return is_certain if seen is None else persisted


def gone_by_a_new_topic(reassignment: Reassignment, cluster: str) -> ReassignmentFailed:
    """End a reassignment whose topic was seen with another id."""
    return _gone(reassignment, cluster, "the topic was deleted and recreated")


def _gone(reassignment: Reassignment, cluster: str, detail: str) -> ReassignmentFailed:
    name = event_name(cluster, reassignment.key)
    return ReassignmentFailed(**name, why=FailureReason.PARTITION_GONE, detail=detail, replicas=reassignment.current)
