"""How replicas out of sync restrict the starts of steps; pure. Times are of the log unless named otherwise."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from drover.events.adaptation import AllowanceReason, BrokerAllowanceChanged, StartsResumed, StartsSuspended
from drover.events.partitions import PartitionReference, TopicPartition
from drover.facts import PartitionFacts
from drover.state.adaptation import AdaptationState

# A broker's slots are halved at most once in the first time, and doubled again once the second passed without a cause.
LOWER_EVERY_MS, RECOVER_EVERY_MS = 10_000, 60_000
# A replica that is out of sync for a shorter time is no cause: its broker may restart, or a move may be ending.
LAGGING_FOR_MS = 10_000
MOST_HALVINGS = 3
# At most so many partitions are named in an event.
MOST_NAMED = 500


class Replica(NamedTuple):
    """One replica of a partition."""

    key: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True)
class Health:
    """The partitions with replicas out of sync when the cluster was last observed, and the moves that explain some.

    `moving` holds the brokers that are being added, by partition that is being moved. `lagging` are the replicas that
    have been out of sync for `LAGGING_FOR_MS` without an explanation. `busy` are the brokers that Drover copies into or
    out of. `min_isr` holds min.insync.replicas by topic, as far as they have been read. `listed` holds the brokers that
    are being added by Kafka's own list of moves: a step of Drover may be over before its end is recorded.
    """

    under_replicated: Mapping[TopicPartition, PartitionFacts]
    moving: Mapping[TopicPartition, Collection[int]]
    listed: Mapping[TopicPartition, Collection[int]]
    lagging: Collection[Replica]
    busy: Collection[int]
    min_isr: Mapping[str, int]


def unexplained(
    under_replicated: Mapping[TopicPartition, PartitionFacts],
    moving: Collection[TopicPartition],
    live: Collection[int],
) -> Iterator[Replica]:
    """Yield the replicas out of sync that no move explains and whose broker lives: a dead one is not overloaded.

    `live` are the brokers that live, those that are unreachable included.
    """
    for key, facts in under_replicated.items():
        if key not in moving:
            for broker in facts.replicas:
                if broker in live and broker not in facts.isr:
                    yield Replica(key, broker)


def below_min_isr(health: Health, named: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
    """List the partitions with fewer replicas in sync than min.insync.replicas, in order.

    A partition with fewer replicas than that, without those that a move is adding, needs no more than it has. Until a
    topic's min.insync.replicas has been read, its partitions that lack a replica count if they are `named` by the
    suspension, so that a new owner does not end a suspension before it has read the setting. For the same reason a
    replica of such a partition counts as being added only while Kafka lists its move.
    """
    lacking = health.under_replicated.items()
    return tuple(sorted(key for key, facts in lacking if _is_below(key, facts, health, is_named=key in named)))


def _is_below(key: TopicPartition, facts: PartitionFacts, health: Health, *, is_named: bool) -> bool:
    adding = (health.listed if is_named else health.moving).get(key, ())
    own = sum(broker not in adding for broker in facts.replicas)
    needed = health.min_isr.get(key.topic, own if is_named else 1)
    return len(facts.isr) < min(own, needed)


def causes(health: Health) -> dict[int, str]:
    """Name a lagging replica for each busy broker that hosts one, or leads a partition of one.

    The leader is included because the replica fetches from it.
    """
    by_broker: dict[int, str] = {}
    for key, broker in sorted(health.lagging):
        facts = health.under_replicated.get(key)
        if facts is None or key in health.moving:
            continue
        for concerned in (broker, facts.leader):
            if concerned is not None and concerned in health.busy:
                by_broker.setdefault(concerned, f"replica {broker} of {key} is not in sync, and no move explains it")
    return by_broker


def judge(
    state: AdaptationState, health: Health, last_cause_ms: Mapping[int, int], at_ms: int
) -> Iterator[BrokerAllowanceChanged | StartsSuspended | StartsResumed]:
    """Yield the changes: brokers that get fewer or more slots, and whether copies may begin.

    `last_cause_ms` holds when each lowered broker last had a cause, as far as this owner has seen.
    """
    yield from _suspension(state, below_min_isr(health, state.below_min_isr))
    by_broker = causes(health)
    for broker, detail in sorted(by_broker.items()):
        allowance = state.allowances.get(broker)
        halvings = 0 if allowance is None else allowance.halvings
        if halvings < MOST_HALVINGS and (allowance is None or not 0 <= at_ms - allowance.since_ms < LOWER_EVERY_MS):
            yield _changed(state, broker, halvings + 1, AllowanceReason.LOSING_REPLICAS, detail)
    for broker, allowance in sorted(state.allowances.items()):
        # A time in the future was recorded by a clock that ran ahead: it does not tell how long ago that was.
        since_ms = allowance.since_ms if allowance.since_ms <= at_ms else 0
        quiet_since_ms = max(since_ms, last_cause_ms.get(broker, since_ms))
        if broker not in by_broker and at_ms - quiet_since_ms >= RECOVER_EVERY_MS:
            detail = f"for {RECOVER_EVERY_MS // 1000} s no replica has lagged there that no move explains"
            yield _changed(state, broker, allowance.halvings - 1, AllowanceReason.RECOVERED, detail)


def switch_off(state: AdaptationState) -> Iterator[BrokerAllowanceChanged | StartsResumed]:
    """Yield the end of every restriction, once `adapts_to_health` is false."""
    for broker in sorted(state.allowances):
        yield _changed(state, broker, 0, AllowanceReason.SWITCHED_OFF, "adapts_to_health is false")
    if state.suspension is not None:
        yield StartsResumed(cluster=state.name)


def _suspension(state: AdaptationState, below: tuple[TopicPartition, ...]) -> Iterable[StartsSuspended | StartsResumed]:
    suspension, named = state.suspension, below[:MOST_NAMED]
    if not below:
        return () if suspension is None else (StartsResumed(cluster=state.name),)
    if suspension is not None and (suspension.count, suspension.partitions) == (len(below), named):
        return ()
    partitions = tuple(PartitionReference(key.topic, key.partition) for key in named)
    return (StartsSuspended(cluster=state.name, count=len(below), partitions=partitions),)


def _changed(
    state: AdaptationState, broker: int, halvings: int, why: AllowanceReason, detail: str
) -> BrokerAllowanceChanged:
    allowance = state.allowances.get(broker)
    return BrokerAllowanceChanged(
        cluster=state.name,
        broker=broker,
        halvings=halvings,
        previous_halvings=0 if allowance is None else allowance.halvings,
        why=why,
        detail=detail,
    )
