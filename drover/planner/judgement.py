"""What people should know of new replica lists before they say yes, whoever chose the lists; a sentence for each."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import BrokerFigures, Move, Unmet, UnmetCode
from drover.unreachable import unreachable_in_words

# Worth a sentence, and no reason to refuse: the plan does what it says.
REMARKS = frozenset({UnmetCode.REPLICATION_FACTOR, UnmetCode.ONE_RACK, UnmetCode.LEFT_OUT})


def broken(unmet: Collection[Unmet]) -> list[Unmet]:
    """Return what a plan breaks, without what is only remarked."""
    return [one for one in unmet if one.code not in REMARKS]


def emptied(brokers: Collection[BrokerFigures]) -> frozenset[int]:
    """Return the brokers that have replicas, and none once a plan is done: it drains them, whoever made it."""
    return frozenset(each.broker for each in brokers if each.replicas_before and not each.replicas_after)


def situation(model: ClusterModel, moves: Sequence[Move]) -> Iterator[Unmet]:
    """Name the moves that cannot end as the cluster is now, or that end with a replica that is dead.

    The planner leaves alone what moves or has no leader; a plan that somebody else made may not. Of a partition without
    a leader nothing more is said: nothing of it can be copied.
    """
    partitions = model.partition_by_name
    for move in moves:
        partition = partitions[move.topic, move.partition]
        if partition.leader is None:
            yield _without_leader(model, move, partition)
            continue
        if partition.moving and move.after != partition.target:
            yield _moving(move, partition)
        yield from _keeping_dead(move, model)
        if _is_out_of_sync(move, partition):
            yield _out_of_sync(move, partition)


def changed_factors(model: ClusterModel, moves: Sequence[Move]) -> Iterator[Unmet]:
    """Count the partitions whose replication factor changes, by both factors.

    Those that move are left out: what Kafka lists of them includes the replicas that it adds.
    """
    partitions = model.partition_by_name
    settled = (move for move in moves if not partitions[move.topic, move.partition].moving)
    changes = Counter((len(move.before), len(move.after)) for move in settled if len(move.before) != len(move.after))
    if changes:
        counts = ", ".join(
            f"{_partitions(count)} from {before} to {after}" for (before, after), count in sorted(changes.items())
        )
        yield Unmet(UnmetCode.REPLICATION_FACTOR, f"the replication factor changes: {counts}")


def crowded_racks(model: ClusterModel, moves: Sequence[Move]) -> Iterator[Unmet]:
    """Count by rack the partitions that have several racks now, and only this one afterwards."""
    racks = {broker.id: broker.rack for broker in model.brokers if broker.rack is not None}
    crowded: Counter[str] = Counter()
    for move in moves:
        before, after = ({racks.get(broker, broker) for broker in each} for each in (move.before, move.after))
        if len(move.after) > 1 and len(after) == 1 < len(before):
            crowded[str(next(iter(after)))] += 1
    for rack, count in sorted(crowded.items()):
        text = (
            f"{_partitions(count)} of the {len(moves):,} to change will have every replica in rack {rack}: they go "
            "offline with that rack"
        )
        yield Unmet(UnmetCode.ONE_RACK, text)


def unreachable(brokers: Collection[Broker]) -> Iterator[Unmet]:
    """Name the brokers that no plan gives or takes anything, since they are unreachable."""
    for broker in brokers:
        if broker.unreachable:
            text = f"{unreachable_in_words((broker.id,))}. Nothing is planned to it or from it"
            yield Unmet(UnmetCode.LEFT_OUT, text, broker=broker.id)


def left_out(brokers: Collection[Broker], leaving: Collection[int]) -> Iterator[Unmet]:
    """Name the brokers that get nothing: unreachable ones, and those that an open plan empties or fills."""
    yield from unreachable(brokers)
    for broker in brokers:
        if broker.alive and broker.is_reserved and broker.id not in leaving:
            yield Unmet(UnmetCode.LEFT_OUT, f"broker {broker.id} gets nothing: {reservation(broker)}", broker=broker.id)


def arriving(brokers: Collection[Broker], leaving: Collection[int]) -> Iterator[Unmet]:
    """Name the brokers to be emptied to which moves that a proposal leaves alone bring further replicas."""
    for broker in brokers:
        if broker.id in leaving and broker.arriving_replicas:
            count = f"{broker.arriving_replicas:,} replica{'s' * (broker.arriving_replicas > 1)}"
            text = f"{count} will still come to broker {broker.id} by moves under way or waiting: plan again after them"
            yield Unmet(UnmetCode.MOVING, text, broker=broker.id)


def reservation(broker: Broker) -> str:
    """Say which open plan empties or fills a broker."""
    if broker.emptied_by is not None:
        return f"{broker.emptied_by} empties it"
    return f"{broker.filled_by} fills it"


def _without_leader(model: ClusterModel, move: Move, partition: Partition) -> Unmet:
    waits = " or ".join(map(str, partition.isr or partition.replicas))
    text = f"{_name(move)} has no leader, so nothing can be copied: bring broker {waits} back first"
    if partition.leader_unreachable:
        hidden = [broker.id for broker in model.brokers if broker.unreachable and broker.id in partition.replicas]
        text = f"{_name(move)} is led by a broker that cannot be asked: {unreachable_in_words(hidden)}"
    return Unmet(UnmetCode.OFFLINE, text, move.topic, move.partition)


def _moving(move: Move, partition: Partition) -> Unmet:
    where = "" if partition.target is None else f" to {list(partition.target)}"
    text = f"{_name(move)} is being moved{where} already: wait for the end of that move, or cancel it"
    return Unmet(UnmetCode.MOVING, text, move.topic, move.partition)


def _keeping_dead(move: Move, model: ClusterModel) -> Iterator[Unmet]:
    brokers = model.broker_by_id
    for number in move.after:
        broker = brokers.get(number)
        if number in move.before and (broker is None or not broker.alive):
            text = f"{_name(move)} keeps a replica on broker {number}, which is not alive: give it another broker"
            yield Unmet(UnmetCode.DEAD_BROKER, text, move.topic, move.partition, number)


def _is_out_of_sync(move: Move, partition: Partition) -> bool:
    """Whether the list keeps replicas, none of which is in sync, and drops all that are."""
    kept = set(move.after) & set(move.before)
    return bool(kept) and bool(partition.isr) and kept.isdisjoint(partition.isr)


def _out_of_sync(move: Move, partition: Partition) -> Unmet:
    kept = [broker for broker in move.after if broker in move.before]
    in_sync = ", ".join(map(str, partition.isr))
    text = (
        f"{_name(move)} gives up every replica in sync (broker {in_sync}), and what {list(move.after)} keeps is out of "
        f"sync (broker {', '.join(map(str, kept))}): wait until that has caught up, or keep broker {partition.isr[0]}"
    )
    return Unmet(UnmetCode.OUT_OF_SYNC, text, move.topic, move.partition)


def _name(move: Move) -> str:
    return f"{move.topic}:{move.partition}"


def _partitions(count: int) -> str:
    return f"{count:,} partition{'s' * (count != 1)}"
