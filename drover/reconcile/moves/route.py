"""The route of a reassignment: one pure rule says which call leads on to its destination.

The destination is the target, the original list of a rollback, or the confirmed list of a stop. A move that Kafka lists
is cancelled before anything else is sent, never re-targeted (live fact); then the rule goes on from the present list.
KIP-236's guards are checked before a cancel, the gates of `drover.reconcile.moves.start` before each step.
"""

from msgspec.structs import replace

from drover.decide import replica_sets, rollback_guards
from drover.decide.leader_order import deprioritise
from drover.decide.order_endings import is_reorder
from drover.decide.verdict import Context
from drover.events.reassignments import Blocker, Call, CancelMode
from drover.events.traits import Completion
from drover.facts import PartitionFacts
from drover.reconcile.moves.next_calls import Arrived, GoBySteps, HoldOff, NextCall, SendCancel, SendOrder, Wait
from drover.reconcile.moves.start import start
from drover.state.phase import Phase, Stage
from drover.state.reassignment import Reassignment, Step

# How long the broker that a copy goes to is dead before the copy goes to another one.
RESTART_MS = 60_000


def next_call(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall | None:
    """Choose what comes next after an observation; None while the running call is to go on.

    Only for a reassignment without an open call. Whether Drover's calls have made the observed list is judged before
    (`drover.reconcile.moves.reconcile`); steps judge that themselves.
    """
    if reassignment.call is not Call.STEP:
        return _cancel(reassignment, seen, context) if seen.move is not None else _restore(reassignment, seen, context)
    gone = _gone_originals(reassignment, seen, context)
    if reassignment.stage is Stage.RUNNING:
        return SendCancel() if _never_joins(reassignment, seen, context, gone) else None
    if gone and seen.move is None and reassignment.returning_to is not None:
        # Originals that were given up before are given up for good.
        gone |= {*reassignment.original} - {*reassignment.returning_to}
        detour = _by_steps(reassignment, seen, gone, context)
        if detour.destination != reassignment.returning_to:
            return detour
    return start(reassignment, seen, context)


def _cancel(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall:
    """Cancel the move that Kafka lists, if R236-8 allows it.

    A reassignment that was adopted in order to be cancelled has no other destination: it waits instead of going on. So
    does one whose list was sent back already.
    """
    why = rollback_guards.skip_reason(reassignment, seen, context.guard)
    if why is None:
        return SendCancel()
    if reassignment.is_adopted or reassignment.call is Call.RESTORE or not reassignment.is_cancelled:
        return Wait(rollback_guards.guard_block(reassignment, seen, context.guard))
    return HoldOff(why)


def _restore(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall:
    """Send the list back, without originals that are gone for good, with the replicas that must replace them.

    Where an original has been dropped, which needs a copy, steps lead back instead. Kafka's cancel loses the order
    (live fact): the list that is sent afterwards is a pure reorder, unless steps had grown it.
    """
    destination = _destination_today(reassignment, context)
    missing = tuple(broker for broker in reassignment.destination if broker in context.unregistered)
    if seen.replicas == destination or (missing and set(seen.replicas) == set(destination)):
        # Kafka refuses every list that names a missing broker: not even the order can be restored.
        return Arrived(missing)
    if replica_sets.adding(seen.replicas, destination):
        return _by_steps(reassignment, seen, context.unregistered.union(context.failed), context)
    block = rollback_guards.restore_block(reassignment, seen, context.guard)
    if block is None:
        return SendOrder(destination)
    if not rollback_guards.is_given_up(reassignment, seen, block, context.guard):
        return Wait(block)
    closest = deprioritise(rollback_guards.closest(reassignment, seen, context.guard), context.listed)
    if closest == seen.replicas or not context.unregistered.isdisjoint(closest):
        return Arrived(replica_sets.without(reassignment.original, seen.isr))
    return SendOrder(closest)


def _destination_today(reassignment: Reassignment, context: Context) -> tuple[int, ...]:
    """X9: the original is the canonical order; it is sent with the brokers that should not lead put last.

    A reorder for the sake of leadership goes back to the list from before it; a stop keeps the present list.
    """
    destination = reassignment.destination
    if reassignment.cancel_mode is CancelMode.STOP or is_reorder(reassignment):
        return destination
    return deprioritise(destination, context.listed)


def _by_steps(reassignment: Reassignment, seen: PartitionFacts, gone: frozenset[int], context: Context) -> GoBySteps:
    """Head for the originals that are not gone, in their order, and for as many replicas as there were.

    Replicas in sync stay in place of the others. Only where these are too few, replicas on gone brokers stay, unless a
    broker has no registration.
    """
    original = reassignment.original
    kept = [broker for broker in original if broker not in gone or broker in seen.isr]
    others = replica_sets.without(seen.replicas, original)
    in_sync = [broker for broker in others if broker in seen.isr]
    lacking = [broker for broker in original if broker in seen.replicas and broker not in kept]
    behind = [broker for broker in others if broker not in seen.isr]
    others_to_keep = replica_sets.without((*in_sync, *lacking, *behind), context.unregistered)
    stay = {*kept, *others_to_keep[: max(0, len(original) - len(kept))]}
    return GoBySteps(tuple(broker for broker in (*original, *others) if broker in stay) or original)


def _never_joins(reassignment: Reassignment, seen: PartitionFacts, context: Context, gone: frozenset[int]) -> bool:
    """Whether Kafka waits for a copy on a dead broker while the destination can be approached otherwise.

    It can if the broker is an original that is given up, or if another replica that the destination needs can be
    copied. A broker gets time to restart, because a cancel throws away its part of the copy.
    """
    step = reassignment.step
    if seen.move is None or step is None or seen.move.target != step.replicas:
        return False
    given_up = replace(reassignment, phase=Phase.ROLLING_BACK)
    if not rollback_guards.has_original_in_sync(given_up, seen):
        return False
    if gone & set(step.adding):
        return True
    if not context.unregistered.isdisjoint(reassignment.step_target):
        # Kafka would refuse the next list.
        return False
    if _waits_for_unregistered(step, seen, context):
        return rollback_guards.skip_reason(given_up, seen, context.guard) is None
    unlisted = [broker for broker in step.adding if broker not in context.live]
    dead = context.brokers.dead(unlisted) if unlisted else ()
    others = [
        broker for broker in replica_sets.adding(step.expected, reassignment.step_target) if broker in context.live
    ]
    block = reassignment.block
    has_lasted = (
        block is not None and block.why is Blocker.DEAD_DESTINATION and context.at_ms - block.since_ms >= RESTART_MS
    )
    if not dead or not others or not (has_lasted or set(dead) <= set(context.failed)):
        return False
    return rollback_guards.skip_reason(given_up, seen, context.guard) is None


def _waits_for_unregistered(step: Step, seen: PartitionFacts, context: Context) -> bool:
    """Whether Kafka waits for a kept replica on an unregistered broker, which the next step leaves out."""
    waits_for_all = context.completion is Completion.TARGET or len(step.replicas) < len(step.expected)
    return waits_for_all and not context.unregistered.intersection(step.replicas).issubset(seen.isr)


def _gone_originals(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> frozenset[int]:
    """List the originals that steps lead back to and that are gone for good: reported, or dead for long enough."""
    if reassignment.returning_to is None:
        return frozenset()
    block = reassignment.block
    has_lasted = (
        block is not None
        and block.why is Blocker.DEAD_DESTINATION
        and context.at_ms - block.since_ms >= rollback_guards.GONE_MS
    )
    missing = replica_sets.without(reassignment.returning_to, seen.isr)
    dead = context.brokers.dead(missing)
    return frozenset(
        broker
        for broker in missing
        if broker in context.failed or broker in context.unregistered or (has_lasted and broker in dead)
    )
