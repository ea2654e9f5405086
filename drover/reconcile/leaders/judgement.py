"""Judging one partition's leader and order: a plain function of the observation and the policy.

Level-based: it returns None when the cluster is as it should be. A listed broker goes to the end of the list (R491-2);
then the first replica in sync that lives and is not listed is elected, by a list that it heads.
"""

from collections.abc import Collection
from dataclasses import dataclass

from drover.brokers import NO_BROKERS, Brokers
from drover.decide.leader_order import deprioritise, with_first
from drover.events.leadership import LeaderWaitReason, OrderEnd
from drover.facts import PartitionFacts
from drover.state.leaders import KeptOrder
from drover.unreachable import unreachable_in_words


@dataclass(frozen=True, slots=True)
class LeaderPolicy:
    """The order and the leader that one partition should have.

    `listed` are the brokers that should not lead it, `live` those that live. With `gives_up` a listed broker that leads
    gives up leadership at once; otherwise the list is kept in an order under which no leadership moves (R491-4). With
    `balances` the first unlisted replica is to lead. `brokers` tells which brokers have no registration.
    """

    listed: Collection[int]
    live: Collection[int]
    gives_up: bool = True
    balances: bool = False
    brokers: Brokers = NO_BROKERS


@dataclass(frozen=True, slots=True)
class Reorder:
    """Keep `canonical`, and put the list into the order `replicas`; with `elects`, elect its first afterwards."""

    canonical: tuple[int, ...]
    replicas: tuple[int, ...]
    elects: bool


@dataclass(frozen=True, slots=True)
class Elect:
    """Elect the first of the list."""


@dataclass(frozen=True, slots=True)
class Wait:
    """No replica that should lead can: try again later."""

    why: LeaderWaitReason
    detail: str


@dataclass(frozen=True, slots=True)
class Forget:
    """The canonical order need not be kept any more."""

    why: OrderEnd


@dataclass(frozen=True, slots=True)
class LeaveAlone:
    """Another client has changed the order since Drover did."""


Judgement = Reorder | Elect | Wait | Forget | LeaveAlone


def judge(seen: PartitionFacts, kept: KeptOrder | None, policy: LeaderPolicy) -> Judgement | None:
    """Judge one observation of a partition that Drover is not moving; None if it is as it should be."""
    if kept is not None:
        strange = _strange(seen, kept)
        if strange is not None:
            return strange
        if kept.left_alone:
            return None
    if seen.move is not None:
        return _wait_for_others(seen, policy)
    canonical = seen.replicas if kept is None else kept.canonical
    # Kafka refuses every list that names an unregistered broker, so that such a list keeps its order.
    order = seen.replicas if policy.brokers.unregistered(seen.replicas) else wanted_order(canonical, seen, policy)
    is_restored = kept is not None and (order == canonical or order[0] != seen.replicas[0])
    elects = _elects(order, seen, policy, is_restored=is_restored)
    if order != seen.replicas:
        return Reorder(canonical, order, elects)
    if elects:
        return Elect()
    if kept is not None and order == canonical:
        return Forget(OrderEnd.RESTORED)
    return _wait(seen, policy)


def is_strange(judgement: Judgement | None, seen: PartitionFacts | None, shortest: int | None) -> bool:
    """Whether a judgement may rest on old metadata, so that it must persist before it is acted on.

    A list that is longer than the topic's `shortest`, and that Drover has not ordered before, may be the merged list of
    another client's move that has ended and that no List has shown: a reorder would bring removed replicas back.
    """
    if isinstance(judgement, Reorder) and seen is not None and shortest is not None:
        return len(seen.replicas) > shortest and judgement.canonical == seen.replicas
    return isinstance(judgement, Forget | LeaveAlone) and judgement != Forget(OrderEnd.RESTORED)


def wanted_order(canonical: tuple[int, ...], seen: PartitionFacts, policy: LeaderPolicy) -> tuple[int, ...]:
    """Return the order that the list should have now.

    Where a listed broker leads and the first replica of that order cannot lead, the first one that can heads the list
    meanwhile: Kafka elects only the head of a list.
    """
    listed = policy.listed
    if not must_give_up(seen, policy):
        if seen.leader in listed and not (policy.gives_up or policy.balances):
            # R491-4: its place in the order decides when it leads, and a reorder must not change that.
            listed = {broker for broker in listed if broker != seen.leader}
        return deprioritise(canonical, listed)
    order = deprioritise(canonical, listed)
    heads = [broker for broker in order if broker not in listed and can_lead(broker, seen, policy)]
    return with_first(order, heads[0]) if heads else order


def _strange(seen: PartitionFacts, kept: KeptOrder) -> Judgement | None:
    """Judge a list that is not the one that Drover left."""
    if seen.topic_id != kept.topic_id:
        return Forget(OrderEnd.GONE)
    if seen.replicas in {kept.replicas, kept.unresolved} or seen.move is not None:
        return None
    if set(seen.replicas) != set(kept.canonical):
        return Forget(OrderEnd.MOVED)
    return LeaveAlone()


def must_give_up(seen: PartitionFacts, policy: LeaderPolicy) -> bool:
    """Whether a listed broker leads that should not, and there is an unlisted replica."""
    return (
        seen.leader is not None
        and seen.leader in policy.listed
        and (policy.gives_up or policy.balances)
        and any(broker not in policy.listed for broker in seen.replicas)
    )


def can_lead(broker: int, seen: PartitionFacts, policy: LeaderPolicy) -> bool:
    """Whether a broker is in sync and can be seen to lead.

    Kafka would elect an unreachable one too, but clients of Drover's listener could not find that leader.
    """
    return broker in seen.isr and broker in policy.live


def _elects(order: tuple[int, ...], seen: PartitionFacts, policy: LeaderPolicy, *, is_restored: bool) -> bool:
    """Whether to elect the first of the order: it can lead, another broker leads, and the policy asks for it."""
    if seen.leader is None or seen.leader == order[0] or not can_lead(order[0], seen, policy):
        return False
    if order[0] in policy.listed and (seen.leader not in policy.listed or must_give_up(seen, policy)):
        # A list that names an unregistered broker cannot be put into order: a listed one may stand first.
        return False
    if must_give_up(seen, policy):
        return True
    return policy.balances or (is_restored and policy.gives_up)


def _wait(seen: PartitionFacts, policy: LeaderPolicy) -> Wait | None:
    if not must_give_up(seen, policy):
        return None
    unregistered = ", ".join(map(str, policy.brokers.unregistered(seen.replicas)))
    if unregistered:
        detail = (
            f"broker {seen.leader} leads, and Kafka refuses every new order of the list while broker {unregistered} in "
            "it is not registered: move its replicas elsewhere (`drover plan drain`), or let it register again"
        )
        return Wait(LeaderWaitReason.UNREGISTERED_REPLICA, detail)
    others = [broker for broker in seen.replicas if broker not in policy.listed]
    # There is a leader, so that every broker in the ISR lives.
    unreachable = [broker for broker in others if broker in seen.isr and broker not in policy.live]
    names = ", ".join(map(str, others))
    detail = f"broker {seen.leader} leads, and none of {names} is in sync and alive: bring one of them back"
    if unreachable:
        detail = f"broker {seen.leader} leads, and nobody else can be elected: {unreachable_in_words(unreachable)}"
    return Wait(LeaderWaitReason.NO_IN_SYNC_REPLICA, detail)


def _wait_for_others(seen: PartitionFacts, policy: LeaderPolicy) -> Wait | None:
    if not must_give_up(seen, policy):
        return None
    detail = (
        f"broker {seen.leader} leads, and somebody else is moving the partition: it is left to them until that ends"
    )
    return Wait(LeaderWaitReason.MOVED_BY_OTHERS, detail)
