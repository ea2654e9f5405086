"""The state of one managed cluster: its reassignments, plans, limits and throttle ledger.

Values are frozen (msgspec structs, whose copies with changes are made in C: see docs/decisions/0004-state-values.md);
`ClusterState` owns the maps and the indexes over them and changes through `apply` only, which folds
one event. The life of a reassignment:

    queued → (prepared →) intended → copying → confirmed → (prepared →) intended → … → completed
       │         │           │          │          │
       └─────────┴───────────┴──────────┴──────────┴──→ rolling-back → cancel-intended → cancelling
                                                              │                              │
                                                              └──────→ restore-intended → restoring → rolled back

From every state a partition that is gone, or was changed by others for good, ends as failed.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from events.partitions import TopicPartition
from events.reassignments import Blocker
from events.throttles import NO_ENTRIES, Entries, Rates


class Phase(StrEnum):
    """Where a reassignment is; the diagram above shows the ways between."""

    QUEUED = "queued"
    PREPARED = "prepared"
    INTENDED = "intended"
    COPYING = "copying"
    CONFIRMED = "confirmed"
    ROLLING_BACK = "rolling-back"
    CANCEL_INTENDED = "cancel-intended"
    CANCELLING = "cancelling"
    RESTORE_INTENDED = "restore-intended"
    RESTORING = "restoring"


# A call of ours is open: its intent is durable, its outcome is not.
OPEN_PHASES = frozenset({Phase.INTENDED, Phase.CANCEL_INTENDED, Phase.RESTORE_INTENDED})
# A reassignment in one of these weighs on no broker: nothing is copied for it.
_WEIGHTLESS = frozenset({Phase.QUEUED, Phase.RESTORING, Phase.RESTORE_INTENDED})


class Step(Struct, frozen=True):
    """One alter call on the way: `expected` is the list it starts from, `replicas` the list it asks for.

    `leader` led when the step was planned (None: nobody).
    """

    number: int
    final: bool
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    leader: int | None

    @property
    def adding(self) -> tuple[int, ...]:
        """The brokers that get a copy in this step."""
        return _adding(self.expected, self.replicas)

    @property
    def load(self) -> tuple[int, ...]:
        """The brokers this step weighs on: the leader as source and each added broker; none if nothing is copied."""
        return _load(self.expected, self.replicas, self.leader)


# Asked for at every event of a partition; a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def _adding(expected: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in replicas if broker not in expected)


@lru_cache(maxsize=4096)
def _load(expected: tuple[int, ...], replicas: tuple[int, ...], leader: int | None) -> tuple[int, ...]:
    adding = _adding(expected, replicas)
    return adding if leader is None or not adding else (leader, *adding)


class Block(Struct, frozen=True):
    """Why a reassignment waits, what would unblock it, and since when (wall clock of the log, ms since epoch)."""

    why: Blocker
    detail: str
    since_ms: int


class Reassignment(Struct, frozen=True):
    """One partition on its way from its original replica list to a target.

    `current` is the list the next step starts from: the original at first, then each confirmed step's. `step` is the
    running or last step. `unsure` says that the last call's outcome was lost. `attempts` counts calls in a row that
    lapsed. `number` is the order of acceptance within the cluster.
    """

    key: TopicPartition
    topic_id: str
    plan: str
    number: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    queued_ms: int
    phase: Phase
    since_ms: int
    current: tuple[int, ...]
    step: Step | None = None
    rollback_requested: bool = False
    unsure: bool = False
    attempts: int = 0
    bytes_copied: int = 0
    block: Block | None = None

    @property
    def in_flight(self) -> bool:
        """Whether it holds a slot."""
        return self.phase is not Phase.QUEUED

    @property
    def call_open(self) -> bool:
        """Whether the outcome of a call is still to come."""
        return self.phase in OPEN_PHASES

    @property
    def load(self) -> tuple[int, ...]:
        """The brokers it weighs on now; none between two steps, and none once it is being restored."""
        if self.step is None or self.phase in _WEIGHTLESS or self.current == self.step.replicas:
            return ()
        return self.step.load


class PlanStatus(StrEnum):
    """Whether a plan takes more partitions."""

    OPEN = "open"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Plan(Struct, frozen=True):
    """The reassignments asked for under one name; `active` of them have not ended."""

    name: str
    by: str
    reason: str
    opened_ms: int
    status: PlanStatus = PlanStatus.OPEN
    more: bool = False
    extended_ms: int = 0
    throttle_bytes_per_second: int | None = None
    active: int = 0
    completed: int = 0
    rolled_back: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be in flight; see `events.clusters.LimitsSet`."""

    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1


@dataclass(frozen=True, slots=True)
class Freeze:
    """Who froze the cluster, why and when."""

    by: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class BrokerThrottle:
    """One broker in the ledger.

    `baseline` is what stood there before Drover; `intended` what Drover last decided to write, `pending` whether that
    write's outcome is still owed, `release` whether it puts the baseline back.
    """

    baseline: Rates
    intended: Rates
    pending: bool
    release: bool


@dataclass(frozen=True, slots=True)
class TopicThrottle:
    """One topic in the ledger: the entries that Drover has put there, and what it is adding and removing now."""

    present: Entries = NO_ENTRIES
    add: Entries = NO_ENTRIES
    remove: Entries = NO_ENTRIES
    pending: bool = False
    left: bool = False


class ClusterState:
    """One managed cluster as the log says it is; changed by `drover.reassignment.evolve.apply` alone.

    `reassignments` holds what has not ended, in the order of acceptance. `queued` and `in_flight` split its keys;
    `loads` counts moves per broker. The last three are indexes and no part of the state hash.
    """

    __slots__ = (
        "blacklist",
        "broker_throttles",
        "failed_brokers",
        "freeze",
        "in_flight",
        "kafka_cluster_id",
        "limits",
        "loads",
        "mismatched_kafka_cluster_id",
        "name",
        "next_number",
        "plans",
        "queued",
        "reassignments",
        "topic_throttles",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.kafka_cluster_id: str | None = None
        self.mismatched_kafka_cluster_id: str | None = None
        self.freeze: Freeze | None = None
        self.limits = Limits()
        self.blacklist: tuple[int, ...] = ()
        self.failed_brokers: dict[int, int] = {}
        self.plans: dict[str, Plan] = {}
        self.reassignments: dict[TopicPartition, Reassignment] = {}
        self.broker_throttles: dict[int, BrokerThrottle] = {}
        self.topic_throttles: dict[str, TopicThrottle] = {}
        self.next_number = 1
        self.queued: dict[TopicPartition, None] = {}
        self.in_flight: dict[TopicPartition, None] = {}
        self.loads: dict[int, int] = {}

    def copy(self) -> "ClusterState":
        """Return an independent twin; the values inside are frozen and shared."""
        twin = ClusterState(self.name)
        for field in self.__slots__:
            value = getattr(self, field)
            setattr(twin, field, dict(value) if isinstance(value, dict) else value)
        return twin

    def put(self, reassignment: Reassignment) -> None:
        """Store a reassignment and keep the indexes true; its place in `queued` stays the order of acceptance."""
        key = reassignment.key
        before = self.reassignments.get(key)
        self.reassignments[key] = reassignment
        if before is None or before.in_flight is not reassignment.in_flight:
            self.queued.pop(key, None)
            self.in_flight.pop(key, None)
            (self.in_flight if reassignment.in_flight else self.queued)[key] = None
        self._weigh(() if before is None else before.load, reassignment.load)

    def drop(self, key: TopicPartition) -> None:
        """Forget a reassignment that has ended."""
        self._weigh(self.reassignments.pop(key).load, ())
        self.queued.pop(key, None)
        self.in_flight.pop(key, None)

    def _weigh(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        if before == after:
            return
        for broker in before:
            moves = self.loads[broker] - 1
            if moves:
                self.loads[broker] = moves
            else:
                del self.loads[broker]
        for broker in after:
            self.loads[broker] = self.loads.get(broker, 0) + 1
