"""The port through which Drover observes and changes a managed cluster; one contract suite runs on every driver."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from drover.events.partitions import TopicPartition
from drover.facts import NO_REPLICAS, BrokerRates, CallResult, Move, Observation, Survey, ThrottledReplicas
from drover.inventory import Inventory, LogDirectories
from drover.traits import BrokerVersion

MAX_PARTITIONS_PER_ALTER = 1000
MAX_PARTITIONS_PER_ELECTION = 1000


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """Kafka's own cluster id and the brokers that are registered and not fenced now, with their racks."""

    kafka_cluster_id: str
    racks: Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class Listing:
    """Every partition that was moving, whoever asked for it, as one ListPartitionReassignments showed it.

    `started_ms` is the observer's monotonic clock just before the List was sent.
    """

    started_ms: int
    moves: Mapping[TopicPartition, Move]


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """One partition of an AlterPartitionReassignments call; `replicas=None` cancels that partition's move."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class SetBrokerRates:
    """Set both throttle rates on one broker; None deletes the dynamic value. Idempotent."""

    broker: int
    rates: BrokerRates


@dataclass(frozen=True, slots=True)
class AddThrottledReplicas:
    """Append entries to a topic's throttled replica lists (never to a `*`). Idempotent."""

    topic: str
    entries: ThrottledReplicas


@dataclass(frozen=True, slots=True)
class RemoveThrottledReplicas:
    """Subtract entries from a topic's throttled replica lists; an empty list is deleted. Idempotent.

    `kept` are entries of Drover's that stay. A list that has some is not deleted, even if the broker that shows it is
    behind and does not show them.
    """

    topic: str
    entries: ThrottledReplicas
    kept: ThrottledReplicas = NO_REPLICAS


ThrottleChange = SetBrokerRates | AddThrottledReplicas | RemoveThrottledReplicas


class ClusterDriver(Protocol):
    """A managed cluster.

    Every method raises `ClusterUnavailableError` when nothing can have happened and `OutcomeUnknownError` when
    something may have. A refusal by Kafka for one partition or resource is a `CallResult`, never an exception.
    Deadlines: a call never takes longer than the driver's `call_timeout_ms` (4 s by default).
    """

    async def identify(self) -> ClusterIdentity:
        """Return Kafka's id of the cluster and its live brokers."""
        ...

    async def list_moves(self) -> Listing:
        """Send one ListPartitionReassignments of everything."""
        ...

    async def observe(
        self, partitions: Collection[TopicPartition], *, since: Listing | None = None, with_min_isr: bool = False
    ) -> Observation:
        """List, Describe the topics of `partitions`, List again; see `Observation` for what is kept.

        `since`, a listing that this driver made, is the first List; none is sent then, and the observation began when
        that List did. It may be of any age; partitions that have changed since are left out. So are, with
        `with_min_isr`, those whose topic is new to the broker that is asked for its configs. The deadline begins with
        this call. The `cluster` field is the name the driver was made with.
        """
        ...

    async def partition_counts(self, topics: Collection[str]) -> Mapping[str, int | None]:
        """How many partitions each topic has; None for a topic that does not exist."""
        ...

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        """Send one AlterPartitionReassignments (at most 1,000 partitions, each once), 3 s controller timeout.

        A replication factor change is always allowed on the wire: steps need it, and the policy was applied before.
        """
        ...

    async def survey(self) -> Survey:
        """Describe every partition in one Metadata request; topics that cannot be described are left out."""
        ...

    async def elect_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        """Send one ElectLeaders (at most 1,000 partitions): the first of each list leads if it is in sync and lives.

        The election is never unclean. Code 0 or 84 (ELECTION_NOT_NEEDED) says that the first of the list leads now, 80
        (PREFERRED_LEADER_NOT_AVAILABLE) that it cannot. Idempotent.
        """
        ...

    async def broker_versions(self) -> Mapping[int, BrokerVersion]:
        """Return the version that each live broker reports; brokers that do not answer in time are left out."""
        ...

    async def log_directories(self, topics: Collection[str]) -> LogDirectories:
        """Send DescribeLogDirs to the live brokers for the replicas of these topics.

        A broker that does not answer in time is left out like a dead one. Without topics it only tells the directories.
        """
        ...

    async def inventory(self) -> Inventory:
        """Look at the whole cluster once, for a planner; see `Inventory`.

        The only method whose cost follows the size of the cluster: give the driver a long `call_timeout_ms`. A live
        broker that does not answer in time has no directories, and no bytes.
        """
        ...

    async def broker_rates(self, brokers: Collection[int]) -> Mapping[int, BrokerRates]:
        """The throttle rates set dynamically on each broker itself (not the cluster default); dead ones left out."""
        ...

    async def throttled_replicas(self, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        """The throttled replica lists of each existing topic."""
        ...

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        """Make the changes, one call per broker so that a dead one does not affect the others; collect every answer.

        Changes of one topic or broker happen in their order. Once one of them is refused, the later ones are not made
        and get the same answer. All of them together have the time limit of one call. A broker that is not alive is
        answered with code 8 (BROKER_NOT_AVAILABLE), entries for a `*` with code 40 (INVALID_CONFIG).
        """
        ...

    async def close(self) -> None:
        """Close connections and threads; idempotent."""
        ...
