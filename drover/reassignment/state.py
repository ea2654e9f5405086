"""The state of one managed cluster: its reassignments, plans, limits and throttle ledger.

Values are frozen (msgspec structs, whose copies with changes are made in C: see docs/decisions/0004-state-values.md);
`ClusterState` owns the maps and the indexes over them and changes through `apply` only, which folds
one event. The life of a reassignment:

    queued → (prepared →) intended → copying → confirmed → (prepared →) intended → … → completed
       │         │           │          │          │
       └─────────┴───────────┴──────────┴──────────┴──→ rolling-back → cancel-intended → cancelling
                                                              │                              │
                                                              └──→ restore-intended → restoring → rolled back, stopped

From every state a partition that is gone, or was changed by others for good, ends as failed. One that ends while
another target waits for it is queued again, under that target, in the same record.

The state hash leaves out what is at its default (`drover.shard.state_hash`): a field that is added here later needs a
default under which old logs mean what they meant.
"""

from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from drover.reassignment.foreign import ForeignMove, GivenUp
from drover.reassignment.waiting import HeldCommand, QueueEntry
from events.partitions import TopicPartition
from events.reassignments import Blocker, CancelMode
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


# Looking an enum's member up takes longer than all else in some of the functions that every event runs through.
_QUEUED = Phase.QUEUED
# A call of ours is open: its intent is durable, its outcome is not.
OPEN_PHASES = frozenset({Phase.INTENDED, Phase.CANCEL_INTENDED, Phase.RESTORE_INTENDED})
# A reassignment in one of these weighs on no broker: nothing is copied for it.
_WEIGHTLESS = frozenset({Phase.QUEUED, Phase.RESTORING, Phase.RESTORE_INTENDED})


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
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


class Block(Struct, frozen=True, omit_defaults=True):
    """Why a reassignment waits, what would unblock it, and since when (wall clock of the log, ms since epoch)."""

    why: Blocker
    detail: str
    since_ms: int


class Replacement(Struct, frozen=True, gc=False, omit_defaults=True):
    """The target that is queued, under its plan, in the record that ends the running reassignment (R455-8)."""

    plan: str
    target: tuple[int, ...]


class Reassignment(Struct, frozen=True, gc=False, omit_defaults=True):
    """One partition on its way from its original replica list to a target.

    `current` is the list the next step starts from: the original at first, then each confirmed step's. `step` is the
    running or last step. `unsure` says that the last call's outcome was lost. `attempts` counts calls in a row that
    lapsed. `number` is the order of acceptance within the cluster. `cancel_mode` says which way out was asked for;
    `restoring` is the list of the last restore call. `lost_lists` holds every list that was sent with an outcome that
    stayed unknown: should one show up later, it is Drover's own doing. `mended` says that Kafka's odd state (a broker
    both added and removed) has been found and cancelled once since the way out was last asked for.
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
    cancel_mode: CancelMode | None = None
    unsure: bool = False
    attempts: int = 0
    bytes_copied: int = 0
    block: Block | None = None
    replacement: Replacement | None = None
    restoring: tuple[int, ...] | None = None
    lost_lists: tuple[tuple[int, ...], ...] = ()
    mended: bool = False

    @property
    def in_flight(self) -> bool:
        """Whether it holds a slot."""
        return self.phase is not _QUEUED

    @property
    def call_open(self) -> bool:
        """Whether the outcome of a call is still to come."""
        return self.phase in OPEN_PHASES

    @property
    def is_cancelled(self) -> bool:
        """Whether it is on its way out: being rolled back or stopped."""
        return self.cancel_mode is not None

    @property
    def is_adopted(self) -> bool:
        """Whether it was taken over in order to be cancelled: it has nowhere else to go."""
        return self.target == self.original

    @property
    def way_back(self) -> tuple[int, ...]:
        """The list at which a cancel ends: the original, or for a stop what the confirmed steps have made of it."""
        return self.current if self.cancel_mode is CancelMode.STOP else self.original

    @property
    def load(self) -> tuple[int, ...]:
        """The brokers it weighs on now; none between two steps, and none once it is being restored."""
        step = self.step
        if step is None or self.phase in _WEIGHTLESS or self.current == step.replicas:
            return ()
        return _load(step.expected, step.replicas, step.leader)


class PlanStatus(StrEnum):
    """Whether a plan takes more partitions."""

    OPEN = "open"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class Plan(Struct, frozen=True, gc=False, omit_defaults=True):
    """The reassignments asked for under one name.

    `active` of them have not ended; `waiting` further targets are in the queue or replace one that is being taken back.
    """

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
    stopped: int = 0
    waiting: int = 0
    withdrawn: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is left to be done."""
        return not self.active and not self.waiting


class Limits(Struct, frozen=True):
    """How much may be in flight, and what is done unasked; see `events.clusters.LimitsSet`."""

    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1
    mends_by_itself: bool = False


class Freeze(Struct, frozen=True, omit_defaults=True):
    """Who froze the cluster, why and when."""

    by: str
    reason: str
    since_ms: int


class BrokerThrottle(Struct, frozen=True, omit_defaults=True):
    """One broker in the ledger.

    `baseline` is what stood there before Drover; `intended` what Drover last decided to write, `pending` whether that
    write's outcome is still owed, `release` whether it puts the baseline back.
    """

    baseline: Rates
    intended: Rates
    pending: bool
    release: bool


class TopicThrottle(Struct, frozen=True):
    """One topic in the ledger: the entries that Drover has put there, and what it is adding and removing now.

    `topic_id` is the incarnation that it last wrote to, or left alone.
    """

    present: Entries = NO_ENTRIES
    add: Entries = NO_ENTRIES
    remove: Entries = NO_ENTRIES
    pending: bool = False
    left: bool = False
    topic_id: str = ""


class ClusterState:
    """One managed cluster as the log says it is; changed by `drover.reassignment.evolve.apply` alone.

    `reassignments` holds what has not ended, in the order of acceptance. `queue` holds, in its order, what waits behind
    all of them; `held` the commands that wait for others, by id. `foreign` are moves of others; `given_up` what late
    calls may still disturb. `queued` and `in_flight` split the keys of `reassignments`; `loads` counts moves per
    broker: these three are indexes and no part of the state hash.
    """

    __slots__ = (
        "blacklist",
        "broker_throttles",
        "failed_brokers",
        "foreign",
        "freeze",
        "given_up",
        "held",
        "in_flight",
        "kafka_cluster_id",
        "limits",
        "loads",
        "mismatched_kafka_cluster_id",
        "name",
        "next_number",
        "plans",
        "queue",
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
        self.queue: dict[TopicPartition, QueueEntry] = {}
        self.held: dict[str, HeldCommand] = {}
        self.foreign: dict[TopicPartition, ForeignMove] = {}
        self.given_up: dict[TopicPartition, GivenUp] = {}
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
        """Store a new reassignment and index it; its place in `queued` is the order of acceptance."""
        key = reassignment.key
        assert key not in self.reassignments, f"{key} is under way already"
        self.reassignments[key] = reassignment
        if reassignment.phase is _QUEUED:
            self.queued[key] = None
        else:
            self.in_flight[key] = None
            self._weigh((), reassignment.load)

    def change(self, before: Reassignment, after: Reassignment) -> None:
        """Replace a reassignment and keep the indexes true."""
        key = before.key
        self.reassignments[key] = after
        was, now = before.phase, after.phase
        if (was is _QUEUED) is not (now is _QUEUED):
            left, entered = (self.queued, self.in_flight) if was is _QUEUED else (self.in_flight, self.queued)
            del left[key]
            entered[key] = None
        # Most events change neither step nor list: what they weigh need not be asked.
        same = before.step is after.step and before.current is after.current
        if not same or (was in _WEIGHTLESS) is not (now in _WEIGHTLESS):
            self._weigh(before.load, after.load)

    def drop(self, reassignment: Reassignment) -> None:
        """Forget a reassignment that has ended."""
        key = reassignment.key
        del self.reassignments[key]
        if reassignment.phase is _QUEUED:
            del self.queued[key]
        else:
            del self.in_flight[key]
            self._weigh(reassignment.load, ())

    def _weigh(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        if before == after:
            return
        loads = self.loads
        for broker in before:
            moves = loads[broker] - 1
            if moves:
                loads[broker] = moves
            else:
                del loads[broker]
        for broker in after:
            loads[broker] = loads.get(broker, 0) + 1
