"""The queue of KIP-236 (R236-12): partitions that wait behind everything that was accepted.

An entry is checked when there is room for it, as an alter command is when it arrives. A partition that Drover is moving
by then is rolled back first; an entry whose partition somebody else is moving waits. An entry is for the incarnation of
its topic that was there when it was accepted, and for no later one (promise 10).
"""

from collections.abc import Iterable

from drover.decide.cancellation import Asking, done_already, has_lost_its_start
from drover.decide.decision import Facts, PartitionDecision, refuse_partition
from drover.decide.targets import NewTarget, created_from, decide_target, refuse_form, refuse_incarnation
from drover.events.partitions import TopicPartition
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved, QueueExit
from drover.events.records import AnyEvent
from drover.events.refusals import RefusalCode
from drover.state.cluster import ClusterState


def enter(new: NewTarget, command_id: str, state: ClusterState, facts: Facts) -> PartitionDecision:
    """Put one partition at the end of the queue; it replaces an earlier entry of the same partition."""
    topic_id = _incarnation(new.key, state, facts)
    if topic_id is None:
        detail = f"{new.key} does not exist in {state.name}"
        return PartitionDecision(refusal=refuse_partition(new.key, RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, detail))
    refusal = refuse_form(new, facts) or refuse_incarnation(new.key, new.topic_id, topic_id)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    added = QueueEntryAdded(
        cluster=state.name,
        topic=new.key.topic,
        partition=new.key.partition,
        id=command_id,
        plan=new.plan,
        target=new.replicas,
        original_replicas=new.original_replicas,
        allow_replication_factor_change=new.allow_replication_factor_change,
        allow_drover_topics=new.allow_drover_topics,
        topic_id=topic_id,
        allow_emptied_brokers=new.allow_emptied_brokers,
    )
    before = (leave(new.key, QueueExit.REPLACED, state.name),) if new.key in state.queue else ()
    return PartitionDecision(events=(*before, added), joins=True)


def _incarnation(key: TopicPartition, state: ClusterState, facts: Facts) -> str | None:
    """Return the topic's present id, for a moving partition the id that it moves under; None without such a topic."""
    active = state.reassignments.get(key)
    if active is not None and not has_lost_its_start(active):
        return active.topic_id
    seen = facts.partitions.get(key)
    return None if seen is None else seen.topic_id


def leave(key: TopicPartition, why: QueueExit, cluster: str, detail: str = "") -> QueueEntryRemoved:
    """Take an entry out of the queue."""
    return QueueEntryRemoved(cluster=cluster, topic=key.topic, partition=key.partition, why=why, detail=detail)


def withdraw(keys: Iterable[TopicPartition], cluster: str) -> tuple[QueueEntryRemoved, ...]:
    """Take entries out of the queue for a cancel."""
    return tuple(leave(key, QueueExit.WITHDRAWN, cluster) for key in keys)


def take(key: TopicPartition, state: ClusterState, facts: Facts) -> tuple[AnyEvent, ...]:
    """Decide an entry whose turn it is; empty while somebody else is moving the partition.

    Also empty while another incarnation of its topic, or none, is seen; `GoneTopics` ends the entry if that persists.
    """
    seen = facts.partitions.get(key)
    active = state.reassignments.get(key)
    if active is None:
        incarnation = state.queue[key].topic_id
        if incarnation is not None and (seen is None or seen.topic_id != incarnation):
            return ()
        if key in facts.moves or (seen is not None and seen.move is not None):
            return ()
    new = _asked_for(key, state)
    decided = decide_target(new, state, facts)
    if decided.refusal is not None:
        detail = f"{decided.refusal.code}: {decided.refusal.detail}"
        return (leave(key, QueueExit.REFUSED, state.name, detail),)
    events = decided.events
    if decided.unchanged and (active is None or has_lost_its_start(active)):
        assert seen is not None, f"{key} cannot be as asked without having been seen"
        created = created_from(new, seen, state)
        events = (*events, created, *done_already(created))
    return (leave(key, QueueExit.STARTED, state.name), *events)


def _asked_for(key: TopicPartition, state: ClusterState) -> NewTarget:
    entry = state.queue[key]
    plan = state.plans[entry.plan]
    return NewTarget(
        key=key,
        replicas=entry.target,
        plan=entry.plan,
        asked=Asking(plan.by, plan.reason),
        original_replicas=entry.original_replicas,
        allow_replication_factor_change=entry.allow_replication_factor_change,
        allow_drover_topics=entry.allow_drover_topics,
        topic_id=entry.topic_id,
        allow_emptied_brokers=entry.allow_emptied_brokers,
    )
