"""Deciding an alter command: each partition is accepted, already as asked, or refused for a named reason (KIP-455)."""

from drover.reassignment.decision import Decision, Facts, refuse, refuse_partition
from drover.reassignment.facts import PartitionFacts
from drover.reassignment.state import ClusterState, PlanStatus, Reassignment
from events.commands import Alter, PartitionTarget
from events.partitions import TopicPartition
from events.plans import PlanExtended, PlanOpened, PlanThrottleSet
from events.reassignments import ReassignmentQueued
from events.records import AnyEvent
from events.refusals import Refusal, RefusalCode


def decide_alter(command: Alter, state: ClusterState, facts: Facts) -> Decision:
    """Decide an alter command against the state and what the cluster shows; partial success is per partition."""
    whole = _refuse_whole(command, state, facts)
    if whole is not None:
        return whole
    queued: list[ReassignmentQueued] = []
    unchanged: list[TopicPartition] = []
    refusals: list[Refusal] = []
    for target in command.partitions:
        verdict = _decide_partition(target, command, state, facts)
        match verdict:
            case ReassignmentQueued():
                queued.append(verdict)
            case Refusal():
                refusals.append(verdict)
            case None:
                unchanged.append(target.key)
    return Decision(
        events=(*_plan_events(command, state, queued=bool(queued), unchanged=bool(unchanged)), *queued),
        accepted=tuple(event.key for event in queued),
        unchanged=tuple(unchanged),
        refusals=tuple(refusals),
        plan=command.plan_name,
    )


def _refuse_whole(command: Alter, state: ClusterState, facts: Facts) -> Decision | None:
    plan = command.plan_name
    if command.queue:
        return refuse(RefusalCode.UNSUPPORTED, "queue: the KIP-236 queue is not supported yet", plan=plan)
    if state.mismatched_kafka_cluster_id is not None:
        detail = (
            f"{state.name} was first seen as Kafka cluster {state.kafka_cluster_id}, now "
            f"{state.mismatched_kafka_cluster_id} answers: mend the bootstrap address in the configuration"
        )
        return refuse(RefusalCode.CLUSTER_CHANGED, detail, plan=plan)
    if facts.unavailable is not None:
        detail = f"{state.name} could not be looked at: {facts.unavailable}; send the command again under a new id"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail, plan=plan)
    known = state.plans.get(plan)
    if known is not None and known.status is not PlanStatus.OPEN:
        detail = f"plan {plan} is {known.status} and is never opened again: choose another name"
        return refuse(RefusalCode.PLAN_CLOSED, detail, plan=plan)
    return None


def _plan_events(command: Alter, state: ClusterState, *, queued: bool, unchanged: bool) -> tuple[AnyEvent, ...]:
    """Open or extend the plan. A command of which nothing was accepted says that it came, but sets no throttle."""
    name = command.plan_name
    plan = state.plans.get(name)
    if plan is None and not queued:
        return ()
    events: list[AnyEvent] = []
    if plan is None:
        events.append(PlanOpened(cluster=state.name, plan=name, by=command.by, reason=command.reason))
    if plan is not None or command.more:
        events.append(PlanExtended(cluster=state.name, plan=name, more=command.more))
    throttle = command.throttle_bytes_per_second
    if throttle is not None and (queued or unchanged) and (plan is None or plan.throttle_bytes_per_second != throttle):
        events.append(PlanThrottleSet(cluster=state.name, plan=name, bytes_per_second=throttle))
    return tuple(events)


def _decide_partition(
    target: PartitionTarget, command: Alter, state: ClusterState, facts: Facts
) -> ReassignmentQueued | Refusal | None:
    """Queue one partition, or refuse it by the first rule that applies; None if it already is as asked."""
    key = target.key
    if target.replicas is None:
        detail = "replicas: null (stop this partition's move) is not supported yet: use cancel with mode rollback"
        return refuse_partition(key, RefusalCode.UNSUPPORTED, detail)
    if key.topic in facts.own_topics and not command.allow_drover_topics:
        detail = f"{key.topic} is Drover's own: set allow_drover_topics if that is meant"
        return refuse_partition(key, RefusalCode.DROVER_TOPIC, detail)
    active = state.reassignments.get(key)
    if active is not None:
        return _decide_moving(target, target.replicas, active)
    seen = facts.partitions.get(key)
    if seen is None:
        detail = f"{key} does not exist in {state.name}"
        return refuse_partition(key, RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, detail)
    return (
        _refuse_replicas(key, target.replicas, seen, command, facts)
        or _refuse_situation(key, target, seen, facts)
        or _queue(key, target.replicas, seen, command, state)
    )


def _decide_moving(target: PartitionTarget, replicas: tuple[int, ...], active: Reassignment) -> Refusal | None:
    key = target.key
    if active.target == replicas and not active.is_cancelled:
        return _refuse_original(target, active.original)
    doing = "being rolled back" if active.is_cancelled else f"moving to {list(active.target)}"
    detail = f"{key} is {doing} in plan {active.plan}: wait for it, or cancel it first"
    return refuse_partition(key, RefusalCode.REASSIGNMENT_IN_PROGRESS, detail)


def _refuse_replicas(
    key: TopicPartition, replicas: tuple[int, ...], seen: PartitionFacts, command: Alter, facts: Facts
) -> Refusal | None:
    """R455-3 and the guard of KIP-860: what Kafka itself would refuse, said before anything is queued."""
    invalid = RefusalCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        return refuse_partition(key, invalid, f"{key}: the replica list is empty")
    if len(set(replicas)) != len(replicas):
        return refuse_partition(key, invalid, f"{key}: {list(replicas)} names a broker twice")
    unknown = [broker for broker in replicas if broker not in facts.live_brokers and broker not in seen.replicas]
    if unknown:
        detail = f"{key}: broker {', '.join(map(str, unknown))} is unknown or not alive"
        return refuse_partition(key, invalid, detail)
    wrong_factor = RefusalCode.INVALID_REPLICATION_FACTOR
    if len(replicas) != len(seen.replicas) and not command.allow_replication_factor_change:
        detail = (
            f"{key}: the replication factor would change from {len(seen.replicas)} to {len(replicas)}, "
            "which the command does not allow"
        )
        return refuse_partition(key, wrong_factor, detail)
    min_isr = facts.min_isr.get(key.topic, 1)
    if len(replicas) < min_isr <= len(seen.replicas):
        # X17: a smaller list than min.insync.replicas would refuse every acks=all write once it is reached.
        detail = f"{key}: {len(replicas)} replicas are fewer than min.insync.replicas={min_isr}: lower that first"
        return refuse_partition(key, wrong_factor, detail)
    return None


def _refuse_situation(
    key: TopicPartition, target: PartitionTarget, seen: PartitionFacts, facts: Facts
) -> Refusal | None:
    if seen.move is not None or key in facts.moves:
        detail = f"{key} is being moved by somebody else: wait for that, or cancel it with their tool"
        return refuse_partition(key, RefusalCode.FOREIGN_REASSIGNMENT, detail)
    return _refuse_original(target, seen.replicas)


def _refuse_original(target: PartitionTarget, original: tuple[int, ...]) -> Refusal | None:
    """R236-2: an assertion, never the truth; what follows from a wrong one comes with the asserted form."""
    if target.original_replicas is None or target.original_replicas == original:
        return None
    detail = (
        f"{target.key}: original_replicas {list(target.original_replicas)} differ from the true list "
        f"{list(original)}, which is not supported yet: leave them out or correct them"
    )
    return refuse_partition(target.key, RefusalCode.UNSUPPORTED, detail)


def _queue(
    key: TopicPartition, replicas: tuple[int, ...], seen: PartitionFacts, command: Alter, state: ClusterState
) -> ReassignmentQueued | None:
    if replicas == seen.replicas:
        return None
    return ReassignmentQueued(
        cluster=state.name,
        topic=key.topic,
        partition=key.partition,
        topic_id=seen.topic_id,
        plan=command.plan_name,
        original=seen.replicas,
        target=replicas,
    )
