"""What follows from looking at the cluster: `plan` judges one reassignment by what was seen of its partition.

Level-based: it compares state and sight, never the events in between, and says nothing when both agree. One function
per phase. An observation is only handed in if it began after the partition's last call had ended. A mismatch is first
a doubt; only one that persists over two observations and 2 s is acted on, because brokers' metadata lags behind the
controller.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict, assert_never

from drover.reassignment import replica_sets, rollback
from drover.reassignment.facts import PartitionFacts
from drover.reassignment.state import Block, Phase, Reassignment, Step
from events.partitions import TopicPartition
from events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    FailureReason,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentUnblocked,
    RollbackSkipped,
    StepConfirmed,
)
from events.records import ReassignmentEvent


class EventName(TypedDict):
    """The keyword arguments that say which reassignment an event is about."""

    cluster: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Context:
    """What the judgement depends on besides the partition.

    `persisted` says that the last sights were doubted for long enough. `bytes_copied` is what the running step's added
    replicas were last seen to hold.
    """

    cluster: str
    live: Collection[int]
    min_isr: int
    max_replicas_per_step: int
    at_ms: int
    persisted: bool = False
    bytes_copied: int = 0

    @property
    def guard(self) -> rollback.GuardFacts:
        """The part of it that KIP-236's guards look at."""
        return rollback.GuardFacts(self.live, self.min_isr, self.at_ms)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Events to record, and whether what was seen does not fit and must be seen again before anything is done."""

    events: tuple[ReassignmentEvent, ...] = ()
    doubtful: bool = False


NOTHING = Judgement()
DOUBT = Judgement(doubtful=True)


def plan(reassignment: Reassignment, seen: PartitionFacts | None, context: Context) -> Judgement:
    """Judge a reassignment by a sight of its partition (None: the partition does not exist).

    Steps that could start are not planned here but by `start`, since slots are given in order over all partitions.
    """
    if seen is None or seen.topic_id != reassignment.topic_id:
        return gone(reassignment, seen, context)
    match reassignment.phase:
        case Phase.COPYING:
            return _copying(reassignment, seen, context)
        case Phase.ROLLING_BACK:
            return _rolling_back(reassignment, seen, context)
        case Phase.CANCELLING:
            return _cancelling(reassignment, seen, context)
        case Phase.RESTORING:
            return _restoring(reassignment, seen, context)
        case Phase.QUEUED | Phase.PREPARED | Phase.CONFIRMED:
            return NOTHING
        case Phase.INTENDED | Phase.CANCEL_INTENDED | Phase.RESTORE_INTENDED:
            # The call's outcome comes first; nothing that is seen before it counts.
            return NOTHING
        case _:
            assert_never(reassignment.phase)


@dataclass(frozen=True, slots=True)
class Start:
    """What `start` found: the step that may begin, or why none may."""

    step: Step | None = None
    block: Block | None = None
    doubtful: bool = False


def start(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Start:
    """Plan the next step of a queued or confirmed reassignment and look at every gate before it.

    Budgets and throttles are the caller's. A prepared reassignment is planned again by the same rules.
    """
    if seen.move is not None or seen.replicas != reassignment.current:
        if not context.persisted:
            return Start(doubtful=True)
        shown = list(seen.replicas)
        detail = (
            f"the list is {shown}, expected {list(reassignment.current)}: somebody else "
            f"{'is moving' if seen.move is not None else 'has changed'} it; cancel this reassignment and plan anew"
        )
        return Start(block=Block(Blocker.FOREIGN_CHANGE, detail, context.at_ms))
    step = _planned(reassignment, seen, context)
    if step is None:
        dead = [broker for broker in reassignment.target if broker not in context.live]
        return Start(block=_dead_destination(dead, context))
    block = _gate(step, seen, context)
    return Start(block=block) if block is not None else Start(step=step)


def _planned(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Step | None:
    if reassignment.phase is Phase.PREPARED and reassignment.step is not None:
        return reassignment.step
    return replica_sets.next_step(reassignment, context.live, seen.leader, context.max_replicas_per_step)


def _gate(step: Step, seen: PartitionFacts, context: Context) -> Block | None:
    """The gates in front of a step, in the order in which an operator would look at them."""
    if seen.leader is None:
        return Block(Blocker.NO_LEADER, "the partition has no leader: bring an in-sync replica back", context.at_ms)
    dead = [broker for broker in step.adding if broker not in context.live]
    if dead:
        return _dead_destination(dead, context)
    needed = min(context.min_isr, len(seen.replicas))
    if len(seen.isr) < needed:
        detail = f"{len(seen.isr)} replicas are in sync, min.insync.replicas asks for {needed}"
        return Block(Blocker.BELOW_MIN_ISR, detail, context.at_ms)
    missing = [broker for broker in step.replicas if broker not in seen.isr]
    shrinks = not step.adding and len(step.replicas) < len(step.expected)
    if shrinks and missing:
        # Kafka 4.3.1 lists such a shrink and waits; waiting here instead leaves nothing half done.
        detail = f"replicas {', '.join(map(str, missing))} must be in the ISR before others are dropped"
        return Block(Blocker.REPLICAS_OUT_OF_SYNC, detail, context.at_ms)
    return None


def _dead_destination(dead: Collection[int], context: Context) -> Block:
    names = ", ".join(map(str, dead))
    return Block(Blocker.DEAD_DESTINATION, f"broker {names} is not alive: bring it back or cancel", context.at_ms)


def blocked(reassignment: Reassignment, block: Block, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record a block, once as long as its reason and words stay the same."""
    known = reassignment.block
    if known is not None and (known.why, known.detail) == (block.why, block.detail):
        return ()
    return (ReassignmentBlocked(**_name(cluster, reassignment.key), why=block.why, detail=block.detail),)


def _copying(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    step = _running(reassignment)
    name = _name(context.cluster, reassignment.key)
    if seen.move is not None:
        if seen.move.target != step.replicas:
            return _foreign(reassignment, seen, context)
        adopted = (CallAccepted(**name, call=Call.STEP, adopted=True),) if reassignment.unsure else ()
        return Judgement((*adopted, *_copying_block(reassignment, step, seen, context)))
    if seen.replicas == step.replicas:
        joining = [broker for broker in step.adding if broker not in seen.isr]
        if joining and not context.persisted:
            # Brokers may show the end of a move before the ISR that brought it about (seen live): look once more.
            return DOUBT
        return Judgement((_reached(reassignment, step, seen, context),))
    if set(seen.replicas) != set(step.expected):
        return _failed(reassignment, seen, context, FailureReason.FOREIGN_CHANGE)
    if reassignment.unsure:
        # Never listed and nothing changed: the call whose answer was lost had no effect.
        lapsed = CallLapsed(**name, call=Call.STEP, detail="the call had no effect on the cluster")
        return Judgement((lapsed,)) if context.persisted else DOUBT
    return _failed(reassignment, seen, context, FailureReason.CANCELLED_ELSEWHERE)


def _reached(reassignment: Reassignment, step: Step, seen: PartitionFacts, context: Context) -> ReassignmentEvent:
    """Not listed and equal as a sequence is the only proof of completion (X13)."""
    name = _name(context.cluster, reassignment.key)
    if not step.final:
        return StepConfirmed(**name, step=step.number, replicas=seen.replicas, bytes_copied=context.bytes_copied)
    return ReassignmentCompleted(
        **name,
        replicas=seen.replicas,
        out_of_sync=tuple(broker for broker in seen.replicas if broker not in seen.isr),
        before_cancel=reassignment.is_cancelled,
        bytes_copied=reassignment.bytes_copied + context.bytes_copied,
    )


def _copying_block(
    reassignment: Reassignment, step: Step, seen: PartitionFacts, context: Context
) -> tuple[ReassignmentEvent, ...]:
    dead = [broker for broker in step.adding if broker not in context.live]
    if seen.leader is None:
        detail = "the partition has no leader: bring an in-sync replica back"
        return blocked(reassignment, Block(Blocker.NO_LEADER, detail, context.at_ms), context.cluster)
    if dead:
        return blocked(reassignment, _dead_destination(dead, context), context.cluster)
    missing = [broker for broker in step.replicas if broker not in seen.isr]
    if len(step.replicas) < len(step.expected) and missing and not set(missing) & set(step.adding):
        # Kafka 4.3.1 keeps a list that shrinks until the whole target is in the ISR.
        detail = f"Kafka waits for replicas {', '.join(map(str, missing))} to be in the ISR: bring them back or cancel"
        return blocked(reassignment, Block(Blocker.REPLICAS_OUT_OF_SYNC, detail, context.at_ms), context.cluster)
    if reassignment.block is not None:
        return (ReassignmentUnblocked(**_name(context.cluster, reassignment.key)),)
    return ()


def _rolling_back(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    """R236-7 over the Admin RPCs: cancel what is listed, never re-target; then see what is left."""
    step = reassignment.step
    if seen.move is None:
        # A broker whose metadata lags may still show the list from before a step that has meanwhile completed.
        before = step is not None and seen.replicas == step.expected
        if (reassignment.unsure or before) and not context.persisted:
            return DOUBT
        return _return(reassignment, seen, context)
    if step is None or seen.move.target != step.replicas:
        return _foreign(reassignment, seen, context)
    name = _name(context.cluster, reassignment.key)
    skip = rollback.skip_reason(reassignment, seen, context.guard)
    if skip is not None:
        return Judgement((RollbackSkipped(**name, why=skip, isr=seen.isr),))
    return Judgement((CallIntended(**name, call=Call.CANCEL, expected=seen.replicas),))


def _cancelling(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    step = reassignment.step
    if seen.move is None:
        # Not what Kafka's cancel leaves: cancelled elsewhere, or metadata from before the step.
        strange = step is not None and seen.replicas == step.expected != replica_sets.after_cancel(step)
        if strange and not context.persisted:
            return DOUBT
        return _return(reassignment, seen, context)
    if step is None or seen.move.target != step.replicas:
        return _foreign(reassignment, seen, context)
    if not context.persisted:
        return DOUBT
    name = _name(context.cluster, reassignment.key)
    return Judgement((CallLapsed(**name, call=Call.CANCEL, detail="the partition is still moving"),))


def _return(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    """Nothing is listed any more: the way back to the original order, or what was there before the cancel.

    Kafka's cancel loses the order (live fact), so the original list is sent afterwards; it is a pure reorder unless
    earlier steps had grown the list.
    """
    step = reassignment.step
    if step is not None and step.final and seen.replicas == step.replicas == reassignment.target:
        return Judgement((_reached(reassignment, step, seen, context),))
    if not _is_ours(reassignment, seen):
        return _failed(reassignment, seen, context, FailureReason.FOREIGN_CHANGE)
    name = _name(context.cluster, reassignment.key)
    if seen.replicas == reassignment.original:
        return Judgement((ReassignmentRolledBack(**name, replicas=seen.replicas, started=step is not None),))
    block = rollback.restore_block(reassignment, seen, context.guard)
    if block is not None:
        return Judgement(blocked(reassignment, block, context.cluster))
    return Judgement((CallIntended(**name, call=Call.RESTORE, expected=seen.replicas, replicas=reassignment.original),))


def _is_ours(reassignment: Reassignment, seen: PartitionFacts) -> bool:
    """Whether the set is the one at the start or at the end of the running step, or the confirmed one.

    Every step but a last one that completed keeps the originals: without them the way back would be a move of its own.
    """
    brokers = set(seen.replicas)
    if not brokers >= set(reassignment.original):
        return False
    known = [set(reassignment.current), set(reassignment.original)]
    if reassignment.step is not None:
        known += [set(reassignment.step.expected), set(reassignment.step.replicas)]
    return brokers in known


def _restoring(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    name = _name(context.cluster, reassignment.key)
    if seen.move is not None:
        if seen.move.target != reassignment.original:
            return _foreign(reassignment, seen, context)
        waiting = [broker for broker in reassignment.original if broker not in seen.isr]
        detail = f"Kafka waits for original replicas {', '.join(map(str, waiting))} to be in the ISR"
        return Judgement(
            blocked(reassignment, Block(Blocker.ORIGINALS_OUT_OF_SYNC, detail, context.at_ms), context.cluster)
        )
    if seen.replicas == reassignment.original:
        return Judgement((ReassignmentRolledBack(**name, replicas=seen.replicas),))
    if not _is_ours(reassignment, seen):
        return _failed(reassignment, seen, context, FailureReason.FOREIGN_CHANGE)
    if not context.persisted:
        return DOUBT
    return Judgement((CallLapsed(**name, call=Call.RESTORE, detail="the original order is not there"),))


def _foreign(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    """Somebody else's move is running: shown, never fought; what it leaves behind is judged when it has ended."""
    if not context.persisted:
        return DOUBT
    heading = list(seen.move.target) if seen.move is not None else list(seen.replicas)
    detail = f"somebody else is moving the partition to {heading}: wait for that, or cancel it with their tool"
    return Judgement(
        blocked(reassignment, Block(Blocker.FOREIGN_CHANGE, detail, context.at_ms), context.cluster), doubtful=True
    )


def _failed(reassignment: Reassignment, seen: PartitionFacts, context: Context, why: FailureReason) -> Judgement:
    if not context.persisted:
        return DOUBT
    expected = list(_running(reassignment).replicas) if reassignment.step is not None else list(reassignment.original)
    detail = f"the list is {list(seen.replicas)} where {expected} was expected: somebody else changed it"
    name = _name(context.cluster, reassignment.key)
    return Judgement((ReassignmentFailed(**name, why=why, detail=detail, replicas=seen.replicas),))


def gone(reassignment: Reassignment, seen: PartitionFacts | None, context: Context) -> Judgement:
    """End a reassignment whose partition or topic is no more: a new incarnation is never touched (S9)."""
    if seen is None and not context.persisted:
        return DOUBT
    detail = "the topic or partition does not exist any more" if seen is None else "the topic was deleted and recreated"
    name = _name(context.cluster, reassignment.key)
    return Judgement(
        (ReassignmentFailed(**name, why=FailureReason.PARTITION_GONE, detail=detail, replicas=reassignment.current),)
    )


def _running(reassignment: Reassignment) -> Step:
    assert reassignment.step is not None, f"{reassignment.key} is {reassignment.phase} without a step"
    return reassignment.step


def _name(cluster: str, key: TopicPartition) -> EventName:
    return {"cluster": cluster, "topic": key.topic, "partition": key.partition}
