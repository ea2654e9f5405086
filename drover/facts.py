"""Observations of a managed cluster as values: the driver makes them, the pure core judges them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from drover.events.partitions import TopicPartition


class Move(Struct, frozen=True, gc=False):
    """One entry of ListPartitionReassignments: a partition that Kafka itself says is moving.

    `replicas` is the merged list in Kafka's order; `adding` and `removing` are ascending on KRaft. A broker in both
    lists is an odd state that on some versions never ends by itself (seen live on 3.7.2 and 4.3.1).
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The list Kafka is heading for, in the target's order (R minus RR)."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def never_ends(self) -> tuple[int, ...]:
        """The brokers that are being both added and removed: with one of them Kafka may list the move for ever."""
        return tuple(broker for broker in self.adding if broker in self.removing)


class PartitionFacts(Struct, frozen=True, gc=False):
    """One partition as List and Describe together showed it.

    `replicas` is the merged list while moving. `leader` is None when nobody leads. `move` is None exactly when both
    Lists around the Describe left the partition out. `leader_lacks_listener` says that somebody leads whom this client
    cannot see: the leader does not offer the listener by which it asked.
    """

    topic_id: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    move: Move | None = None
    leader_lacks_listener: bool = False

    @property
    def is_endless(self) -> bool:
        """Whether the move has a broker in both lists and nothing is left to copy, so that no event will end it.

        True on every version that was seen. Before its whole target is in sync, such a move can end by itself on
        3.9 to 4.2. Whoever acts on this lets it persist first: a move that ends is listed for a moment longer.
        """
        move = self.move
        return move is not None and bool(move.never_ends) and set(move.target) <= set(self.isr)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one List, Describe, List round of a cluster showed.

    `started_ms` and `ended_ms` are the observer's monotonic clock: an observation says something about a partition only
    if it began after that partition's last call had ended. `moves` holds every partition both Lists agree is moving,
    those of others included. `partitions` holds the asked partitions on which both Lists agree: None means that the
    topic or partition does not exist. A partition that is missing here could not be judged this time. `min_isr` holds
    min.insync.replicas per described topic, if it was asked for. `racks` are those of the live brokers.
    """

    cluster: str
    kafka_cluster_id: str
    started_ms: int
    ended_ms: int
    live_brokers: tuple[int, ...]
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionFacts | None] = field(default_factory=dict)
    min_isr: Mapping[str, int] = field(default_factory=dict)
    racks: Mapping[int, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """Every partition of a cluster as one Metadata request showed it; what moves is not told apart.

    Times are the observer's monotonic clock. `replicas` of a moving partition is the merged list. `racks` are
    those of the live brokers. `registered_brokers` are those that DescribeCluster lists, fenced ones included; None
    where the cluster does not say (before KIP-1073, Kafka 4.0). A broker without the listener of the client is missing
    there as in Metadata.
    """

    cluster: str
    kafka_cluster_id: str
    started_ms: int
    ended_ms: int
    live_brokers: tuple[int, ...]
    partitions: Mapping[TopicPartition, PartitionFacts] = field(default_factory=dict)
    racks: Mapping[int, str | None] = field(default_factory=dict)
    registered_brokers: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class CallResult:
    """One partition's or resource's answer to a call: Kafka's own error code (0 is success) and its words, if any."""

    code: int
    message: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether Kafka took the request."""
        return self.code == 0

    @property
    def in_words(self) -> str:
        """Kafka's code and its words, for a message."""
        return f"code {self.code}" if self.message is None else f"code {self.code} ({self.message})"


@dataclass(frozen=True, slots=True)
class BrokerRates:
    """The dynamic throttle rates set on one broker itself, in bytes per second; None where none is set there."""

    leader_bytes_per_second: int | None
    follower_bytes_per_second: int | None


EVERY_REPLICA = "*"
"""The entry of a throttled replica list that stands for every replica of the topic."""


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """The topic-level throttled replica lists: entries `partition:broker`, or the single entry `*`."""

    leader: tuple[str, ...]
    follower: tuple[str, ...]


NO_REPLICAS = ThrottledReplicas((), ())

# Kafka's error codes that Drover acts on (protocol constants).
NONE = 0
UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
NOT_CONTROLLER = 41
KAFKA_STORAGE_ERROR = 56
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
