"""The next step of a reassignment, and the gates that it must pass before it may begin."""

from collections.abc import Collection

from msgspec.structs import replace

from drover.brokers import hidden_leaders
from drover.decide import replica_sets
from drover.decide.leader_order import deprioritise
from drover.decide.order_endings import is_reorder
from drover.decide.verdict import Context
from drover.events.reassignments import Blocker
from drover.events.traits import Completion
from drover.facts import PartitionFacts
from drover.reconcile.moves import corrections
from drover.reconcile.moves.next_calls import ObserveAgain, SendStep, Wait
from drover.reconcile.moves.stepping import Situation, next_step
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment, Step
from drover.unreachable import unreachable_in_words


def start(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> SendStep | Wait | ObserveAgain:
    """Plan the next step towards the step target, and check every gate before it.

    Budgets and throttles are the caller's. A prepared reassignment is planned again by the same rules.
    """
    if seen.move is not None or seen.replicas != reassignment.current:
        if not context.persisted:
            return ObserveAgain()
        if seen.move is not None and seen.is_endless:
            cause = corrections.in_both_lists(seen.move.never_ends)
            detail = f"{cause}: `drover repair` cancels it, and takes this reassignment back"
            return Wait(Block(Blocker.BROKER_IN_BOTH_LISTS, detail, context.at_ms))
        shown = list(seen.replicas)
        detail = (
            f"the list is {shown}, expected {list(reassignment.current)}: somebody else "
            f"{'is moving' if seen.move is not None else 'has changed'} it; cancel this reassignment and plan anew"
        )
        return Wait(Block(Blocker.UNMANAGED_CHANGE, detail, context.at_ms))
    if seen.leader is None:
        return Wait(no_leader(seen, context))
    unregistered = [broker for broker in reassignment.step_target if broker in context.unregistered]
    if unregistered:
        return Wait(unregistered_target(unregistered, context.at_ms))
    step = _planned(reassignment, seen, context)
    if step is None:
        return Wait(_no_step(reassignment, context))
    step = _in_todays_order(reassignment, step, seen, context)
    block = _gate(step, seen, context)
    return Wait(block) if block is not None else SendStep(step)


def _planned(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Step | None:
    """Plan the step. Below min ISR replicas are only added: a prepared step is cut down to that (S3).

    A prepared step is planned anew when the reason for it has gone since.
    """
    is_short = _lacks_in_sync(seen, context)
    prepared = reassignment.step
    if reassignment.phase is not Phase.PREPARED or prepared is None or _is_outdated(prepared, seen, context):
        now = Situation(
            current=reassignment.current,
            target=effective_step_target(reassignment, context.listed),
            original=reassignment.original,
            live=context.live,
            isr=seen.isr,
            leader=seen.leader,
            min_isr=context.min_isr,
            max_replicas_per_step=context.max_replicas_per_step,
            is_short=is_short,
            drops_last=reassignment.returning_to is not None,
            listed=() if is_reorder(reassignment) else context.listed,
            completion=context.completion,
            racks=context.racks,
            unreachable=context.unreachable,
            unregistered=context.unregistered,
        )
        step = next_step(reassignment, context.stepping, now)
        if reassignment.phase is Phase.PREPARED and prepared and step and set(step.adding) <= set(prepared.adding):
            # Its room is held at the leader that it was prepared with; the present leader may have none.
            return replace(step, leader=prepared.leader)
        return step
    if is_short and prepared.adding and not _is_repair(prepared, seen, context):
        # The throttle that is being set is for the same copies.
        kept = replica_sets.without(prepared.expected, context.unregistered)
        return replace(prepared, final=False, replicas=kept + prepared.adding)
    return prepared


def _is_outdated(prepared: Step, seen: PartitionFacts, context: Context) -> bool:
    """Whether a prepared step would copy to a broker that has died, name one without a registration, or copy too much.

    Another broker may take the place of a dead one. More replicas than `max_replicas_per_step` are added at once only
    to replace as many that are out of sync and must go with the step; one that is in sync again need not go.
    """
    if any(broker not in context.live for broker in prepared.adding):
        return True
    if not context.unregistered.isdisjoint(prepared.replicas):
        return True
    dropped = replica_sets.removing(prepared.expected, prepared.replicas)
    is_beyond = len(prepared.adding) > context.max_replicas_per_step
    return is_beyond and context.completion is Completion.TARGET and any(broker in seen.isr for broker in dropped)


def effective_step_target(reassignment: Reassignment, listed: Collection[int]) -> tuple[int, ...]:
    """X8, X9: the list to which the steps lead, with the brokers that should not lead put last.

    A reorder for the sake of leadership is sent as it is: its target names the leader to have.
    """
    return reassignment.step_target if is_reorder(reassignment) else deprioritise(reassignment.step_target, listed)


def _in_todays_order(reassignment: Reassignment, step: Step, seen: PartitionFacts, context: Context) -> Step:
    """X8: each step sends its list as the list of brokers that should not lead orders it today.

    Leadership may move with it, and then not to a listed broker where another one can lead. A step that repairs a
    partition below min ISR only appends, and goes on doing so, since nothing must hold it up. If it was prepared as the
    last step and today's order would do more than append, another step follows for that.
    """
    if is_reorder(reassignment):
        return step
    if not step.final:
        is_repair = _lacks_in_sync(seen, context) and _is_repair(step, seen, context)
        return step if is_repair else replace(step, replicas=deprioritise(step.replicas, context.listed))
    today = replace(step, replicas=effective_step_target(reassignment, context.listed))
    if not (_lacks_in_sync(seen, context) and _is_repair(step, seen, context)) or _is_repair(today, seen, context):
        return today
    return step if step.replicas == reassignment.step_target else replace(step, final=False)


def _lacks_in_sync(seen: PartitionFacts, context: Context) -> bool:
    return len(seen.isr) < min(context.min_isr, len(seen.replicas))


def _is_repair(step: Step, seen: PartitionFacts, context: Context) -> bool:
    """Whether a step may be sent below min.insync.replicas: it only appends.

    It may drop unregistered brokers as well, which hold no replica. Where Kafka waits for the whole target of a step,
    it may also drop replicas out of sync, since otherwise it would never end.
    """
    kept = replica_sets.without(step.expected, context.unregistered)
    if context.completion is Completion.TARGET:
        kept = tuple(broker for broker in kept if broker in step.replicas or broker in seen.isr)
    return replica_sets.only_appends(kept, step.replicas)


def _gate(step: Step, seen: PartitionFacts, context: Context) -> Block | None:
    """Return the first gate that blocks a step, in the order in which an operator would check them."""
    unusable = no_destination(step.adding, context)
    if unusable is not None:
        return unusable
    out_of_sync = [broker for broker in step.replicas if broker not in seen.isr]
    if _lacks_in_sync(seen, context) and out_of_sync and not _is_repair(step, seen, context):
        # A step that only adds is the repair. One that drops replicas or moves leadership waits for it.
        missing = ", ".join(str(broker) for broker in seen.replicas if broker not in seen.isr)
        detail = (
            f"{len(seen.isr)} replicas are in sync, min.insync.replicas asks for "
            f"{min(context.min_isr, len(seen.replicas))}: bring replicas {missing} back before others are dropped"
        )
        return Block(Blocker.BELOW_MIN_ISR, detail, context.at_ms)
    shrinks = not step.adding and len(step.replicas) < len(step.expected)
    if shrinks and out_of_sync:
        # Kafka lists such a shrink and waits (3.7 does not); waiting here instead leaves nothing half done.
        detail = f"replicas {', '.join(map(str, out_of_sync))} must be in the ISR before others are dropped"
        return Block(Blocker.REPLICAS_OUT_OF_SYNC, detail, context.at_ms)
    return _gate_of_leaders(step, seen, context)


def _gate_of_leaders(step: Step, seen: PartitionFacts, context: Context) -> Block | None:
    """X8: a step that drops the leader waits where only a listed broker could follow, and another one is to join soon.

    Kafka elects the first of the list that is in sync, an unreachable one too; the replicas that the step adds are in
    sync before it drops any.
    """
    if seen.leader in step.replicas or seen.leader in context.listed:
        return None
    in_sync = (broker for broker in step.replicas if broker in step.adding or broker in seen.isr)
    heir = next((broker for broker in in_sync if broker in context.live or broker in context.unreachable), None)
    others = [broker for broker in step.replicas if broker in context.live and broker not in context.listed]
    if heir not in context.listed or not others:
        return None
    names = ", ".join(map(str, others))
    detail = f"broker {heir} should not lead, and would with this step: replicas {names} must be in the ISR before"
    return Block(Blocker.REPLICAS_OUT_OF_SYNC, detail, context.at_ms)


def no_leader(seen: PartitionFacts, context: Context) -> Block:
    """Say that a partition has no leader, or none that Drover can reach."""
    hidden = hidden_leaders(seen, context.live)
    if hidden:
        detail = f"nobody whom Drover sees leads the partition: {unreachable_in_words(hidden)}"
        return Block(Blocker.UNREACHABLE_BROKER, detail, context.at_ms)
    detail = "the partition has no leader: bring an in-sync replica back"
    return Block(Blocker.NO_LEADER, detail, context.at_ms)


def no_destination(brokers: Collection[int], context: Context) -> Block | None:
    """Say which brokers cannot get a copy now, since they are dead, or else unreachable; None if all can."""
    unlisted = [broker for broker in brokers if broker not in context.live]
    if not unlisted:
        return None
    dead = context.brokers.dead(unlisted)
    if dead:
        return dead_destination(dead, context.at_ms)
    return Block(Blocker.UNREACHABLE_BROKER, unreachable_in_words(unlisted), context.at_ms)


def _no_step(reassignment: Reassignment, context: Context) -> Block:
    """Say why no step can begin: no replica that is left to add can be copied now."""
    missing = replica_sets.adding(reassignment.current, reassignment.step_target)
    return no_destination(missing, context) or dead_destination(missing, context.at_ms)


def unregistered_target(brokers: Collection[int], at_ms: int) -> Block:
    """Say that the target names brokers without a registration, so that Kafka refuses it."""
    names = ", ".join(map(str, brokers))
    detail = (
        f"broker {names} of the target is not registered with Kafka, which refuses every list that names it: let it "
        "register again, or cancel and name another broker"
    )
    return Block(Blocker.UNREGISTERED_BROKER, detail, at_ms)


def dead_destination(dead: Collection[int], at_ms: int) -> Block:
    """Say that brokers which are to get a copy are not alive."""
    names = ", ".join(map(str, dead))
    return Block(Blocker.DEAD_DESTINATION, f"broker {names} is not alive: bring it back or cancel", at_ms)
