"""The route of a reassignment: one pure rule says which call leads on to its destination.

The destination is the target, the original list of a rollback, or the confirmed list of a stop. What Kafka lists is
cancelled before anything else is sent, never re-targeted (live fact); then the rule goes on from the list that is
there. KIP-236's guards stand in front of a cancel, the gates of `drover.reassignment.start` in front of each step.
"""

from drover.facts import PartitionFacts
from drover.reassignment import replica_sets, rollback_guards
from drover.reassignment.next_calls import Arrived, GoBySteps, HoldOff, NextCall, SendCancel, SendOrder, Wait
from drover.reassignment.phase import Stage
from drover.reassignment.start import start
from drover.reassignment.state import Reassignment
from drover.reassignment.verdict import Context
from events.reassignments import Blocker, Call


def next_call(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall | None:
    """Say what comes next, given what was seen; None while the running call is to go on.

    Only for what has no open call. Whether the list that was seen is the one that Drover's calls have made is judged
    before (`drover.reassignment.reconcile`); steps judge that themselves.
    """
    if reassignment.call is not Call.STEP:
        return _cancel(reassignment, seen, context) if seen.move is not None else _restore(reassignment, seen, context)
    gone = _gone_originals(reassignment, seen, context)
    if reassignment.stage is Stage.RUNNING:
        return _without_the_gone(reassignment, seen, gone)
    if gone and seen.move is None:
        return _by_steps(reassignment, seen, gone)
    return start(reassignment, seen, context)


def _cancel(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall:
    """Cancel what Kafka lists, if R236-8 allows it.

    A reassignment that was adopted in order to be cancelled has nowhere else to go: it waits instead of going on. So
    does one whose list was sent back already.
    """
    why = rollback_guards.skip_reason(reassignment, seen, context.guard)
    if why is None:
        return SendCancel()
    if reassignment.is_adopted or reassignment.call is Call.RESTORE:
        return Wait(rollback_guards.guard_block(reassignment, seen, context.guard))
    return HoldOff(why)


def _restore(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> NextCall:
    """Send the list back; without the originals that are gone for good, and whatever has to stay in their place.

    Where an original has been dropped, which needs a copy, steps lead back instead. Kafka's cancel loses the order
    (live fact): the list that is sent afterwards is a pure reorder, unless steps had grown it.
    """
    destination = reassignment.destination
    if seen.replicas == destination:
        return Arrived()
    if replica_sets.adding(seen.replicas, destination):
        return _by_steps(reassignment, seen, frozenset(context.failed))
    block = rollback_guards.restore_block(reassignment, seen, context.guard)
    if block is None:
        return SendOrder(destination)
    if not rollback_guards.is_given_up(reassignment, seen, block, context.guard):
        return Wait(block)
    closest = rollback_guards.closest(reassignment, seen, context.guard)
    if closest == seen.replicas:
        return Arrived(replica_sets.without(reassignment.original, seen.isr))
    return SendOrder(closest)


def _by_steps(reassignment: Reassignment, seen: PartitionFacts, gone: frozenset[int]) -> GoBySteps:
    """Head for the originals that are not gone, in their order, and as many replicas in sync as there were."""
    original = reassignment.original
    kept = tuple(broker for broker in original if broker not in gone or broker in seen.isr)
    others = tuple(broker for broker in seen.replicas if broker not in original and broker in seen.isr)
    return GoBySteps(kept + others[: max(0, len(original) - len(kept))])


def _without_the_gone(reassignment: Reassignment, seen: PartitionFacts, gone: frozenset[int]) -> NextCall | None:
    """Give up a copy back to a broker that is gone: Kafka would wait for it for ever."""
    step = reassignment.step
    if seen.move is None or step is None or seen.move.target != step.replicas or not gone & set(step.adding):
        return None
    return SendCancel()


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
    return frozenset(
        broker
        for broker in replica_sets.without(reassignment.returning_to, seen.isr)
        if broker in context.failed or (has_lasted and broker not in context.live)
    )
