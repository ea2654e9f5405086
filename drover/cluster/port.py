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
    """Kafka's own cluster id, and the brokers that are registered and not fenced, with their racks."""

    kafka_cluster_id: str
    racks: Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class Listing:
    """Every moving partition in a ListPartitionReassignments response, no matter who started the move.

    `started_ms` is the observer's monotonic clock just before the request was sent.
    """

    started_ms: int
    moves: Mapping[TopicPartition, Move]


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """A partition of an AlterPartitionReassignments call; `replicas=None` cancels its move."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class SetBrokerRates:
    """Set both throttle rates on a broker; None deletes the dynamic value. Idempotent."""

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

    `kept` are Drover's entries that stay. A list with such entries is not deleted, even if a broker that is behind does
    not show them.
    """

    topic: str
    entries: ThrottledReplicas
    kept: ThrottledReplicas = NO_REPLICAS


ThrottleChange = SetBrokerRates | AddThrottledReplicas | RemoveThrottledReplicas


class ClusterDriver(Protocol):
    """A managed cluster.

    Every method raises `ClusterUnavailableError` if the call had no effect, and `OutcomeUnknownError` if it may have
    had one. A refusal by Kafka for one partition or resource is a `CallResult`, never an exception. A call never takes
    longer than the driver's `call_timeout_ms` (4 s by default).
    """

    async def identify(self) -> ClusterIdentity:
        """Return Kafka's id of the cluster and its live brokers."""
        ...

    async def list_moves(self) -> Listing:
        """Send one ListPartitionReassignments for all partitions."""
        ...

    async def observe(
        self, partitions: Collection[TopicPartition], *, since: Listing | None = None, with_min_isr: bool = False
    ) -> Observation:
        """List, Describe the topics of `partitions`, and List again; see `Observation` for the result.

        `since`, a listing of this driver of any age, replaces the first List, and the observation then began with it;
        partitions that have changed since are left out. `with_min_isr` also leaves out partitions whose topic is new to
        the broker that is asked for configs. The deadline begins with this call. The `cluster` field is the driver's
        name for the cluster.
        """
        ...

    async def partition_counts(self, topics: Collection[str]) -> Mapping[str, int | None]:
        """Return the number of partitions of each topic; None for a topic that does not exist."""
        ...

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        """Send one AlterPartitionReassignments (at most 1,000 partitions, each once), 3 s controller timeout.

        The request always allows changes of the replication factor, because steps need them; Drover's own policy was
        applied before.
        """
        ...

    async def survey(self) -> Survey:
        """Describe every partition in one Metadata request; topics that cannot be described are left out."""
        ...

    async def elect_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        """Send one ElectLeaders (at most 1,000 partitions): the first replica leads if it is alive and in sync.

        The election is never unclean. Code 0 or 84 (ELECTION_NOT_NEEDED) means that the first replica leads now, 80
        (PREFERRED_LEADER_NOT_AVAILABLE) that it cannot. Idempotent.
        """
        ...

    async def broker_versions(self) -> Mapping[int, BrokerVersion]:
        """Return the version that each live broker reports; brokers that do not answer in time are left out."""
        ...

    async def log_directories(self, topics: Collection[str]) -> LogDirectories:
        """Send DescribeLogDirs to the live brokers for the replicas of these topics.

        Brokers that do not answer in time are left out like dead ones. Without topics it returns only the directories.
        """
        ...

    async def inventory(self) -> Inventory:
        """Read the whole cluster once, for a planner; see `Inventory`.

        Give the driver a long `call_timeout_ms`, because only this method's cost grows with the size of the cluster. A
        live broker that does not answer in time has neither directories nor bytes in the result.
        """
        ...

    async def broker_rates(self, brokers: Collection[int]) -> Mapping[int, BrokerRates]:
        """Return the dynamic throttle rates of each broker itself, not the cluster default; dead ones are left out."""
        ...

    async def throttled_replicas(self, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        """Return the throttled replica lists of each existing topic."""
        ...

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        """Make the changes, one call per broker so that a dead one does not affect the others; collect every answer.

        Changes of one topic or broker are made in order. Once one of them is refused, the later ones are not made and
        get the same answer. All of them together have the deadline of one call. The answer for a dead broker is code 8
        (BROKER_NOT_AVAILABLE), and for entries added to a `*` code 40 (INVALID_CONFIG).
        """
        ...

    async def close(self) -> None:
        """Close connections and threads; idempotent."""
        ...
