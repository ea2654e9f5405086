"""PURE: a planner's model of a live cluster, made of what one look at the cluster and Drover's own state say."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.inventory import Inventory, LogDirectory, RegisteredBroker
from drover.planner.disks import DiskRemark, closed_by_disks
from drover.planner.model import Broker, ClusterModel, LogDir, Partition

Rates = Mapping[TopicPartition, float]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Inputs of a model that the cluster itself cannot tell.

    `excluded` are brokers that shall get nothing, `own_topics` Drover's own topics, which count as internal. `moving`
    is what Drover's log says: partitions that it moves, or will move, and that a new plan must leave alone. So is
    `held`: brokers that something else works on. `dead` brokers count as such whatever the cluster shows.
    `destinations` are brokers that are to have a replica of a partition that moves or will move, so that what they
    still have to copy is not planned for twice; `targets` are the lists at which Drover's moves end. `rates` are what
    is appended, in bytes per second. `demoted` are brokers that should not lead, by topic; those that should lead
    nothing are in `demoted_everywhere`. `emptied` and `filled` are the brokers that open plans empty and fill, with the
    plan's name and author.
    """

    excluded: Collection[int] = frozenset()
    held: Collection[int] = frozenset()
    dead: Collection[int] = frozenset()
    own_topics: Collection[str] = frozenset()
    moving: Collection[TopicPartition] = frozenset()
    destinations: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)
    targets: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    rates: Rates | None = None
    demoted: Mapping[str, Collection[int]] = field(default_factory=dict)
    demoted_everywhere: Collection[int] = frozenset()
    emptied: Mapping[int, str] = field(default_factory=dict)
    filled: Mapping[int, str] = field(default_factory=dict)


def rates_between(earlier: Inventory, later: Inventory) -> dict[TopicPartition, float]:
    """Return the bytes per second that were appended between two looks, by what the leaders' disks hold.

    A partition that has lost segments meanwhile counts as one that nothing was written to; one without a leader, or
    that is not in both, is left out.
    """
    elapsed_s = (later.seen_ms - earlier.seen_ms) / 1000
    assert elapsed_s > 0, "the second look comes later"
    rates: dict[TopicPartition, float] = {}
    for partition, facts in later.partitions.items():
        before = _leaders_bytes(earlier, partition, facts.leader)
        after = _leaders_bytes(later, partition, facts.leader)
        if before is not None and after is not None:
            rates[partition] = max(0, after - before) / elapsed_s
    return rates


def hidden_topics(inventory: Inventory) -> tuple[str, ...]:
    """Name the topics that lie on disks and were not shown: their user may not describe them, or they are just gone."""
    shown = {partition.topic for partition in inventory.partitions}
    return tuple(sorted({partition.topic for partition in inventory.replica_bytes} - shown))


def model_of(inventory: Inventory, knowledge: Knowledge) -> ClusterModel:
    """Make the model.

    The size of a copy is that of the leader's, or of the largest where the leader's is unknown. A broker with a log
    directory that has failed is failing.
    """
    arriving, replicas = _arriving(inventory, knowledge)
    topics = _demoted_topics(knowledge)
    unregistered = inventory.standings.unregistered(inventory.brokers)
    return ClusterModel.of(
        (
            replace(
                _broker(found, knowledge, topics.get(found.broker, ())),
                arriving_bytes=arriving[found.broker],
                arriving_replicas=replicas[found.broker],
                unregistered=found.broker in unregistered,
            )
            for found in inventory.brokers.values()
        ),
        (_partition(key, facts, inventory, knowledge) for key, facts in inventory.partitions.items()),
        inventory.kafka_cluster_id,
    )


def _demoted_topics(knowledge: Knowledge) -> dict[int, tuple[str, ...]]:
    """Return by broker the topics that it should not lead."""
    found: dict[int, list[str]] = {}
    for topic in sorted(knowledge.demoted):
        for broker in knowledge.demoted[topic]:
            found.setdefault(broker, []).append(topic)
    return {broker: tuple(topics) for broker, topics in found.items()}


def _broker(found: RegisteredBroker, knowledge: Knowledge, demoted: tuple[str, ...]) -> Broker:
    directories = found.directories or ()
    return Broker(
        id=found.broker,
        rack=found.rack,
        alive=(found.is_alive or found.is_unreachable) and found.broker not in knowledge.dead,
        excluded=found.broker in knowledge.excluded,
        held=found.broker in knowledge.held,
        failing=any(directory.code for directory in directories),
        log_dirs=tuple(_directory(directory) for directory in directories),
        demoted=found.broker in knowledge.demoted_everywhere,
        demoted_topics=demoted,
        unreachable=found.is_unreachable,
        emptied_by=knowledge.emptied.get(found.broker),
        filled_by=knowledge.filled.get(found.broker),
    )


def closed_by_directories(broker: int, directories: Iterable[LogDirectory]) -> tuple[DiskRemark, ...]:
    """Return why the log directories of a broker keep plans from giving it replicas; nothing if they do not."""
    return tuple(closed_by_disks(Broker(broker, log_dirs=tuple(map(_directory, directories)))))


def _directory(found: LogDirectory) -> LogDir:
    return LogDir(found.path, found.total_bytes, found.usable_bytes, found.is_cordoned, found.code)


def _arriving(inventory: Inventory, knowledge: Knowledge) -> tuple[Counter[int], Counter[int]]:
    """Sum up by broker what moves, now or later, have still to copy to it: bytes, and replicas not in its list yet."""
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
        write_bytes_per_s=None if knowledge.rates is None else knowledge.rates.get(key),
        internal=key.topic in inventory.internal_topics or key.topic in knowledge.own_topics,
        moving=facts.move is not None or key in knowledge.moving,
        topic_id=facts.topic_id,
        leader_unreachable=facts.leader_lacks_listener,
        target=_target(key, facts, knowledge),
        adding=() if facts.move is None else facts.move.adding,
        removing=() if facts.move is None else facts.move.removing,
    )


def _target(key: TopicPartition, facts: PartitionFacts, knowledge: Knowledge) -> tuple[int, ...] | None:
    """Return where a partition goes in the end: by Drover's log, or else by what Kafka shows."""
    target = knowledge.targets.get(key)
    return target if target is not None or facts.move is None else facts.move.target


def _size(key: TopicPartition, facts: PartitionFacts, inventory: Inventory) -> int | None:
    leaders = _leaders_bytes(inventory, key, facts.leader)
    return leaders if leaders is not None else max(inventory.replica_bytes.get(key, {}).values(), default=None)


def _leaders_bytes(inventory: Inventory, partition: TopicPartition, leader: int | None) -> int | None:
    return None if leader is None else inventory.replica_bytes.get(partition, {}).get(leader)
