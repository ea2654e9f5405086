"""A whole managed cluster at one time: every broker, partition, copy and disk, as a planner needs them."""

from collections.abc import Mapping
from dataclasses import dataclass

from drover.brokers import Brokers, unreachable_brokers
from drover.events.partitions import TopicPartition
from drover.facts import KAFKA_STORAGE_ERROR, PartitionFacts


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker: the volume's size and what is still free on it, in bytes.

    Both are None where the broker does not say (Kafka before 3.3, KIP-827). `code` is Kafka's error for the directory:
    56 (KAFKA_STORAGE_ERROR) is one that has failed. Kafka places no new replicas by itself in a cordoned directory
    (KIP-1066, Kafka 4.3); a broker that does not say has none.
    """

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    code: int = 0
    is_cordoned: bool = False

    @property
    def failure(self) -> str:
        """Name a directory that has failed, and Kafka's error."""
        name = ", KAFKA_STORAGE_ERROR" if self.code == KAFKA_STORAGE_ERROR else ""
        return f"log directory {self.path} has failed (Kafka error {self.code}{name})"


@dataclass(frozen=True, slots=True)
class LogDirectories:
    """The answers of the live brokers to DescribeLogDirs.

    `sizes` are bytes on disk per partition and broker, future logs left out, with an entry for every partition that was
    asked for. `directories` holds those of each broker that has answered. A replica that a broker should have, and that
    none of its directories shows, lies in one that has failed, if there is one.
    """

    sizes: Mapping[TopicPartition, Mapping[int, int]]
    directories: Mapping[int, tuple[LogDirectory, ...]]


NO_LOG_DIRECTORIES = LogDirectories({}, {})


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A broker that is registered, or that only replica lists still name.

    A dead one that is registered keeps its rack (KIP-1073, Kafka 4.0); for any other dead one `rack` is None, as it is
    for a broker without one. `is_unreachable` says that it lives and Metadata does not list it: see `drover.brokers`.
    `directories` is None where the broker did not answer.
    """

    broker: int
    rack: str | None
    is_alive: bool
    directories: tuple[LogDirectory, ...] | None = None
    is_unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """The answer to one round of requests: DescribeCluster, List, Metadata of everything, List, DescribeLogDirs.

    `seen_ms` is the observer's monotonic clock when the sizes had been read. A partition that either List shows has its
    move. `replica_bytes` holds what each live broker has on disk, as `LogDirectories.sizes` does.
    `internal_topics` are those that Kafka itself calls internal. Topics that the user may not describe are left out.
    `registered_brokers` is as in a `Survey`.
    """

    kafka_cluster_id: str
    seen_ms: int
    brokers: Mapping[int, RegisteredBroker]
    partitions: Mapping[TopicPartition, PartitionFacts]
    replica_bytes: Mapping[TopicPartition, Mapping[int, int]]
    internal_topics: frozenset[str] = frozenset()
    registered_brokers: frozenset[int] | None = None

    @property
    def standings(self) -> Brokers:
        """Return what its brokers are."""
        return Brokers(
            frozenset(number for number, broker in self.brokers.items() if broker.is_alive),
            frozenset(number for number, broker in self.brokers.items() if broker.is_unreachable),
            self.registered_brokers,
        )


@dataclass(frozen=True, slots=True)
class Positions:
    """How far producers and consumers have come: offsets by partition, asked of the leaders.

    `seen_ms` is the observer's monotonic clock when the answers were there. `begins` are the first offsets on the
    leaders' disks, `ends` the next ones that are written; a partition whose leader did not answer is in neither.
    `committed` are the committed offsets of each group. `unread` says in sentences what keeps groups from being read,
    in which case nobody knows what is read.
    """

    seen_ms: int
    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    unread: tuple[str, ...] = ()


def named_brokers(
    registered: Mapping[int, RegisteredBroker], partitions: Mapping[TopicPartition, PartitionFacts]
) -> dict[int, RegisteredBroker]:
    """Return the registered brokers and, with no rack, those that only replica lists name: dead or unreachable."""
    named = {broker for facts in partitions.values() for broker in facts.replicas}
    live = [number for number, broker in registered.items() if broker.is_alive]
    unreachable = unreachable_brokers(live, partitions.values())
    absent = {
        broker: RegisteredBroker(broker, None, is_alive=False, is_unreachable=broker in unreachable)
        for broker in named - registered.keys()
    }
    return dict(sorted((absent | dict(registered)).items()))
