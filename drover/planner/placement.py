"""Placement: sets of brokers for topics, minimum numbers of leaders, and leaders in some racks only."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from drover.planner.model import BrokerSet, ClusterModel
from drover.planner.proposal import Move, Unmet, UnmetCode


@dataclass(frozen=True, slots=True)
class Placement:
    """What people ask of a cluster's lists; see `ClusterModel`.

    Brokers outside `leaders_in_racks` should not lead, as those that are demoted; without racks all may.
    """

    broker_sets: tuple[BrokerSet, ...] = ()
    min_leaders: tuple[tuple[str, int], ...] = ()
    leaders_in_racks: tuple[str, ...] = ()


def with_placement(model: ClusterModel, placement: Placement) -> ClusterModel:
    """Add to a model what people ask of it."""
    racks = placement.leaders_in_racks
    return replace(
        model,
        brokers=tuple(
            replace(each, demoted=each.demoted or (bool(racks) and each.rack not in racks)) for each in model.brokers
        ),
        broker_sets=placement.broker_sets,
        min_leaders=placement.min_leaders,
        leaders_in_racks=racks,
    )


def outside_of_sets(model: ClusterModel, moves: Sequence[Move]) -> Iterator[Unmet]:
    """Name the moves that bring a topic to a broker outside its set."""
    for move in moves:
        own = model.set_of(move.topic)
        for added in move.adding:
            if own is not None and added not in own.brokers:
                text = f"{move.topic}:{move.partition}: broker {added} is not in broker set {own.name}"
                yield Unmet(UnmetCode.BROKER_SET, text, move.topic, move.partition, added)


def leading_brokers(model: ClusterModel, topic: str, leaving: Collection[int]) -> tuple[int, ...]:
    """Return the brokers that should lead their minimum of a topic, without those that are `leaving`."""
    own = model.set_of(topic)
    return tuple(
        each.id
        for each in model.brokers
        if each.may_receive
        and each.id not in leaving
        and not each.demoted
        and topic not in each.demoted_topics
        and (own is None or each.id in own.brokers)
    )


def too_few_leaders(
    model: ClusterModel, moves: Sequence[Move], *, only_fewer: bool, leaving: Collection[int] = ()
) -> Iterator[Unmet]:
    """Name the brokers that lead too little of a topic once moves are done; with `only_fewer`, less than before.

    Nothing is asked of brokers that are `leaving`, or that the moves empty.
    """
    if not model.min_leaders:
        return
    targets = {(move.topic, move.partition): move.after for move in moves}
    before: dict[str, Counter[int]] = {}
    after: dict[str, Counter[int]] = {}
    holding: set[int] = set()
    for partition in model.partitions:
        for counts, replicas in (
            (before, partition.replicas),
            (after, targets.get(partition.name, partition.replicas)),
        ):
            counts.setdefault(partition.topic, Counter()).update(replicas[:1])
        holding.update(targets.get(partition.name, partition.replicas))
    leaving = {*leaving, *(broker for move in moves for broker in move.removing if broker not in holding)}
    for topic in sorted(after):
        least, brokers = model.min_leaders_of(topic), leading_brokers(model, topic, leaving)
        if least * len(brokers) > after[topic].total():
            if not only_fewer:
                count = after[topic].total()
                text = f"topic {topic} has {count:,} partitions, too few for {least} leaders on {len(brokers)} brokers"
                yield Unmet(UnmetCode.MIN_LEADERS, text, topic)
            continue
        for number in brokers:
            led = after[topic][number]
            if led < least and (not only_fewer or led < before[topic][number]):
                text = f"broker {number} would lead {led} of topic {topic}, and should lead {least}"
                yield Unmet(UnmetCode.MIN_LEADERS, text, topic, broker=number)
