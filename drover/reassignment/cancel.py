"""Deciding a cancel command: scopes are resolved now, include what is queued, and never touch foreign moves."""

from drover.reassignment.decision import Decision, refuse, refuse_partition
from drover.reassignment.state import ClusterState, Phase, PlanStatus, Reassignment
from events.commands import Cancel
from events.partitions import TopicPartition
from events.plans import PlanCancelled
from events.reassignments import ReassignmentRolledBack, RollbackRequested
from events.records import AnyEvent
from events.refusals import Refusal, RefusalCode


def decide_cancel(command: Cancel, state: ClusterState) -> Decision:
    """Ask for the rollback of everything in the scope that has not ended (R236-1, R236-6).

    What is queued, or waits for its throttle before the first step, ends at once: nothing of it is in the cluster. What
    is being rolled back already is unchanged.
    """
    if command.mode == "stop":
        detail = "mode stop is not supported yet: use rollback"
        return refuse(RefusalCode.UNSUPPORTED, detail, plan=command.plan)
    if command.plan is not None:
        return _cancel_plan(command, command.plan, state)
    keys, refusals = _resolve(command, state)
    return _roll_back(command, state, keys, refusals)


def _cancel_plan(command: Cancel, name: str, state: ClusterState) -> Decision:
    plan = state.plans.get(name)
    if plan is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {name} in {state.name}", plan=name)
    if plan.status is PlanStatus.FINISHED:
        return refuse(RefusalCode.PLAN_CLOSED, f"plan {name} has finished: nothing of it is moving", plan=name)
    keys = [key for key, reassignment in state.reassignments.items() if reassignment.plan == name]
    decision = _roll_back(command, state, keys, [])
    events = decision.events
    if plan.status is PlanStatus.OPEN:
        closed = PlanCancelled(cluster=state.name, plan=name, by=command.by, reason=command.reason)
        events = (closed, *events)
    return Decision(events=events, accepted=decision.accepted, unchanged=decision.unchanged, plan=name)


def _resolve(command: Cancel, state: ClusterState) -> tuple[list[TopicPartition], list[Refusal]]:
    nothing = RefusalCode.NO_REASSIGNMENT_IN_PROGRESS
    if command.all:
        return list(state.reassignments), []
    keys: list[TopicPartition] = []
    refusals: list[Refusal] = []
    for name in dict.fromkeys(partition.key for partition in command.partitions or ()):
        if name in state.reassignments:
            keys.append(name)
        else:
            refusals.append(refuse_partition(name, nothing, f"Drover is not moving {name}"))
    for topic in dict.fromkeys(command.topics or ()):
        of_topic = [key for key in state.reassignments if key.topic == topic]
        keys += of_topic
        if not of_topic:
            refusals.append(Refusal(nothing, f"Drover is moving no partition of {topic}", topic=topic))
    return keys, refusals


def _roll_back(command: Cancel, state: ClusterState, keys: list[TopicPartition], refusals: list[Refusal]) -> Decision:
    events: list[AnyEvent] = []
    accepted: list[TopicPartition] = []
    unchanged: list[TopicPartition] = []
    for key in keys:
        reassignment = state.reassignments[key]
        if reassignment.is_cancelled:
            unchanged.append(key)
            continue
        accepted.append(key)
        events += _roll_back_one(command, state.name, reassignment)
    return Decision(tuple(events), tuple(accepted), tuple(unchanged), tuple(refusals))


def _roll_back_one(command: Cancel, cluster: str, reassignment: Reassignment) -> list[AnyEvent]:
    topic, partition = reassignment.key
    requested = RollbackRequested(
        cluster=cluster, topic=topic, partition=partition, by=command.by, reason=command.reason
    )
    if not _is_untouched(reassignment):
        return [requested]
    withdrawn = ReassignmentRolledBack(
        cluster=cluster,
        topic=topic,
        partition=partition,
        replicas=reassignment.original,
        started=reassignment.attempts > 0,
    )
    return [requested, withdrawn]


def _is_untouched(reassignment: Reassignment) -> bool:
    """Whether nothing that Drover sent has changed the partition: still queued, or before the first step's call."""
    if reassignment.phase is Phase.QUEUED:
        return True
    step = reassignment.step
    return reassignment.phase is Phase.PREPARED and step is not None and step.number == 1
