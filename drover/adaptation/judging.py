"""What partitions that lack replicas mean for moves; pure. Times are of the log."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from drover.adaptation.state import AdaptationState
from drover.facts import PartitionFacts
from events.adaptation import AllowanceReason, BrokerAllowanceChanged, StartsResumed, StartsSuspended
from events.partitions import PartitionReference, TopicPartition

# A broker's slots are halved at most once in this time, and doubled again at most once in that time without a cause.
LOWER_EVERY_MS, RECOVER_EVERY_MS = 10_000, 60_000
MOST_HALVINGS = 3
# So many partitions are named in an event.
MOST_NAMED = 500


@dataclass(frozen=True, slots=True)
class Health:
    """The partitions that lack replicas in sync, as one look showed them, and what explains that.

    `moving` are those that Kafka or Drover moves; `live` are the brokers that live: what is not in sync on a dead one
    is no matter of load. `busy` are the brokers that Drover copies into or out of. `min_isr` holds
    min.insync.replicas by topic; a topic that is missing has 1.
    """

    lacking: Mapping[TopicPartition, PartitionFacts]
    moving: Collection[TopicPartition]
    live: Collection[int]
    busy: Collection[int]
    min_isr: Mapping[str, int]


def below_min_isr(health: Health) -> tuple[TopicPartition, ...]:
    """List the partitions with fewer replicas in sync than min.insync.replicas, in order."""
    found = (key for key, facts in health.lacking.items() if len(facts.isr) < health.min_isr.get(key.topic, 1))
    return tuple(sorted(found))


def causes(health: Health) -> dict[int, str]:
    """Name, for each busy broker that has a part in it, a partition that lost a live replica though nothing moves it.

    The broker whose replica lags has a part in it, and the leader that it fetches from.
    """
    found: dict[int, str] = {}
    for key, facts in sorted(health.lacking.items()):
        if key in health.moving:
            continue
        for broker in facts.replicas:
            if broker in facts.isr or broker not in health.live:
                continue
            for part in (broker, facts.leader):
                if part is not None and part in health.busy:
                    found.setdefault(part, f"replica {broker} of {key} is not in sync, and no move explains it")
    return found


def judge(
    state: AdaptationState, health: Health, at_ms: int
) -> Iterator[BrokerAllowanceChanged | StartsSuspended | StartsResumed]:
    """Yield what changes: which brokers may do less or more, and whether copies begin."""
    yield from _suspension(state, below_min_isr(health))
    found = causes(health)
    for broker, detail in sorted(found.items()):
        known = state.allowances.get(broker)
        halvings = 0 if known is None else known.halvings
        if halvings < MOST_HALVINGS and (known is None or at_ms - known.since_ms >= LOWER_EVERY_MS):
            yield _changed(state, broker, halvings + 1, AllowanceReason.LOSING_REPLICAS, detail)
    for broker, known in sorted(state.allowances.items()):
        if broker not in found and at_ms - known.since_ms >= RECOVER_EVERY_MS:
            detail = f"for {RECOVER_EVERY_MS // 1000} s no partition there has lost a replica that no move explains"
            yield _changed(state, broker, known.halvings - 1, AllowanceReason.RECOVERED, detail)


def switch_off(state: AdaptationState) -> Iterator[BrokerAllowanceChanged | StartsResumed]:
    """Yield what ends when nothing is to be adapted any more."""
    for broker in sorted(state.allowances):
        yield _changed(state, broker, 0, AllowanceReason.SWITCHED_OFF, "adapts_to_health is false")
    if state.suspension is not None:
        yield StartsResumed(cluster=state.name)


def _suspension(state: AdaptationState, below: tuple[TopicPartition, ...]) -> Iterable[StartsSuspended | StartsResumed]:
    known, named = state.suspension, below[:MOST_NAMED]
    if not below:
        return () if known is None else (StartsResumed(cluster=state.name),)
    if known is not None and (known.count, known.partitions) == (len(below), named):
        return ()
    partitions = tuple(PartitionReference(key.topic, key.partition) for key in named)
    return (StartsSuspended(cluster=state.name, count=len(below), partitions=partitions),)


def _changed(
    state: AdaptationState, broker: int, halvings: int, why: AllowanceReason, detail: str
) -> BrokerAllowanceChanged:
    known = state.allowances.get(broker)
    return BrokerAllowanceChanged(
        cluster=state.name,
        broker=broker,
        halvings=halvings,
        previous_halvings=0 if known is None else known.halvings,
        why=why,
        detail=detail,
    )
