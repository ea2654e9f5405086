"""Deciding an alter command: each partition is accepted, already as asked, or refused for a named reason (KIP-455)."""

from collections.abc import Sequence

from msgspec.structs import replace

from drover.decide.cancellation import Asking, cancel, has_lost_its_start
from drover.decide.decision import Decision, Facts, NeededObservations, PartitionDecision, refuse, refuse_partition
from drover.decide.leader_order import deprioritise
from drover.decide.limits import plan_windows_set, read_windows
from drover.decide.nearest_lists import nearest_list, nearest_remark
from drover.decide.order_endings import PLAN_PREFIX
from drover.decide.plans import rate_remark
from drover.decide.queue_entries import enter, leave, withdraw
from drover.decide.target_directories import directory_remarks
from drover.decide.targets import NewTarget, decide_target, refuse_incarnation, refuse_original
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanExtended, PlanOpened, PlanThrottleSet
from drover.events.queue_entries import QueueExit
from drover.events.reassignments import CancelMode
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus


def decide_alter(command: Alter, state: ClusterState, facts: Facts) -> Decision:
    """Decide an alter command against the state and the facts; each partition succeeds or fails by itself.

    A partition whose list is null is stopped, which needs neither a plan nor a look at the cluster (R455-1). With
    `queue` the others wait behind everything that was accepted, and their targets are checked later (R236-12).
    Otherwise an accepted partition leaves the queue: the later request wins.
    """
    whole = _refuse_whole(command, state, facts)
    if whole is not None:
        return whole
    events: list[AnyEvent] = []
    accepted: list[TopicPartition] = []
    unchanged: list[TopicPartition] = []
    refusals: list[Refusal] = []
    joins = False
    for target in command.partitions:
        decided = _decide_partition(target, command, state, facts)
        if decided.refusal is not None:
            refusals.append(decided.refusal)
            continue
        (unchanged if decided.unchanged else accepted).append(target.key)
        events += decided.events
        joins = joins or decided.joins
    plan_events = _plan_events(command, state, joins=joins, unchanged=bool(unchanged))
    is_throttled = any(isinstance(event, PlanThrottleSet) for event in plan_events)
    return Decision(
        events=(*plan_events, *events),
        accepted=tuple(accepted),
        unchanged=tuple(unchanged),
        refusals=tuple(refusals),
        plan=command.plan_name if moves(command) else command.plan,
        remarks=(
            *_throttle_remarks(command, unchanged, state, is_set=is_throttled),
            *directory_remarks(command, accepted, state, facts),
            *_unregistered_remarks(command, accepted, facts),
        ),
    )


def _throttle_remarks(
    command: Alter, unchanged: Sequence[TopicPartition], state: ClusterState, *, is_set: bool
) -> tuple[str, ...]:
    """Repeat the throttle in a remark; or say that it was not set, and how to set it for the plans concerned."""
    rate, name = command.throttle_bytes_per_second, command.plan_name
    if rate is None:
        return ()
    if is_set or _has_this_throttle(command, state):
        return (rate_remark(name, rate, command.throttle_may_rise_to),)
    remark = f"the throttle of {rate:,} bytes per second was not set: nothing was added to plan {name}"
    others = {moving.plan for key in unchanged if (moving := state.reassignments.get(key)) is not None} - {name}
    if others:
        commands = " and ".join(f"`drover throttle set {other} {rate}`" for other in sorted(others))
        remark += f"; the partitions are being moved by plan {', '.join(sorted(others))}: {commands}"
    return (remark,)


def _unregistered_remarks(command: Alter, accepted: Sequence[TopicPartition], facts: Facts) -> tuple[str, ...]:
    """Name the unregistered brokers that were dropped from lists."""
    if not command.drops_unregistered:
        return ()
    taken = frozenset(accepted)
    named = {broker for target in command.partitions if target.key in taken for broker in target.replicas or ()}
    missing = facts.brokers.unregistered(named)
    return (nearest_remark(missing),) if missing else ()


def _has_this_throttle(command: Alter, state: ClusterState) -> bool:
    plan = state.plans.get(command.plan_name)
    return (
        plan is not None
        and plan.throttle_bytes_per_second == command.throttle_bytes_per_second
        and state.throttle_bounds.get(plan.name) == command.throttle_may_rise_to
    )


def observations_for_alter(command: Alter, state: ClusterState) -> NeededObservations:
    """Say which partitions to look at: those with another target than Drover is moving them to already.

    A partition that enters the queue needs only its topic's id, and the state has that of a partition that is moving.
    """
    worth: list[TopicPartition] = []
    required: list[TopicPartition] = []
    for target in command.partitions:
        if target.replicas is None:
            continue
        key = target.key
        moving = state.reassignments.get(key)
        if moving is None:
            worth.append(key)
            required.append(key)
            continue
        if has_lost_its_start(moving):
            required.append(key)
            worth.append(key)
        elif not command.queue and (moving.target != target.replicas or moving.is_cancelled):
            worth.append(key)
    return NeededObservations(tuple(worth), tuple(required))


def moves(command: Alter) -> bool:
    """Whether any partition gets a target; otherwise the command only stops moves."""
    return any(target.replicas is not None for target in command.partitions)


def _refuse_whole(command: Alter, state: ClusterState, facts: Facts) -> Decision | None:
    plan = command.plan_name
    if command.only_when_idle and (state.reassignments or state.queue):
        detail = (
            f"{state.name} is not idle: {len(state.reassignments)} partitions are being reassigned and "
            f"{len(state.queue)} wait; send it again when all have ended, or cancel them"
        )
        return refuse(RefusalCode.REASSIGNMENT_IN_PROGRESS, detail, plan=plan)
    if not moves(command):
        return None
    if state.mismatched_kafka_cluster_id is not None:
        detail = (
            f"{state.name} was first seen as Kafka cluster {state.kafka_cluster_id}, now "
            f"{state.mismatched_kafka_cluster_id} answers: correct the bootstrap address in the configuration"
        )
        return refuse(RefusalCode.CLUSTER_CHANGED, detail, plan=plan)
    if state.is_migrating:
        detail = f"{state.name} is being migrated from ZooKeeper to KRaft: send the command again when that is done"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail, plan=plan)
    if facts.unavailable is not None:
        detail = f"{state.name} could not be looked at: {facts.unavailable}; send the command again under a new id"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail, plan=plan)
    if plan.startswith(PLAN_PREFIX):
        detail = f"plan names that begin with {PLAN_PREFIX} are Drover's own: choose another name"
        return refuse(RefusalCode.PLAN_CLOSED, detail, plan=plan)
    try:
        read_windows(command.windows)
    except ValueError as error:
        return refuse(RefusalCode.INVALID_LIMIT, str(error), plan=plan)
    existing = state.plans.get(plan)
    if existing is not None and existing.status is not PlanStatus.OPEN:
        detail = f"plan {plan} is {existing.status} and is not opened again: choose another name"
        return refuse(RefusalCode.PLAN_CLOSED, detail, plan=plan)
    return None


def _plan_events(command: Alter, state: ClusterState, *, joins: bool, unchanged: bool) -> tuple[AnyEvent, ...]:
    """Open or extend the plan; a command without accepted partitions does not change the plan's properties."""
    name = command.plan_name
    plan = state.plans.get(name)
    if plan is None and not joins:
        return ()
    if plan is not None and plan.status is not PlanStatus.OPEN:
        # Only a command that stops moves gets here, and it adds nothing to the plan that it names.
        return ()
    events: list[AnyEvent] = []
    if plan is None:
        events.append(
            PlanOpened(
                cluster=state.name,
                plan=name,
                by=command.by,
                reason=command.reason,
                stepping=command.stepping,
                priority=command.priority,
                empties=command.empties,
                fills=command.fills,
            )
        )
    if plan is not None or command.more:
        counts = plan is not None and (joins or unchanged)
        stepping, priority = (command.stepping, command.priority) if counts else (None, None)
        events.append(
            PlanExtended(
                cluster=state.name,
                plan=name,
                more=command.more,
                stepping=stepping,
                priority=priority,
                empties=command.empties if counts else (),
                fills=command.fills if counts else (),
            )
        )
    throttle = command.throttle_bytes_per_second
    if throttle is not None and (joins or unchanged) and not _has_this_throttle(command, state):
        bound = command.throttle_may_rise_to
        events.append(PlanThrottleSet(cluster=state.name, plan=name, bytes_per_second=throttle, may_rise_to=bound))
    if command.windows is not None and (joins or unchanged):
        events += plan_windows_set(name, command.windows, command, state)
    return tuple(events)


def _decide_partition(target: PartitionTarget, command: Alter, state: ClusterState, facts: Facts) -> PartitionDecision:
    asked = Asking.of(command)
    if target.replicas is None:
        return _stop(target, asked, state)
    replicas = target.replicas
    if command.drops_unregistered:
        replicas = nearest_list(replicas, facts.partitions.get(target.key), facts.brokers)
    new = NewTarget(
        key=target.key,
        replicas=replicas,
        plan=command.plan_name,
        asked=asked,
        original_replicas=target.original_replicas,
        allow_replication_factor_change=command.allow_replication_factor_change,
        allow_drover_topics=command.allow_drover_topics,
        topic_id=target.topic_id,
        allow_emptied_brokers=command.allow_emptied_brokers,
    )
    if command.queue:
        return enter(new, command.id, state, facts)
    return _ahead_of_the_queue(decide_target(new, state, facts), new.key, state)


def _ahead_of_the_queue(decided: PartitionDecision, key: TopicPartition, state: ClusterState) -> PartitionDecision:
    """Withdraw an earlier queue entry of the partition, which would later undo this command."""
    if decided.refusal is not None or key not in state.queue:
        return decided
    return replace(decided, events=(leave(key, QueueExit.REPLACED, state.name), *decided.events))


def _stop(target: PartitionTarget, asked: Asking, state: ClusterState) -> PartitionDecision:
    """Stop a move (R455-1), which keeps the replicas in sync (R455-9), and withdraw a queue entry."""
    key = target.key
    active = state.reassignments.get(key)
    withdrawn = withdraw((key,), state.name) if key in state.queue else ()
    if active is None and withdrawn:
        return PartitionDecision(events=withdrawn)
    if active is None:
        detail = f"Drover is not moving {key}: there is nothing to stop"
        return PartitionDecision(refusal=refuse_partition(key, RefusalCode.NO_REASSIGNMENT_IN_PROGRESS, detail))
    refusal = refuse_incarnation(key, target.topic_id, active.topic_id)
    today = deprioritise(active.original, state.listed_for(key.topic))
    refusal = refusal or refuse_original(key, target.original_replicas, active.original, today)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    stopped = cancel(active, CancelMode.STOP, asked, state.name)
    if isinstance(stopped, Refusal):
        # The queue entry is withdrawn although the stop is refused.
        return PartitionDecision(events=withdrawn) if withdrawn else PartitionDecision(refusal=stopped)
    events = (*withdrawn, *stopped)
    return PartitionDecision(events=events, unchanged=not events)
