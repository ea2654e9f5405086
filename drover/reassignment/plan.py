"""What follows from looking at the cluster: `plan` judges one reassignment by what was seen of its partition.

Level-based: it compares state and sight, never the events in between, and says nothing when both agree. One function
per phase, those of the way back in `way_back`. An observation is only handed in if it began after the partition's last
call had ended.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from drover.reassignment import corrections, replica_sets, way_back
from drover.reassignment.copy_pace import pace, rate_in_words
from drover.reassignment.facts import PartitionFacts
from drover.reassignment.judgement import (
    DOUBT,
    NOTHING,
    Context,
    Judgement,
    blocked,
    event_name,
    failed,
    foreign,
    gone,
    reached,
)
from drover.reassignment.state import Block, Phase, Reassignment, Step
from events.reassignments import Blocker, Call, CallAccepted, CallLapsed, FailureReason, ReassignmentUnblocked
from events.records import ReassignmentEvent


def plan(reassignment: Reassignment, seen: PartitionFacts | None, context: Context) -> Judgement:
    """Judge a reassignment by a sight of its partition (None: the partition does not exist).

    Steps that could start are not planned here but by `start`, since slots are given in order over all partitions.
    """
    if seen is None or seen.topic_id != reassignment.topic_id:
        return gone(reassignment, seen, context)
    if not reassignment.call_open:
        # While a call is open its outcome comes first; nothing that is seen before it counts.
        corrected = corrections.mend(reassignment, seen, context) or corrections.correct_late(
            reassignment, seen, context
        )
        if corrected is not None:
            return corrected
    match reassignment.phase:
        case Phase.COPYING:
            return _copying(reassignment, seen, context)
        case Phase.ROLLING_BACK:
            return way_back.rolling_back(reassignment, seen, context)
        case Phase.CANCELLING:
            return way_back.cancelling(reassignment, seen, context)
        case Phase.RESTORING:
            return way_back.restoring(reassignment, seen, context)
        case Phase.QUEUED | Phase.PREPARED | Phase.CONFIRMED:
            return NOTHING
        case Phase.INTENDED | Phase.CANCEL_INTENDED | Phase.RESTORE_INTENDED:
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
        if seen.move is not None and seen.move.never_ends:
            what = corrections.in_both_lists(seen.move.never_ends)
            detail = f"{what}: `drover mend` cancels it, and takes this reassignment back"
            return Start(block=Block(Blocker.BROKER_IN_BOTH_LISTS, detail, context.at_ms))
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


def _copying(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Judgement:
    step = _running(reassignment)
    name = event_name(context.cluster, reassignment.key)
    if seen.move is not None:
        if seen.move.target != step.replicas:
            return foreign(reassignment, seen, context)
        adopted = (CallAccepted(**name, call=Call.STEP, adopted=True),) if reassignment.unsure else ()
        return Judgement((*adopted, *_copying_block(reassignment, step, seen, context)))
    if seen.replicas == step.replicas:
        joining = [broker for broker in step.adding if broker not in seen.isr]
        if (joining or reassignment.unsure) and not context.persisted:
            # Brokers may show the end of a move before the ISR that brought it about (seen live), and after a lost call
            # a list from before it: look once more.
            return DOUBT
        return Judgement((reached(reassignment, step, seen, context),))
    if set(seen.replicas) != set(step.expected):
        return failed(reassignment, seen, context, FailureReason.FOREIGN_CHANGE)
    if reassignment.unsure:
        # Never listed and nothing changed: the call whose answer was lost had no effect.
        lapsed = CallLapsed(**name, call=Call.STEP, detail="the call had no effect on the cluster")
        return Judgement((lapsed,)) if context.persisted else DOUBT
    return failed(reassignment, seen, context, FailureReason.CANCELLED_ELSEWHERE)


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
    too_low = _throttle_too_low(reassignment, step, seen.leader, seen.isr, context)
    if too_low is not None:
        return blocked(reassignment, too_low, context.cluster)
    if reassignment.block is not None:
        return (ReassignmentUnblocked(**event_name(context.cluster, reassignment.key)),)
    return ()


def _throttle_too_low(
    reassignment: Reassignment, step: Step, leader: int, isr: Collection[int], context: Context
) -> Block | None:
    """Tell that a throttled copy can never catch up (L6). What to do about it is the operator's decision.

    A block that stands keeps its words, and stays until every copy has been seen to gain: nothing measured, after a
    change of owner say, is no news.
    """
    rate, known = context.throttle_bytes_per_second, reassignment.block
    if rate is None:
        return None
    paces = [pace(context.sizes, leader, broker) for broker in step.adding if broker not in isr]
    if known is not None and known.why is Blocker.THROTTLE_TOO_LOW:
        return None if all(found is not None and found.catches_up for found in paces) else known
    behind = next((found for found in paces if found is not None and found.falls_behind), None)
    if behind is None:
        return None
    detail = (
        f"the leader grows by {rate_in_words(behind.leader_rate)} and the copy on broker {behind.broker} by "
        f"{rate_in_words(behind.copy_rate)}, so it never catches up: raise the throttle of {rate_in_words(rate)} "
        f"(`drover alter` with the same targets, --plan {reassignment.plan} and a higher --throttle; the lowest of a "
        "broker's plans counts), or cancel"
    )
    return Block(Blocker.THROTTLE_TOO_LOW, detail, context.at_ms)


def _running(reassignment: Reassignment) -> Step:
    assert reassignment.step is not None, f"{reassignment.key} is {reassignment.phase} without a step"
    return reassignment.step
