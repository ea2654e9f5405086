"""PURE: a planner's model of a live cluster, made from one observation of it and Drover's own state."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.inventory import Inventory, LogDirectory, Positions, RegisteredBroker
from drover.planner.disks import DiskRemark, closed_by_disks
from drover.planner.model import Broker, ClusterModel, LogDir, Partition

Rates = Mapping[TopicPartition, float]


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a cluster, of which two give rates: its inventory, and how far producers and consumers have come."""

    inventory: Inventory
    positions: Positions


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Bytes per second by partition: what producers write, and what the members of groups read.

    `unread` says in sentences why nothing is known of what is read.
    """

    written: Rates
    read: Rates
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Inputs of a model that the cluster itself does not show.

    `excluded` are brokers that must receive no replicas, `own_topics` Drover's own topics, which count as internal.
    `moving` are the partitions that Drover is moving or will move by its log; a new plan leaves them alone, as it does
    the brokers that are `held`. `dead` brokers count as dead whatever the cluster shows. `destinations` are the brokers
    that are to get a replica of a moving partition, so that the bytes still to be copied are planned for only once;
    `targets` are the lists at which Drover's moves end. `rates` are what is written and read per second. `demoted` are
    brokers that should not lead, by topic; brokers that should lead nothing are in `demoted_everywhere`. `emptied` and
    `filled` are the brokers that open plans empty and fill, with the plan's name and author.
    """

    excluded: Collection[int] = frozenset()
    held: Collection[int] = frozenset()
    dead: Collection[int] = frozenset()
    own_topics: Collection[str] = frozenset()
    moving: Collection[TopicPartition] = frozenset()
    destinations: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)
    targets: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    rates: MeasuredRates | None = None
    demoted: Mapping[str, Collection[int]] = field(default_factory=dict)
    demoted_everywhere: Collection[int] = frozenset()
    emptied: Mapping[int, str] = field(default_factory=dict)
    filled: Mapping[int, str] = field(default_factory=dict)


def rates_between(earlier: Look, later: Look) -> MeasuredRates:
    """Return what is written to each partition and read from it between two looks.

    What is written is by the growth of the leader's log; where segments were deleted meanwhile, by the new offsets, at
    the mean bytes of an offset. What is read is by the offsets that groups have committed, at the bytes of those that
    were written meanwhile, or else at that mean: consumers that commit nothing are not seen. A partition without a
    leader, or missing from one of the looks, is left out.
    """
    assert later.inventory.seen_ms > earlier.inventory.seen_ms, "the second look is later"
    unread = tuple(dict.fromkeys((*earlier.positions.unread, *later.positions.unread)))
    written: dict[TopicPartition, float] = {}
    read: dict[TopicPartition, float] = {}
    for partition in later.inventory.partitions:
        rate = _written(partition, earlier, later)
        if rate is not None:
            written[partition] = rate
        if not unread and (rate := _read(partition, earlier, later)) is not None:
            read[partition] = rate
    return MeasuredRates(written, read, unread)


def _written(partition: TopicPartition, earlier: Look, later: Look) -> float | None:
    grown, offsets = _grown(partition, earlier, later), _offsets_written(partition, earlier, later)
    if grown is None:
        return None
    if earlier.positions.begins.get(partition) == later.positions.begins.get(partition) or offsets is None:
        return max(0, grown) / _elapsed_s(earlier.inventory.seen_ms, later.inventory.seen_ms)
    return offsets * (_mean_bytes(partition, later) or 0.0) / _elapsed_positions_s(earlier, later)


def _read(partition: TopicPartition, earlier: Look, later: Look) -> float | None:
    """Return what groups read; None if they have read something whose size nobody knows."""
    before, after = earlier.positions.committed, later.positions.committed
    offsets = sum(
        max(0, committed[partition] - before[group][partition])
        for group, committed in after.items()
        if partition in committed and partition in before.get(group, {})
    )
    if not offsets:
        return 0.0
    grown, new = _grown(partition, earlier, later), _offsets_written(partition, earlier, later)
    is_whole = earlier.positions.begins.get(partition) == later.positions.begins.get(partition)
    each = grown / new if grown and grown > 0 and new and is_whole else _mean_bytes(partition, later)
    return None if each is None else offsets * each / _elapsed_positions_s(earlier, later)


def _grown(partition: TopicPartition, earlier: Look, later: Look) -> int | None:
    leader = later.inventory.partitions[partition].leader
    before = _leaders_bytes(earlier.inventory, partition, leader)
    after = _leaders_bytes(later.inventory, partition, leader)
    return None if before is None or after is None else after - before


def _offsets_written(partition: TopicPartition, earlier: Look, later: Look) -> int | None:
    before, after = earlier.positions.ends.get(partition), later.positions.ends.get(partition)
    return None if before is None or after is None else max(0, after - before)


def _mean_bytes(partition: TopicPartition, look: Look) -> float | None:
    """Return the mean bytes of an offset on the leader's disks; None if there is none."""
    begin, end = look.positions.begins.get(partition), look.positions.ends.get(partition)
    size = _leaders_bytes(look.inventory, partition, look.inventory.partitions[partition].leader)
    return size / (end - begin) if size is not None and begin is not None and end is not None and end > begin else None


def _elapsed_positions_s(earlier: Look, later: Look) -> float:
    return _elapsed_s(earlier.positions.seen_ms, later.positions.seen_ms)


def _elapsed_s(began_ms: int, ended_ms: int) -> float:
    return max(1, ended_ms - began_ms) / 1000


def hidden_topics(inventory: Inventory) -> tuple[str, ...]:
    """Name the topics that have replicas on disk but were not described: without the ACL for it, or just deleted."""
    shown = {partition.topic for partition in inventory.partitions}
    return tuple(sorted({partition.topic for partition in inventory.replica_bytes} - shown))


def model_of(inventory: Inventory, knowledge: Knowledge) -> ClusterModel:
    """Return the planner's model of a cluster.

    A partition is as large as its leader's replica, or as its largest one where the leader's size is unknown. A broker
    with a failed log directory is failing.
    """
    arriving, replicas = _arriving(inventory, knowledge)
    topics = _demoted_topics(knowledge)
    unregistered = inventory.standings.unregistered(inventory.brokers)
    return ClusterModel.of(
        (
            replace(
                _broker(registered, knowledge, topics.get(registered.broker, ())),
                arriving_bytes=arriving[registered.broker],
                arriving_replicas=replicas[registered.broker],
                unregistered=registered.broker in unregistered,
            )
            for registered in inventory.brokers.values()
        ),
        (_partition(key, facts, inventory, knowledge) for key, facts in inventory.partitions.items()),
        inventory.kafka_cluster_id,
    )


def _demoted_topics(knowledge: Knowledge) -> dict[int, tuple[str, ...]]:
    """Return by broker the topics that it should not lead."""
    demoted: dict[int, list[str]] = {}
    for topic in sorted(knowledge.demoted):
        for broker in knowledge.demoted[topic]:
            demoted.setdefault(broker, []).append(topic)
    return {broker: tuple(topics) for broker, topics in demoted.items()}


def _broker(registered: RegisteredBroker, knowledge: Knowledge, demoted: tuple[str, ...]) -> Broker:
    directories = registered.directories or ()
    return Broker(
        id=registered.broker,
        rack=registered.rack,
        alive=(registered.is_alive or registered.is_unreachable) and registered.broker not in knowledge.dead,
        excluded=registered.broker in knowledge.excluded,
        held=registered.broker in knowledge.held,
        failing=any(directory.code for directory in directories),
        log_dirs=tuple(_directory(directory) for directory in directories),
        demoted=registered.broker in knowledge.demoted_everywhere,
        demoted_topics=demoted,
        unreachable=registered.is_unreachable,
        emptied_by=knowledge.emptied.get(registered.broker),
        filled_by=knowledge.filled.get(registered.broker),
    )


def closed_by_directories(broker: int, directories: Iterable[LogDirectory]) -> tuple[DiskRemark, ...]:
    """Return why the log directories of a broker keep plans from giving it replicas; nothing if they do not."""
    return tuple(closed_by_disks(Broker(broker, log_dirs=tuple(map(_directory, directories)))))


def _directory(directory: LogDirectory) -> LogDir:
    return LogDir(directory.path, directory.total_bytes, directory.usable_bytes, directory.is_cordoned, directory.code)


def _arriving(inventory: Inventory, knowledge: Knowledge) -> tuple[Counter[int], Counter[int]]:
    """Sum up by broker the bytes that moves, also future ones, have still to copy to it, and its new replicas."""
    arriving: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for key, facts in inventory.partitions.items():
        ahead = knowledge.destinations.get(key, ())
        if facts.move is None and not ahead:
            continue
        adding, target = ((), ()) if facts.move is None else (facts.move.adding, facts.move.target)
        size, held = _size(key, facts, inventory) or 0, inventory.replica_bytes.get(key, {})
        for broker in {*ahead, *target}:
            if broker in adding or broker not in facts.replicas:
                arriving[broker] += max(0, size - held.get(broker, 0))
                replicas[broker] += broker not in facts.replicas
    return arriving, replicas


def _partition(key: TopicPartition, facts: PartitionFacts, inventory: Inventory, knowledge: Knowledge) -> Partition:
    return Partition(
        topic=key.topic,
        partition=key.partition,
        replicas=facts.replicas,
        leader=facts.leader,
        isr=facts.isr,
        size_bytes=_size(key, facts, inventory),
        write_bytes_per_s=None if knowledge.rates is None else knowledge.rates.written.get(key),
        read_bytes_per_s=None if knowledge.rates is None else knowledge.rates.read.get(key),
        internal=key.topic in inventory.internal_topics or key.topic in knowledge.own_topics,
        moving=facts.move is not None or key in knowledge.moving,
        topic_id=facts.topic_id,
        leader_unreachable=facts.leader_lacks_listener,
        target=_target(key, facts, knowledge),
        adding=() if facts.move is None else facts.move.adding,
        removing=() if facts.move is None else facts.move.removing,
    )


def _target(key: TopicPartition, facts: PartitionFacts, knowledge: Knowledge) -> tuple[int, ...] | None:
    """Return the list at which a partition's move ends: by Drover's log, or else by Kafka's own listing."""
    target = knowledge.targets.get(key)
    return target if target is not None or facts.move is None else facts.move.target


def _size(key: TopicPartition, facts: PartitionFacts, inventory: Inventory) -> int | None:
    leaders = _leaders_bytes(inventory, key, facts.leader)
    return leaders if leaders is not None else max(inventory.replica_bytes.get(key, {}).values(), default=None)


def _leaders_bytes(inventory: Inventory, partition: TopicPartition, leader: int | None) -> int | None:
    return None if leader is None else inventory.replica_bytes.get(partition, {}).get(leader)
