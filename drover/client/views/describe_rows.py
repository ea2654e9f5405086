"""PURE: the rows of `describe`: a cluster by broker, by rack, by topic, by partition, and in total."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from drover.planner.model import Broker, ClusterModel, Partition, volumes_of
from drover.planner.racks import Racks


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a listing."""

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DirectoryRow(Row):
    """A log directory; `volume` is the number of its volume on the broker, None if the directory has failed.

    `code` is Kafka's error code for it, or 0.
    """

    path: str
    total_bytes: int | None
    free_bytes: int | None
    is_cordoned: bool
    code: int
    volume: int | None


@dataclass(frozen=True, slots=True)
class BrokerRow(Row):
    """A broker, its replicas and its disks.

    `leaders` counts the partitions that it leads, `preferred` those of which it is the preferred leader. `bytes` is the
    total size of its replicas. None means unknown; `write_bytes_per_s`, what is written to its replicas, and
    `read_bytes_per_s`, what consumers read from what it leads, are None unless they were measured.
    """

    broker: int
    rack: str | None
    state: str
    replicas: int
    leaders: int
    preferred: int
    out_of_sync: int
    bytes: int
    disk_total_bytes: int | None
    disk_free_bytes: int | None
    write_bytes_per_s: float | None
    log_directories: tuple[DirectoryRow, ...] = ()
    read_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class RackRow(Row):
    """A rack, its brokers and the totals of their replicas; `rack` is None for brokers without a rack."""

    rack: str | None
    brokers: tuple[int, ...]
    alive: int
    replicas: int
    leaders: int
    preferred: int
    bytes: int
    disk_free_bytes: int | None


@dataclass(frozen=True, slots=True)
class TopicRow(Row):
    """A topic; `bytes` is the total of all replicas, `replication_factors` are those of its partitions."""

    topic: str
    partitions: int
    replication_factors: tuple[int, ...]
    bytes: int
    offline: int
    under_replicated: int
    moving: int
    not_spread: int
    led_elsewhere: int
    internal: bool
    write_bytes_per_s: float | None
    read_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class PartitionRow(Row):
    """A partition; `notes` are its problems.

    `target` is the list to which it moves or will move, None if it stays; `adding` and `removing` are the brokers that
    Kafka is adding and removing now.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    racks: tuple[str | None, ...]
    size_bytes: int | None
    write_bytes_per_s: float | None
    notes: tuple[str, ...]
    target: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    read_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Totals(Row):
    """The totals of a cluster; `bytes` is that of all replicas, `unknown_sizes` counts partitions of unknown size.

    `unreachable` brokers are alive without the listener through which the cluster was read; `led_unseen` counts the
    partitions that they lead.
    """

    brokers: int
    dead: tuple[int, ...]
    unreachable: tuple[int, ...]
    racks: int
    topics: int
    partitions: int
    replicas: int
    bytes: int
    offline: int
    led_unseen: int
    under_replicated: int
    moving: int
    not_spread: int
    led_elsewhere: int
    unknown_sizes: int


def broker_rows(model: ClusterModel) -> list[BrokerRow]:
    """Return every broker, including those that appear only in replica lists."""
    loads = _Loads(model.partitions)
    named = sorted(model.broker_by_id.keys() | loads.replicas.keys())
    return [_broker_row(model.broker_by_id.get(broker, Broker(broker, alive=False)), loads) for broker in named]


def rack_rows(model: ClusterModel) -> list[RackRow]:
    """Return every rack; brokers without a rack come last."""
    members: defaultdict[str | None, list[BrokerRow]] = defaultdict(list)
    for row in broker_rows(model):
        members[row.rack].append(row)
    return [_rack_row(rack, members[rack]) for rack in sorted(members, key=lambda rack: (rack is None, rack or ""))]


def topic_rows(model: ClusterModel, partitions: Iterable[Partition]) -> list[TopicRow]:
    """Return a row for each topic of these partitions."""
    racks = Racks(model.brokers)
    members: defaultdict[str, list[Partition]] = defaultdict(list)
    for partition in partitions:
        members[partition.topic].append(partition)
    return [_topic_row(topic, members[topic], racks, model.within(topic)) for topic in sorted(members)]


def partition_rows(model: ClusterModel, partitions: Iterable[Partition]) -> list[PartitionRow]:
    """Return a row for each of these partitions."""
    racks = Racks(model.brokers)
    return [_partition_row(partition, model, racks) for partition in partitions]


def totals_of(model: ClusterModel) -> Totals:
    """Return the totals of the cluster, internal topics included."""
    racks = Racks(model.brokers)
    partitions = model.partitions
    return Totals(
        brokers=len(model.brokers),
        dead=tuple(broker.id for broker in model.brokers if not broker.alive),
        unreachable=tuple(broker.id for broker in model.brokers if broker.unreachable),
        racks=len({broker.rack for broker in model.brokers} - {None}),
        topics=len({partition.topic for partition in partitions}),
        partitions=len(partitions),
        replicas=sum(len(partition.replicas) for partition in partitions),
        bytes=_bytes(partitions),
        offline=sum(map(_is_offline, partitions)),
        led_unseen=sum(partition.leader_unreachable for partition in partitions),
        under_replicated=sum(map(_is_under_replicated, partitions)),
        moving=sum(partition.moving for partition in partitions),
        not_spread=sum(racks.excess(partition.replicas, model.within(partition.topic)) > 0 for partition in partitions),
        led_elsewhere=sum(map(_is_led_elsewhere, partitions)),
        unknown_sizes=sum(partition.size_bytes is None for partition in partitions),
    )


class _Loads:
    """Totals of partitions by broker."""

    def __init__(self, partitions: Iterable[Partition]) -> None:
        self.replicas: Counter[int] = Counter()
        self.leaders: Counter[int] = Counter()
        self.preferred: Counter[int] = Counter()
        self.out_of_sync: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        self.written: defaultdict[int, float] = defaultdict(float)
        self.read: defaultdict[int, float] = defaultdict(float)
        self.knows_written = self.knows_read = False
        for partition in partitions:
            self._add(partition)

    def _add(self, partition: Partition) -> None:
        self.replicas.update(partition.replicas)
        self.preferred[partition.replicas[0]] += 1
        if partition.leader is not None:
            self.leaders[partition.leader] += 1
            self.read[partition.leader] += partition.read_bytes_per_s or 0.0
        self.knows_read |= partition.read_bytes_per_s is not None
        for broker in partition.replicas:
            self.bytes[broker] += partition.size_bytes or 0
            self.out_of_sync[broker] += broker not in partition.isr
            if partition.write_bytes_per_s is not None:
                self.knows_written = True
                self.written[broker] += partition.write_bytes_per_s


def _broker_row(broker: Broker, loads: _Loads) -> BrokerRow:
    return BrokerRow(
        broker=broker.id,
        rack=broker.rack,
        state=_state(broker),
        replicas=loads.replicas[broker.id],
        leaders=loads.leaders[broker.id],
        preferred=loads.preferred[broker.id],
        out_of_sync=loads.out_of_sync[broker.id],
        bytes=loads.bytes[broker.id],
        disk_total_bytes=broker.total_bytes,
        disk_free_bytes=broker.free_bytes,
        write_bytes_per_s=loads.written[broker.id] if loads.knows_written else None,
        log_directories=_directory_rows(broker),
        read_bytes_per_s=loads.read[broker.id] if loads.knows_read else None,
    )


def _directory_rows(broker: Broker) -> tuple[DirectoryRow, ...]:
    volumes = enumerate(volumes_of(broker.working_directories), start=1)
    numbers = {path: number for number, volume in volumes for path in volume.paths}
    return tuple(
        DirectoryRow(
            path=directory.path,
            total_bytes=directory.total_bytes,
            free_bytes=directory.free_bytes,
            is_cordoned=directory.cordoned,
            code=directory.code,
            volume=numbers.get(directory.path),
        )
        for directory in broker.log_dirs
    )


def _state(broker: Broker) -> str:
    if not broker.alive:
        return "dead"
    if broker.unreachable:
        return "unreachable"
    words = [
        word
        for word, holds in (
            ("failing", broker.failing),
            ("cordoned", broker.is_cordoned),
            ("excluded", broker.excluded),
            ("held", broker.held),
            ("being emptied", broker.emptied_by is not None),
            ("being filled", broker.filled_by is not None),
        )
        if holds
    ]
    return ", ".join(words) or "alive"


def _rack_row(rack: str | None, rows: Sequence[BrokerRow]) -> RackRow:
    free = [row.disk_free_bytes for row in rows if row.state not in {"dead", "unreachable"}]
    amounts = [amount for amount in free if amount is not None]
    return RackRow(
        rack=rack,
        brokers=tuple(row.broker for row in rows),
        alive=sum(row.state != "dead" for row in rows),
        replicas=sum(row.replicas for row in rows),
        leaders=sum(row.leaders for row in rows),
        preferred=sum(row.preferred for row in rows),
        bytes=sum(row.bytes for row in rows),
        disk_free_bytes=sum(amounts) if amounts and len(amounts) == len(free) else None,
    )


def _topic_row(topic: str, partitions: Sequence[Partition], racks: Racks, within: frozenset[int] | None) -> TopicRow:
    rates = [partition.write_bytes_per_s for partition in partitions if partition.write_bytes_per_s is not None]
    reads = [partition.read_bytes_per_s for partition in partitions if partition.read_bytes_per_s is not None]
    return TopicRow(
        topic=topic,
        partitions=len(partitions),
        replication_factors=tuple(sorted({len(partition.replicas) for partition in partitions})),
        bytes=_bytes(partitions),
        offline=sum(map(_is_offline, partitions)),
        under_replicated=sum(map(_is_under_replicated, partitions)),
        moving=sum(partition.moving for partition in partitions),
        not_spread=sum(racks.excess(partition.replicas, within) > 0 for partition in partitions),
        led_elsewhere=sum(map(_is_led_elsewhere, partitions)),
        internal=partitions[0].internal,
        write_bytes_per_s=sum(rates) if rates else None,
        read_bytes_per_s=sum(reads) if reads else None,
    )


def _partition_row(partition: Partition, model: ClusterModel, racks: Racks) -> PartitionRow:
    brokers = model.broker_by_id
    notes = [
        note
        for note, holds in (
            ("no leader", _is_offline(partition)),
            ("led by an unreachable broker", partition.leader_unreachable),
            ("moving", partition.moving),
            ("under-replicated", _is_under_replicated(partition)),
            ("in fewer racks than possible", racks.excess(partition.replicas, model.within(partition.topic)) > 0),
            ("not led by its preferred leader", _is_led_elsewhere(partition)),
        )
        if holds
    ]
    return PartitionRow(
        topic=partition.topic,
        partition=partition.partition,
        replicas=partition.replicas,
        leader=partition.leader,
        isr=partition.isr,
        racks=tuple(brokers[broker].rack if broker in brokers else None for broker in partition.replicas),
        size_bytes=partition.size_bytes,
        write_bytes_per_s=partition.write_bytes_per_s,
        notes=tuple(notes),
        target=partition.target,
        adding=partition.adding,
        removing=partition.removing,
        read_bytes_per_s=partition.read_bytes_per_s,
    )


def _bytes(partitions: Iterable[Partition]) -> int:
    return sum((partition.size_bytes or 0) * len(partition.replicas) for partition in partitions)


def _is_offline(partition: Partition) -> bool:
    return partition.leader is None and not partition.leader_unreachable


def _is_under_replicated(partition: Partition) -> bool:
    return not set(partition.isr).issuperset(partition.replicas)


def _is_led_elsewhere(partition: Partition) -> bool:
    return partition.leader is not None and partition.leader != partition.replicas[0]
