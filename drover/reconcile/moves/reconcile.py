"""Judging observations: `reconcile` compares one reassignment with an observation of its partition.

Level-based: it compares state and observation, never the events in between, and returns no events when both agree. One
function per phase, those of a cancelled reassignment in `rollback`. Callers pass only observations that began after the
partition's last call had ended.
"""

from collections.abc import Collection

from drover.decide.copy_pace import pace, rate_in_words
from drover.decide.verdict import (
    NOTHING,
    UNCONFIRMED,
    Context,
    Verdict,
    blocked,
    event_name,
    failed,
    gone,
    others_move,
    reached,
)
from drover.events.reassignments import Blocker, Call, CallAccepted, CallLapsed, FailureReason, ReassignmentUnblocked
from drover.events.records import ReassignmentEvent
from drover.facts import PartitionFacts
from drover.reconcile.moves import corrections, rollback
from drover.reconcile.moves.next_calls import GoBySteps, SendCancel
from drover.reconcile.moves.route import next_call
from drover.reconcile.moves.start import no_destination, no_leader
from drover.state.phase import Stage
from drover.state.reassignment import Block, Reassignment, Step


def reconcile(reassignment: Reassignment, seen: PartitionFacts | None, context: Context) -> Verdict:
    """Judge a reassignment by an observation of its partition (None: it does not exist).

    Steps are not planned here but by `start`, since slots are given in order over all partitions.
    """
    if seen is None or seen.topic_id != reassignment.topic_id:
        return gone(reassignment, seen, context)
    if not reassignment.call_open:
        # While a call is open its outcome comes first: observations from before it do not count.
        first = (
            corrections.repair(reassignment, seen, context)
            or corrections.correct_late(reassignment, seen, context)
            or rollback.resume(reassignment, seen, context)
            or _by_another_route(reassignment, seen, context)
        )
        if first is not None:
            return first
    match reassignment.stage, reassignment.call:
        case Stage.RUNNING, Call.STEP:
            return _copying(reassignment, seen, context)
        case Stage.DUE, Call.CANCEL:
            return rollback.rolling_back(reassignment, seen, context)
        case Stage.RUNNING, Call.CANCEL:
            return rollback.cancelling(reassignment, seen, context)
        case Stage.RUNNING, Call.RESTORE:
            return rollback.restoring(reassignment, seen, context)
        case _:
            # The starter begins steps, and an open call waits for its answer.
            return NOTHING


def _by_another_route(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict | None:
    """Leave the route by steps if they cannot reach the destination any more; None while they can."""
    runs = reassignment.stage is Stage.RUNNING
    if reassignment.call is not Call.STEP or not (runs or reassignment.returning_to):
        return None
    call = next_call(reassignment, seen, context)
    return rollback.taken(reassignment, seen, context, call) if isinstance(call, SendCancel | GoBySteps) else None


def _copying(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    step = _running(reassignment)
    name = event_name(context.cluster, reassignment.key)
    if seen.move is not None:
        if seen.move.target != step.replicas:
            return others_move(reassignment, seen, context)
        adopted = (CallAccepted(**name, call=Call.STEP, adopted=True),) if reassignment.outcome_unknown else ()
        if _awaits_kept(step, seen) and not _shrinks(step) and not context.persisted:
            # On most versions this move has ended, and a broker has shown the ISR before the list.
            return Verdict(adopted, unconfirmed=True)
        return Verdict((*adopted, *_copying_block(reassignment, step, seen, context)))
    if seen.replicas == step.replicas:
        joining = [broker for broker in step.adding if broker not in seen.isr]
        if (joining or reassignment.outcome_unknown) and not context.persisted:
            # Brokers may show the end of a move before the ISR that completed it (seen live), and after a lost call a
            # list from before it: observe once more.
            return UNCONFIRMED
        return Verdict((reached(reassignment, step, seen, context),))
    if set(seen.replicas) != set(step.expected):
        return failed(reassignment, seen, context, FailureReason.UNMANAGED_CHANGE)
    if reassignment.outcome_unknown:
        # Never listed and nothing changed: the call whose answer was lost had no effect.
        lapsed = CallLapsed(**name, call=Call.STEP, detail="the call had no effect on the cluster")
        return Verdict((lapsed,)) if context.persisted else UNCONFIRMED
    return failed(reassignment, seen, context, FailureReason.CANCELLED_ELSEWHERE)


def _copying_block(
    reassignment: Reassignment, step: Step, seen: PartitionFacts, context: Context
) -> tuple[ReassignmentEvent, ...]:
    if seen.leader is None:
        return blocked(reassignment, no_leader(seen, context), context.cluster)
    unusable = no_destination(step.adding, context)
    if unusable is not None:
        return blocked(reassignment, unusable, context.cluster)
    failed = _failed_directory(reassignment, step, seen.isr, context)
    if failed is not None:
        return blocked(reassignment, failed, context.cluster)
    missing = _awaits_kept(step, seen)
    if missing:
        detail = f"Kafka waits for replicas {', '.join(map(str, missing))} to be in the ISR: bring them back or cancel"
        return blocked(reassignment, Block(Blocker.REPLICAS_OUT_OF_SYNC, detail, context.at_ms), context.cluster)
    too_low = _throttle_too_low(reassignment, step, seen.leader, seen.isr, context)
    if too_low is not None:
        return blocked(reassignment, too_low, context.cluster)
    if reassignment.block is not None:
        return (ReassignmentUnblocked(**event_name(context.cluster, reassignment.key)),)
    return ()


def _failed_directory(reassignment: Reassignment, step: Step, isr: Collection[int], context: Context) -> Block | None:
    """Block a copy whose replica lies in a failed log directory: Kafka lists such a move for ever.

    The move goes on once the directory is repaired and the broker restarted (seen on 4.3.1). A block stays while there
    is no sample of the directories, after a change of owner say.
    """
    block, failures = reassignment.block, context.directory_failures
    if failures is None:
        return block if block is not None and block.why is Blocker.FAILED_LOG_DIRECTORY else None
    lost = [
        f"{directory.failure} on broker {broker}"
        for broker in step.replicas
        if broker not in isr
        for directory in failures.get(broker, ())
    ]
    if not lost:
        return None
    detail = (
        f"{'; '.join(lost)}, where the replica should be: repair the directory and restart the broker, then the copy "
        "goes on; or cancel"
    )
    return Block(Blocker.FAILED_LOG_DIRECTORY, detail, context.at_ms)


def _awaits_kept(step: Step, seen: PartitionFacts) -> tuple[int, ...]:
    """List the kept replicas out of sync that a listed step waits for; empty while it still copies what it adds.

    Which steps wait for them is a trait (`Completion`); a step that Kafka goes on listing waits on any version.
    """
    missing = tuple(broker for broker in step.replicas if broker not in seen.isr)
    return () if set(missing) & set(step.adding) else missing


def _shrinks(step: Step) -> bool:
    """Whether a step shrinks the list: every version since 3.8 then waits for all replicas that stay."""
    return len(step.replicas) < len(step.expected)


def _throttle_too_low(
    reassignment: Reassignment, step: Step, leader: int, isr: Collection[int], context: Context
) -> Block | None:
    """Block a throttled copy that can never catch up (L6); the operator decides what to do.

    A block keeps its words, and stays until every copy was measured to catch up: without samples, after a change of
    owner say, it does not change.
    """
    rate, block = context.throttle_bytes_per_second, reassignment.block
    if rate is None:
        return None
    paces = [pace(context.sizes, leader, broker) for broker in step.adding if broker not in isr]
    if block is not None and block.why is Blocker.THROTTLE_TOO_LOW:
        return None if all(copy_pace is not None and copy_pace.catches_up for copy_pace in paces) else block
    behind = next((copy_pace for copy_pace in paces if copy_pace is not None and copy_pace.falls_behind), None)
    if behind is None:
        return None
    detail = (
        f"the leader grows by {rate_in_words(behind.leader_rate)} and the copy on broker {behind.broker} by "
        f"{rate_in_words(behind.copy_rate)}, so it never catches up: raise the throttle of {rate_in_words(rate)} "
        f"(`drover throttle set {reassignment.plan} RATE`; the lowest of a broker's plans counts), or cancel"
    )
    return Block(Blocker.THROTTLE_TOO_LOW, detail, context.at_ms)


def _running(reassignment: Reassignment) -> Step:
    assert reassignment.step is not None, f"{reassignment.key} is {reassignment.phase} without a step"
    return reassignment.step
