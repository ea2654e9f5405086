"""A cluster as the planner sees it: brokers with racks and disks, partitions with ordered replicas and sizes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

FREE_TOLERANCE = 1 / 10_000


@dataclass(frozen=True, slots=True)
class LogDir:
    """One data directory of a broker. DescribeLogDirs gives the sizes from Kafka 3.3 on (KIP-827); None is unknown.

    Kafka places no new replicas by itself in a `cordoned` one (KIP-1066, Kafka 4.3). `code` is Kafka's error for the
    directory, 0 for one that works.
    """

    path: str
    total_bytes: int | None = None
    free_bytes: int | None = None
    cordoned: bool = False
    code: int = 0


@dataclass(frozen=True, slots=True)
class Volume:
    """One file system of a broker with the log directories on it, and its size and free bytes; None is unknown."""

    paths: tuple[str, ...]
    total_bytes: int | None
    free_bytes: int | None


def volumes_of(directories: Iterable[LogDir]) -> tuple[Volume, ...]:
    """Return the volumes of a broker's log directories.

    DescribeLogDirs does not name the volume: directories with the same total and free bytes are taken to be on one. The
    broker reads one directory after the other while it writes, so free bytes that differ by `FREE_TOLERANCE` of the
    volume at most are the same. The free bytes of a volume are the fewest that were read of it.
    """
    volumes: list[Volume] = []
    for directory in sorted(directories, key=_by_size):
        last = volumes[-1] if volumes else None
        if last is not None and _is_on(directory, last):
            volumes[-1] = replace(last, paths=(*last.paths, directory.path))
        else:
            volumes.append(Volume((directory.path,), directory.total_bytes, directory.free_bytes))
    return tuple(volumes)


def _by_size(directory: LogDir) -> tuple[int, int, str]:
    total, free = directory.total_bytes, directory.free_bytes
    return (-1 if total is None else total, -1 if free is None else free, directory.path)


def _is_on(directory: LogDir, volume: Volume) -> bool:
    total, free = directory.total_bytes, directory.free_bytes
    if total is None or free is None or volume.free_bytes is None:
        return False
    return total == volume.total_bytes and free - volume.free_bytes <= total * FREE_TOLERANCE


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker, and whether a proposal may give it replicas.

    `excluded` means that the operator asked to leave it alone, `held` that something else works on it, `failing` that
    it lives but should not be trusted with more, `unreachable` that it lives without the listener by which the cluster
    was read. `emptied_by` and `filled_by` name the open plan that takes every replica off it, or gives it its share. It
    keeps what it has under each of them. `arriving_bytes` is what other moves, which a proposal leaves alone, have
    still to copy to it: its disks have that much less room; `arriving_replicas` counts the replicas among them that are
    not in its partitions' lists yet. `demoted` says that it should not lead, whatever the order of a list says;
    `demoted_topics`, that it should not lead these topics. `unregistered` says that Kafka refuses every list that names
    it. `network_in_bytes_per_s`, `network_out_bytes_per_s` and `cores` are what it can bear, None where unknown;
    `max_replicas` is the most replicas that it may have, None for no bound.
    """

    id: int
    rack: str | None = None
    alive: bool = True
    excluded: bool = False
    held: bool = False
    failing: bool = False
    log_dirs: tuple[LogDir, ...] = ()
    arriving_bytes: int = 0
    demoted: bool = False
    demoted_topics: tuple[str, ...] = ()
    unreachable: bool = False
    emptied_by: str | None = None
    filled_by: str | None = None
    arriving_replicas: int = 0
    unregistered: bool = False
    network_in_bytes_per_s: float | None = None
    network_out_bytes_per_s: float | None = None
    cores: float | None = None
    max_replicas: int | None = None

    @property
    def may_receive(self) -> bool:
        """Whether a proposal may give it replicas."""
        is_closed = self.excluded or self.held or self.failing or self.unreachable or self.is_cordoned
        return self.alive and not (is_closed or self.is_reserved)

    @property
    def is_reserved(self) -> bool:
        """Whether an open plan empties or fills it."""
        return self.emptied_by is not None or self.filled_by is not None

    @property
    def is_cordoned(self) -> bool:
        """Whether all of its log directories that work are cordoned (KIP-1066)."""
        working = self.working_directories
        return bool(working) and all(directory.cordoned for directory in working)

    @property
    def working_directories(self) -> tuple[LogDir, ...]:
        """Return the log directories that have not failed."""
        return tuple(directory for directory in self.log_dirs if not directory.code)

    @property
    def receiving_volumes(self) -> tuple[Volume, ...]:
        """Return the volumes that new replicas come to; where all are cordoned, Kafka puts them there all the same."""
        working = self.working_directories
        return volumes_of([directory for directory in working if not directory.cordoned] or working)

    @property
    def total_bytes(self) -> int | None:
        """Return the size of its volumes; None if any of them is unknown, or none was reported."""
        return _sum(volume.total_bytes for volume in volumes_of(self.working_directories))

    @property
    def free_bytes(self) -> int | None:
        """Return what is free on its volumes; None if any of them is unknown, or none was reported."""
        return _sum(volume.free_bytes for volume in volumes_of(self.working_directories))


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition with its replicas in their order, the first of which is the preferred leader.

    `leader` is None when nobody leads, or nobody who can be seen: `leader_unreachable` says that somebody does.
    `size_bytes` is the size of one copy, `write_bytes_per_s` what producers write to its leader, `read_bytes_per_s`
    what all consumers together read of it, `cpu_cores` how many cores its leader keeps busy; None where unknown.
    `moving` says that Kafka is reassigning it, or that Drover will: a proposal leaves it alone. `target` is the list to
    which it goes then, None if it stays or nobody knows; `adding` and `removing` are the brokers that Kafka adds and
    removes now. `topic_id` tells a topic from one that is made anew under its name; empty is unknown.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    size_bytes: int | None = None
    write_bytes_per_s: float | None = None
    internal: bool = False
    moving: bool = False
    topic_id: str = ""
    leader_unreachable: bool = False
    target: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    read_bytes_per_s: float | None = None
    cpu_cores: float | None = None

    @property
    def name(self) -> tuple[str, int]:
        """Return topic and number, by which partitions are ordered."""
        return (self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """Brokers that are set apart for topics, whose names match one of the patterns (`*` and `?` are wildcards)."""

    name: str
    brokers: tuple[int, ...]
    topics: tuple[str, ...]

    def has_topic(self, topic: str) -> bool:
        """Whether its brokers are set apart for this topic."""
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)


@dataclass(frozen=True)
class ClusterModel:
    """A cluster at one moment: brokers by id, partitions by name. `ClusterModel.of` puts both in order.

    A replica on a broker that is not listed counts as being on a dead broker without a rack. `cluster_id` is Kafka's id
    of the cluster; empty is unknown. `reads_from_followers` says that consumers read from all replicas alike (KIP-392),
    and not from the leaders alone. New replicas of a topic of a set in `broker_sets` come to the brokers of that set
    only, of the first one that has the topic. `min_leaders` has by a pattern of topics how many of its partitions each
    broker should lead. With `leaders_in_racks`, brokers elsewhere should not lead, and are demoted.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]
    cluster_id: str = ""
    reads_from_followers: bool = False
    broker_sets: tuple[BrokerSet, ...] = ()
    min_leaders: tuple[tuple[str, int], ...] = ()
    leaders_in_racks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        brokers: Iterable[Broker],
        partitions: Iterable[Partition],
        cluster_id: str = "",
        *,
        reads_from_followers: bool = False,
    ) -> "ClusterModel":
        """Make the model. The same cluster gives the same model, in whatever order it was read."""
        return cls(
            tuple(sorted(brokers, key=lambda broker: broker.id)),
            tuple(sorted(partitions, key=lambda partition: (partition.topic, partition.partition))),
            cluster_id,
            reads_from_followers,
        )

    def set_of(self, topic: str) -> BrokerSet | None:
        """Return the set of brokers that is set apart for a topic; None if it may be anywhere."""
        return next((each for each in self.broker_sets if each.has_topic(topic)), None)

    def within(self, topic: str) -> frozenset[int] | None:
        """Return the brokers of a topic's set; None if it may be anywhere."""
        return self._within.get(topic)

    @cached_property
    def _within(self) -> dict[str, frozenset[int]]:
        sets = {topic: self.set_of(topic) for topic in {partition.topic for partition in self.partitions}}
        return {topic: frozenset(own.brokers) for topic, own in sets.items() if own is not None}

    def min_leaders_of(self, topic: str) -> int:
        """Return how many partitions of a topic each broker should lead."""
        return next((count for pattern, count in self.min_leaders if fnmatchcase(topic, pattern)), 0)

    @cached_property
    def broker_by_id(self) -> dict[int, Broker]:
        """Index the brokers."""
        return {broker.id: broker for broker in self.brokers}

    @cached_property
    def partition_by_name(self) -> dict[tuple[str, int], Partition]:
        """Index the partitions."""
        return {partition.name: partition for partition in self.partitions}


def _sum(parts: Iterable[int | None]) -> int | None:
    known = tuple(parts)
    total = 0
    for part in known:
        if part is None:
            return None
        total += part
    return total if known else None
