"""Deciding about one partition's new target: what Kafka would refuse is refused before anything is queued (KIP-455)."""

from collections.abc import Collection
from dataclasses import dataclass

from drover.decide.cancellation import (
    Asking,
    give_way,
    has_lost_its_start,
    is_untouched,
    replace_target,
    withdraw_cancel,
    withdraw_replacement,
)
from drover.decide.decision import Facts, OwnTopics, PartitionDecision, refuse_partition
from drover.decide.leader_order import deprioritise
from drover.decide.order_endings import is_reorder, now_canonical
from drover.decide.verdict import gone_by_a_new_topic
from drover.events.commands import PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCreated, TargetReplaced, WithdrawalReason
from drover.events.records import ReassignmentEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.facts import PartitionFacts
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment
from drover.unreachable import unreachable_in_words

# A topic of Drover's own keeps at least so many: with fewer, the loss of two brokers could lose the log.
LEAST_OWN_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class NewTarget:
    """One partition of an alter command, or of an entry in the queue, and the plan it belongs to.

    `original_replicas` is an assertion about the present list, `topic_id` one about the incarnation of the topic; None
    if nothing is asserted.
    """

    key: TopicPartition
    replicas: tuple[int, ...]
    plan: str
    asked: Asking
    original_replicas: tuple[int, ...] | None = None
    allow_replication_factor_change: bool = True
    allow_drover_topics: bool = False
    topic_id: str | None = None
    allow_emptied_brokers: bool = False


def decide_target(new: NewTarget, state: ClusterState, facts: Facts) -> PartitionDecision:
    """Queue one partition, let its target replace the one it is moving to, or refuse it by the first rule that applies.

    A partition that Drover is moving is judged by its recorded original list, without a look at the cluster. Only if
    somebody else changed that list, or created the topic again, before anything was sent, the new target begins at the
    list that was observed.
    """
    refusal = refuse_form(new, facts)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    active = state.reassignments.get(new.key)
    seen = facts.partitions.get(new.key)
    before: tuple[ReassignmentEvent, ...] = ()
    if active is not None:
        seen = seen or facts.recent(new.key)
        if _is_of_an_earlier_topic(active, seen):
            before = (gone_by_a_new_topic(active, state.name),)
        elif has_lost_its_start(active):
            withdrawn = withdraw_replacement(active, WithdrawalReason.REPLACED, new.asked, state.name)
            before = (*withdrawn, give_way(active, state.name))
        else:
            return _decide_moving(new, active, state, facts)
    if seen is None:
        detail = f"{new.key} does not exist in {state.name}"
        return PartitionDecision(refusal=refuse_partition(new.key, RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, detail))
    canonical = state.canonical_of(new.key, seen.topic_id, seen.replicas)
    refusal = refuse_incarnation(new.key, new.topic_id, seen.topic_id)
    refusal = refusal or _refuse_replicas(new, seen.replicas, state, facts)
    refusal = refusal or _refuse_situation(new, seen, canonical, facts)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    if new.replicas == seen.replicas:
        canonical_now = now_canonical(state, new.key, seen.topic_id, new.replicas)
        return PartitionDecision(events=(*before, *canonical_now), unchanged=True)
    if new.replicas == canonical:
        return PartitionDecision(events=before, unchanged=True)
    refusal = _refuse_unregistered(new, facts)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    return PartitionDecision(events=(*before, created_from(new, seen, state)), joins=True)


def _is_of_an_earlier_topic(active: Reassignment, seen: PartitionFacts | None) -> bool:
    """Whether the topic was created again before anything was sent, which ends the old reassignment as failed (S9)."""
    return seen is not None and seen.topic_id != active.topic_id and is_untouched(active)


def _decide_moving(new: NewTarget, active: Reassignment, state: ClusterState, facts: Facts) -> PartitionDecision:
    today = deprioritise(active.original, state.listed_for(new.key.topic))
    refusal = refuse_incarnation(new.key, new.topic_id, active.topic_id)
    refusal = refusal or refuse_original(new.key, new.original_replicas, active.original, today)
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    if active.target == new.replicas and not active.is_cancelled:
        withdrawn: tuple[ReassignmentEvent, ...]
        withdrawn = withdraw_replacement(active, WithdrawalReason.REPLACED, new.asked, state.name)
        withdrawn += withdraw_cancel(active, new.asked, state.name)
        canonical = now_canonical(state, new.key, active.topic_id, new.replicas) if is_reorder(active) else ()
        return PartitionDecision(events=(*withdrawn, *canonical), unchanged=True)
    if active.replacement is not None and active.replacement.target == new.replicas:
        return PartitionDecision(unchanged=True)
    refusal = _refuse_replicas(new, active.original, state, facts) or _refuse_unregistered(
        new, facts, active.unregistered
    )
    if refusal is not None:
        return PartitionDecision(refusal=refusal)
    order = state.canonical_of(new.key, active.topic_id, active.current) if is_reorder(active) else active.original
    events = replace_target(active, new.plan, new.replicas, new.asked, state.name, order)
    if is_reorder(active) and is_untouched(active) and new.replicas == active.current:
        return PartitionDecision(events=(*events, *now_canonical(state, new.key, active.topic_id, new.replicas)))
    return PartitionDecision(
        events=events, joins=any(isinstance(event, ReassignmentCreated | TargetReplaced) for event in events)
    )


def refuse_form(new: NewTarget, facts: Facts) -> Refusal | None:
    """Refuse a target that is wrong in any cluster."""
    invalid = RefusalCode.INVALID_REPLICA_ASSIGNMENT
    if new.key.topic in facts.own_topics.names and (detail := _why_not_own_topic(new, facts.own_topics)) is not None:
        return refuse_partition(new.key, RefusalCode.DROVER_TOPIC, detail)
    if not new.replicas:
        return refuse_partition(new.key, invalid, f"{new.key}: the replica list is empty")
    if len(set(new.replicas)) != len(new.replicas):
        return refuse_partition(new.key, invalid, f"{new.key}: {list(new.replicas)} names a broker twice")
    return None


def _why_not_own_topic(new: NewTarget, own_topics: OwnTopics) -> str | None:
    """Say why a topic of Drover's own may not be moved to these replicas; None if it may.

    A sender of commands must not be able to thin out the log, which only workers may write.
    """
    topic = f"{new.key.topic} is Drover's own"
    if not own_topics.may_move:
        return f"{topic}: workers move it only with worker.allow_drover_topics = true in their settings"
    if not new.allow_drover_topics:
        return f"{topic}: set allow_drover_topics if that is meant"
    if len(new.replicas) < LEAST_OWN_REPLICAS:
        return f"{topic}: it keeps at least {LEAST_OWN_REPLICAS} replicas, and {list(new.replicas)} has fewer"
    return None


def refused_anywhere(target: PartitionTarget, own_topics: OwnTopics) -> Refusal | None:
    """Say why a partition of an alter would be refused in any cluster; None if that depends on the cluster."""
    if target.replicas is None:
        return None
    key, replicas = target.key, target.replicas
    if min(replicas, default=0) < 0:
        detail = f"{key}: broker {min(replicas)} is no broker"
        return refuse_partition(key, RefusalCode.INVALID_REPLICA_ASSIGNMENT, detail)
    return refuse_form(NewTarget(key, replicas, "", Asking("", "")), Facts(own_topics=own_topics))


def _refuse_replicas(new: NewTarget, present: tuple[int, ...], state: ClusterState, facts: Facts) -> Refusal | None:
    """R455-3 and the guard of KIP-860: refuse what Kafka itself would refuse, before anything is queued.

    A broker that an open plan empties gets no new replica.
    """
    key, replicas = new.key, new.replicas
    unknown = [broker for broker in replicas if broker not in facts.live_brokers and broker not in present]
    unreachable = [broker for broker in unknown if broker in facts.unreachable]
    if unreachable:
        detail = f"{key}: {unreachable_in_words(unreachable)}"
        return refuse_partition(key, RefusalCode.INVALID_REPLICA_ASSIGNMENT, detail)
    if unknown:
        detail = (
            f"{key}: broker {', '.join(map(str, unknown))} is not listed by the cluster: it is unknown or not alive"
        )
        return refuse_partition(key, RefusalCode.INVALID_REPLICA_ASSIGNMENT, detail)
    wrong_factor = RefusalCode.INVALID_REPLICATION_FACTOR
    if len(replicas) != len(present) and not new.allow_replication_factor_change:
        detail = (
            f"{key}: the replication factor would change from {len(present)} to {len(replicas)}, "
            "which the command does not allow"
        )
        return refuse_partition(key, wrong_factor, detail)
    min_isr = facts.min_isr.get(key.topic, 1)
    if len(replicas) < min_isr <= len(present):
        # X17: a smaller list than min.insync.replicas would refuse every acks=all write once it is reached.
        detail = f"{key}: {len(replicas)} replicas are fewer than min.insync.replicas={min_isr}: lower that first"
        return refuse_partition(key, wrong_factor, detail)
    return None if new.allow_emptied_brokers else _refuse_emptied(key, replicas, present, state)


def _refuse_emptied(
    key: TopicPartition, replicas: tuple[int, ...], present: tuple[int, ...], state: ClusterState
) -> Refusal | None:
    emptied = state.plans_emptying
    for broker in replicas:
        if broker in emptied and broker not in present:
            detail = (
                f"{key}: broker {broker} gets no further replicas while {state.owner_of(emptied[broker])} empties it: "
                "plan again without it, cancel that plan, or set allow_emptied_brokers (--allow-emptied-brokers)"
            )
            return refuse_partition(key, RefusalCode.BROKER_EMPTIED, detail)
    return None


def _refuse_unregistered(new: NewTarget, facts: Facts, refused: Collection[int] = ()) -> Refusal | None:
    """Refuse a list that Kafka would refuse, although the broker is in the present one.

    `refused` are the brokers that Kafka's answers have named.
    """
    dead = facts.brokers.dead(new.replicas)
    unregistered = {*facts.brokers.unregistered(dead), *(broker for broker in dead if broker in refused)}
    if not unregistered:
        return None
    detail = (
        f"{new.key}: broker {', '.join(map(str, sorted(unregistered)))} is not registered with Kafka, which refuses "
        "every list that names it: name another broker"
    )
    return refuse_partition(new.key, RefusalCode.INVALID_REPLICA_ASSIGNMENT, detail)


def _refuse_situation(new: NewTarget, seen: PartitionFacts, canonical: tuple[int, ...], facts: Facts) -> Refusal | None:
    if seen.move is not None or new.key in facts.moves:
        detail = f"{new.key} is being moved by somebody else: wait for that, or cancel it with their tool"
        return refuse_partition(new.key, RefusalCode.UNMANAGED_MOVE, detail)
    return refuse_original(new.key, new.original_replicas, seen.replicas, canonical)


def refuse_incarnation(key: TopicPartition, asserted: str | None, present: str) -> Refusal | None:
    """Refuse a target for a deleted topic of the same name (promise 10)."""
    if asserted in {None, present}:
        return None
    detail = (
        f"{key}: the topic was deleted and created again since (its id was {asserted}, it is {present}): nothing is "
        "moved; ask for it anew if that is meant"
    )
    return refuse_partition(key, RefusalCode.INCONSISTENT_TOPIC_ID, detail)


def refuse_original(
    key: TopicPartition, asserted: tuple[int, ...] | None, original: tuple[int, ...], *orders: tuple[int, ...]
) -> Refusal | None:
    """R236-2: the list that a client sends is an assertion about the true list, never the truth.

    `orders` are the other orders in which it may name that list: the canonical one, or today's.
    """
    if asserted is None or asserted in {original, *orders}:
        return None
    detail = (
        f"{key}: original_replicas {list(asserted)} differ from the true list {list(original)}: look again, then leave "
        "them out or correct them"
    )
    return refuse_partition(key, RefusalCode.ORIGINAL_REPLICAS_DIFFER, detail)


def created_from(new: NewTarget, seen: PartitionFacts, state: ClusterState) -> ReassignmentCreated:
    """Accept a partition at the list that was observed; the original is its canonical order (X9)."""
    original = state.canonical_of(new.key, seen.topic_id, seen.replicas)
    return ReassignmentCreated(
        cluster=state.name,
        topic=new.key.topic,
        partition=new.key.partition,
        topic_id=seen.topic_id,
        plan=new.plan,
        original=original,
        target=new.replicas,
        current=None if original == seen.replicas else seen.replicas,
    )
