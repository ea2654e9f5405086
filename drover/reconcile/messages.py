"""The inputs and effects of capabilities; the asyncio shell only carries them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, CallResult, Move, Observation, Survey, ThrottledReplicas
from drover.inventory import Inventory, LogDirectory
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal
from drover.reconcile.healing.heal_plan import HealPlan
from drover.traits import BrokerVersion

# How far the log's time may be ahead of its owner's clock.
MAX_AHEAD_MS = 60_000


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Now, as a value: `wall_ms` since epoch is recorded, `monotonic_ms` measures waiting."""

    wall_ms: int
    monotonic_ms: int

    def by(self, broker_ms: int | None) -> "Timestamp":
        """Return this timestamp by the clock of the log's brokers, at most `MAX_AHEAD_MS` ahead of this machine's.

        A worker's machine whose clock is wrong must not set the time of the log, and a broker whose clock is wrong must
        not set it far ahead, since log time never goes back. Without a broker's time (None) it stays this machine's.
        """
        return self if broker_ms is None else replace(self, wall_ms=min(broker_ms, self.wall_ms + MAX_AHEAD_MS))


# Inputs:


@dataclass(frozen=True, slots=True)
class Identified:
    """Kafka's own id of the cluster that answers under this name, its live brokers, and its moves.

    `moves` are those that a List showed just before; None if none was sent.
    """

    cluster: str
    kafka_cluster_id: str
    live_brokers: tuple[int, ...]
    ended_ms: int
    moves: Mapping[TopicPartition, Move] | None = None


@dataclass(frozen=True, slots=True)
class VersionsSeen:
    """The versions that live brokers report, by broker; brokers that did not answer are missing."""

    cluster: str
    versions: Mapping[int, BrokerVersion]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """An alter call has ended at `ended_ms` (monotonic) with one answer per partition.

    `results` is None when nothing was sent (`lost` False) or the outcome is unknown (`lost` True); `detail` says why.
    """

    cluster: str
    partitions: tuple[TopicPartition, ...]
    ended_ms: int
    results: Mapping[TopicPartition, CallResult] | None
    lost: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ThrottlesRead:
    """The throttle settings of the brokers and topics that were asked for, as answered by `ended_ms` (monotonic).

    None says that the topic does not exist; a broker or topic that is missing could not be read. `refused_brokers` and
    `refused_topics` are those whose settings Kafka refuses to show, with its answer.
    """

    cluster: str
    ended_ms: int
    brokers: Mapping[int, BrokerRates]
    topics: Mapping[str, ThrottledReplicas | None]
    refused_brokers: Mapping[int, CallResult] = field(default_factory=dict)
    refused_topics: Mapping[str, CallResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThrottlesChanged:
    """Answers to `ChangeThrottles`, by broker and by topic; one that is missing has an unknown outcome."""

    cluster: str
    ended_ms: int
    brokers: Mapping[int, CallResult]
    topics: Mapping[str, CallResult]


@dataclass(frozen=True, slots=True)
class BytesSampled:
    """Bytes on disk per partition and broker, and the log directories of the brokers that answered (`LogDirectories`).

    Read from `started_ms` (monotonic) on. Both are empty if no broker answered.
    """

    cluster: str
    started_ms: int
    sizes: Mapping[TopicPartition, Mapping[int, int]]
    directories: Mapping[int, tuple[LogDirectory, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InventoryTaken:
    """The inventory that was asked for; None if the cluster could not be read."""

    cluster: str
    started_ms: int
    inventory: Inventory | None


@dataclass(frozen=True, slots=True)
class HealPlanMade:
    """The plan that `PlanHeal` asked for, with the `to_heal` that it was made for."""

    cluster: str
    to_heal: BrokersToHeal
    plan: HealPlan


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """The cluster could not be observed since `since_ms` (wall clock), long enough to be recorded."""

    cluster: str
    since_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """An ElectLeaders call has ended at `ended_ms` (monotonic) with one answer per partition; see `CallEnded`."""

    cluster: str
    partitions: tuple[TopicPartition, ...]
    ended_ms: int
    results: Mapping[TopicPartition, CallResult] | None
    lost: bool = False
    detail: str = ""


Input = (
    Observation
    | Identified
    | Survey
    | VersionsSeen
    | OutOfReach
    | CallEnded
    | LeadersElected
    | ThrottlesRead
    | ThrottlesChanged
    | BytesSampled
    | InventoryTaken
    | HealPlanMade
)


# Effects:


@dataclass(frozen=True, slots=True)
class AlterPartitions:
    """Send one alter call, starting before `start_by_ms` (monotonic) or not at all; None as list cancels."""

    cluster: str
    requests: Mapping[TopicPartition, tuple[int, ...] | None]
    start_by_ms: int


@dataclass(frozen=True, slots=True)
class ReadThrottles:
    """Read the throttle settings of brokers and topics."""

    cluster: str
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeThrottles:
    """Write broker rates, add and remove topic entries; every such write may be repeated.

    The calls begin by `start_by_ms` (monotonic) or not at all: later, another owner may want something else. Entries
    of a topic are added after others were removed, in one call with one time limit. `kept` are Drover's entries that
    stay in a list from which others are removed.
    """

    cluster: str
    rates: Mapping[int, BrokerRates]
    add: Mapping[str, ThrottledReplicas]
    remove: Mapping[str, ThrottledReplicas]
    kept: Mapping[str, ThrottledReplicas]
    start_by_ms: int


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Send one election of preferred leaders, starting before `start_by_ms` (monotonic) or not at all."""

    cluster: str
    partitions: tuple[TopicPartition, ...]
    start_by_ms: int


@dataclass(frozen=True, slots=True)
class TakeInventory:
    """Read the whole cluster once: brokers, disks, every partition and the sizes of its copies."""

    cluster: str


@dataclass(frozen=True, slots=True)
class PlanHeal:
    """Plan a heal from an inventory; for a large cluster that takes seconds, so it runs beside the shard's loop."""

    cluster: str
    inventory: Inventory
    to_heal: BrokersToHeal
    disk_limit_percent: int


Effect = AlterPartitions | ElectLeaders | ReadThrottles | ChangeThrottles | TakeInventory | PlanHeal
