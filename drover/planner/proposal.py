"""A proposal: the moves with their reasons, what they cost, what they change, and what could not be met."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The reason for a change of a replica list."""

    DRAIN = "leaves a broker that is drained"
    DEAD = "replaces a replica on a dead broker"
    ADD = "fills a broker that was added"
    COUNT = "takes replicas off an overloaded broker"
    DISK = "takes bytes off a broker that holds too many"
    FILL = "fills an underloaded broker"
    EVEN = "evens out replicas and bytes between brokers"
    LOADS = "evens out the loads of brokers"
    LIMIT = "takes a broker below a limit"
    SPREAD = "spreads the replicas over more racks"
    RAISE = "adds a replica"
    LOWER = "drops a replica"
    LEADERS = "balances leaders by order alone"
    GIVEN = "given"


class UnmetCode(StrEnum):
    """Kinds of requirements that could not be met."""

    UNKNOWN_BROKER = "unknown-broker"
    UNKNOWN_RACK = "unknown-rack"
    UNKNOWN_TOPIC = "unknown-topic"
    UNKNOWN_PARTITION = "unknown-partition"
    DEAD_BROKER = "dead-broker"
    UNREACHABLE_BROKER = "unreachable-broker"
    LEFT_OUT = "left-out"
    BAD_GOAL = "bad-goal"
    TOO_FEW_BROKERS = "too-few-brokers"
    NO_ROOM = "no-room"
    RACK_SPREAD = "rack-spread"
    OFFLINE = "offline"
    MOVING = "moving"
    EXCLUDED = "excluded"
    OVERLOADED = "overloaded"
    UNDERLOADED = "underloaded"
    BOUND_REACHED = "bound-reached"
    INTERRUPTED = "interrupted"
    WRONG_LIST = "wrong-list"
    OUT_OF_SYNC = "out-of-sync"
    RESERVED = "reserved"
    REPLICATION_FACTOR = "replication-factor"
    ONE_RACK = "one-rack"
    BROKER_SET = "broker-set"
    MIN_LEADERS = "min-leaders"


@dataclass(frozen=True, slots=True)
class Unmet:
    """Something that was asked for or promised, and that the proposal does not reach; `text` names it and says why."""

    code: UnmetCode
    text: str
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A new replica list for one partition.

    `size_bytes` is the size of one copy, None if unknown.
    """

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    reasons: tuple[Reason, ...]
    size_bytes: int | None

    @property
    def adding(self) -> tuple[int, ...]:
        """Return the brokers that copy it, in the order of the new list."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        """Return the brokers that drop it."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def copied_bytes(self) -> int:
        """Return the bytes that are copied; unknown sizes count as none."""
        return (self.size_bytes or 0) * len(self.adding)

    @property
    def moves_leader(self) -> bool:
        """Whether another broker is the preferred leader afterwards."""
        return self.before[:1] != self.after[:1]


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """The effect of a proposal on one broker.

    `bytes_out` is what it sends as the leader of what is copied. `peak_extra_bytes` is what its disks hold on top if
    every copy arrives before anything is dropped; `room_bytes` is what they may take, None if unknown.
    """

    broker: int
    copies_in: int
    copies_dropped: int
    bytes_in: int
    bytes_out: int
    peak_extra_bytes: int
    room_bytes: int | None
    replicas_before: int
    replicas_after: int
    disk_bytes_before: int
    disk_bytes_after: int
    leaders_before: int
    leaders_after: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something lies on the brokers that count: the highest and lowest share of the mean, and the deviation.

    1.0 is the mean; all are 1.0 and 0.0 where there is nothing.
    """

    highest: float
    lowest: float
    deviation: float


@dataclass(frozen=True, slots=True)
class BalanceFigures:
    """The balance of replicas, bytes and preferred leaders over the living brokers that are not being emptied."""

    count: Spread
    disk: Spread
    leaders: Spread


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """How even a load is: the highest and lowest broker, as shares of what is fair for it.

    `outside` counts the brokers outside the band, `above_limit` those that use more of a capacity than the limit.
    """

    highest: float
    lowest: float
    outside: int
    above_limit: int


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """One load, by its name, before and after a plan."""

    load: str
    before: LoadLevel
    after: LoadLevel


@dataclass(frozen=True, slots=True)
class Basis:
    """The facts that a proposal depends on: Kafka's id of the cluster, the moved partitions, and their brokers.

    `partitions` holds topic, number, topic id and list; `brokers` id, rack, whether it lives, and how many replicas it
    has, also of partitions that do not move. An id that is unknown is empty.
    """

    cluster_id: str
    partitions: tuple[tuple[str, int, str, tuple[int, ...]], ...]
    brokers: tuple[tuple[int, str | None, bool, int], ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The planner's result; the moves are in the order in which they should be made.

    `refused` says that the goal makes no sense for this cluster, and `unmet` why; there are no moves then.
    `interrupted` says that work or time ran out: the plan is valid, and further planning may find a better one.
    `unknown_sizes` counts partitions that move without a known size; they count as zero bytes.
    `unknown_disks` are the brokers that receive copies and whose free space is unknown, and so not checked.
    `loads` judges each load where rates are known, or disks are unequal; `unknown_loads` says what was left out.
    """

    moves: tuple[Move, ...]
    brokers: tuple[BrokerFigures, ...]
    before: BalanceFigures
    after: BalanceFigures
    rack_violations_before: int
    rack_violations_after: int
    unmet: tuple[Unmet, ...]
    basis: Basis
    digest: str
    refused: bool
    interrupted: bool
    unknown_sizes: int
    unknown_disks: tuple[int, ...]
    loads: tuple[LoadFigures, ...] = ()
    unknown_loads: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.moves

    @property
    def complete(self) -> bool:
        """Whether the goal is reached."""
        return not (self.unmet or self.refused)

    @property
    def copies(self) -> int:
        """Return how many replicas are copied."""
        return sum(len(move.adding) for move in self.moves)

    @property
    def copied_bytes(self) -> int:
        """Return how many bytes are copied."""
        return sum(move.copied_bytes for move in self.moves)

    @property
    def leaders_moved(self) -> int:
        """Return how many partitions get another preferred leader."""
        return sum(move.moves_leader for move in self.moves)

    @property
    def targets(self) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
        """Return the new lists by partition, as the stock tool's JSON has them."""
        return tuple((move.topic, move.partition, move.after) for move in self.moves)

    def lower_bound_s(self, throttle_bytes_per_s: float) -> float:
        """Return the seconds that no schedule can beat: the busiest broker, in or out, at this rate per broker."""
        busiest = max((max(each.bytes_in, each.bytes_out) for each in self.brokers), default=0)
        return busiest / throttle_bytes_per_s


Targets = Mapping[tuple[str, int], tuple[int, ...]]
