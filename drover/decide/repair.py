"""Decide a repair command: take over and cancel moves that Kafka can never end, no matter who started them."""

from drover.decide.decision import Decision, Facts, NeededObservations, refuse, refuse_partition
from drover.decide.unmanaged_moves import adopt_stuck, is_repairable
from drover.decide.verdict import event_name
from drover.events.commands import Repair
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import Blocker, CancelMode, RollbackRequested, StopRequested
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.facts import PartitionFacts
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment


def observations_for_repair(command: Repair, state: ClusterState) -> NeededObservations:
    """Say which partitions must be seen before the command can be decided: those that Drover is not moving."""
    keys = tuple(key for key in _meant(command, state) if key not in state.reassignments)
    return NeededObservations(keys, keys)


def decide_repair(command: Repair, state: ClusterState, facts: Facts) -> Decision:
    """Take over every named (or every known) move that can never end; its plan is named after the command.

    A move of Drover's own that is blocked for that reason is cancelled once more.
    """
    if state.mismatched_kafka_cluster_id is not None:
        detail = f"another Kafka cluster ({state.mismatched_kafka_cluster_id}) answers as {state.name}"
        return refuse(RefusalCode.CLUSTER_CHANGED, f"{detail}: correct the bootstrap address in the configuration")
    if facts.unavailable is not None:
        detail = f"{state.name} could not be looked at: {facts.unavailable}; send the command again under a new id"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail)
    if command.id in state.plans:
        return refuse(RefusalCode.PLAN_CLOSED, f"there is a plan {command.id} already: send it under another id")
    events: list[AnyEvent] = []
    accepted: list[TopicPartition] = []
    refusals: list[Refusal] = []
    for key in _meant(command, state):
        repaired = _repair_partition(command, key, state, facts)
        if isinstance(repaired, Refusal):
            refusals.append(repaired)
        else:
            accepted.append(key)
            events += repaired
    opens = any(key not in state.reassignments for key in accepted)
    if opens:
        events.insert(0, PlanOpened(cluster=state.name, plan=command.id, by=command.by, reason=command.reason))
    return Decision(tuple(events), tuple(accepted), (), tuple(refusals), command.id if opens else None)


def _meant(command: Repair, state: ClusterState) -> tuple[TopicPartition, ...]:
    if command.partitions is not None:
        return tuple(dict.fromkeys(partition.key for partition in command.partitions))
    own = [key for key, reassignment in state.reassignments.items() if _is_stuck(reassignment)]
    others = [key for key, move in state.unmanaged.items() if move.never_ends and key not in state.reassignments]
    return (*own, *sorted(others))


def _repair_partition(
    command: Repair, key: TopicPartition, state: ClusterState, facts: Facts
) -> tuple[AnyEvent, ...] | Refusal:
    own = state.reassignments.get(key)
    if own is not None:
        return _cancel_again(command, own, state)
    seen = facts.partitions.get(key)
    if seen is None:
        detail = f"{key} does not exist in {state.name}"
        return refuse_partition(key, RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, detail)
    return _refuse_healthy(key, seen) or adopt_stuck(state, key, command.id, seen)


def _refuse_healthy(key: TopicPartition, seen: PartitionFacts) -> Refusal | None:
    if seen.move is None:
        detail = f"{key} is not being moved: there is nothing to repair"
        return refuse_partition(key, RefusalCode.NO_REASSIGNMENT_IN_PROGRESS, detail)
    if is_repairable(seen):
        return None
    lacking = [broker for broker in seen.move.target if broker not in seen.isr]
    why = f" when {', '.join(map(str, lacking))} is in sync" if lacking else ""
    detail = (
        f"{key} is being moved to {list(seen.move.target)}, which can end{why}: wait, or cancel it with the tool it is"
        " from"
    )
    return refuse_partition(key, RefusalCode.UNMANAGED_MOVE, detail)


def _cancel_again(command: Repair, own: Reassignment, state: ClusterState) -> tuple[AnyEvent, ...] | Refusal:
    if not _is_stuck(own):
        detail = f"{own.key} is being moved by plan {own.plan}, which can end: wait for it, or cancel it"
        return refuse_partition(own.key, RefusalCode.REASSIGNMENT_IN_PROGRESS, detail)
    name = event_name(state.name, own.key)
    if own.cancel_mode is CancelMode.STOP:
        return (StopRequested(**name, by=command.by, reason=command.reason, command=command.id, until_withdrawn=True),)
    return (RollbackRequested(**name, by=command.by, reason=command.reason, command=command.id, until_withdrawn=True),)


def _is_stuck(reassignment: Reassignment) -> bool:
    return reassignment.block is not None and reassignment.block.why is Blocker.BROKER_IN_BOTH_LISTS
