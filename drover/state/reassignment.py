"""The values in the state of reassignments: frozen, and replaced by each event.

They are msgspec structs, whose copies with changes are made in C: see docs/decisions/0004-state-values.md. The state
hash leaves out fields at their defaults (`drover.state.hashing`): a new field needs a default under which old logs keep
their meaning.
"""

from functools import lru_cache

from msgspec import Struct

from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, Call, CancelMode, SkipReason
from drover.state.broker_directions import BrokerDirections, directions_of
from drover.state.phase import OPEN_PHASES, Phase, Stage
from drover.state.slot_share import share_of

# Bound here, because looking up an enum's member takes longer than the rest of some functions that run for every event.
_PENDING = Phase.PENDING
# A call of Drover's ends within 4 s; requests still in network buffers then may take effect for another minute.
LATE_MS = 60_000
# A reassignment in one of these loads no broker, since it copies nothing. A restore only drops replicas or reorders
# them; a rollback that needs copies goes by steps, like every other move.
WEIGHTLESS = frozenset({Phase.PENDING, Phase.RESTORING, Phase.RESTORE_INTENDED})


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One alter call on the way: `expected` is the list it starts from, `replicas` the list it asks for.

    `leader` led when the step was planned, None without a leader. `copy_bytes` is the size of one copy, None if
    unknown.
    """

    number: int
    final: bool
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    leader: int | None
    copy_bytes: int | None = None

    @property
    def adding(self) -> tuple[int, ...]:
        """The brokers that get a copy in this step."""
        return adding_of(self.expected, self.replicas)

    @property
    def load(self) -> BrokerDirections:
        """The directions that this step loads: out of the leader and into each added broker, once per copy."""
        return directions_of(self.adding, self.leader)

    @property
    def slot_share(self) -> int:
        """The share of a broker's slot that each of its copies takes, in sixteenths."""
        return share_of(self.copy_bytes)

    @property
    def moves_leader(self) -> bool:
        """Whether leadership moves with it (R435-8): the leader is dropped, or the list begins with an added broker."""
        return moves_leader(self.expected, self.replicas, self.leader)


# Cached, because it is needed whenever a step begins or ends, and a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def adding_of(expected: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return the brokers that get a copy in a step from one list to another."""
    return tuple(broker for broker in replicas if broker not in expected)


def moves_leader(expected: tuple[int, ...], replicas: tuple[int, ...], leader: int | None) -> bool:
    """Whether leadership moves with a step (R435-8): the leader is dropped, or the list begins with an added broker."""
    return leader is not None and (leader not in replicas or replicas[0] not in {leader, *expected})


class Block(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reason to wait, with the remedy in `detail`, and its start (ms since the epoch, log time)."""

    why: Blocker
    detail: str
    since_ms: int


class Asked(Struct, frozen=True, gc=False, omit_defaults=True):
    """The last requested cancellation: its author, reason and start; it holds until it is withdrawn."""

    mode: CancelMode
    by: str
    reason: str
    since_ms: int


class Replacement(Struct, frozen=True, gc=False, omit_defaults=True):
    """The target, with its plan, that replaces the present one in the record that ends the reassignment (R455-8)."""

    plan: str
    target: tuple[int, ...]


class Reassignment(Struct, frozen=True, gc=False, omit_defaults=True):
    """One partition on its way from its original replica list to a target.

    `current` is the list the next step starts from: the original at first, then each confirmed step's. `step` is the
    running or last step. `outcome_unknown` says that the last call's outcome was lost. `attempts` counts calls in a row
    that lapsed. `number` is the order of acceptance within the cluster. `cancel_mode` says which cancellation was asked
    for; `restoring` is the list of the last restore call. `unresolved_targets` holds every list that was sent with an
    outcome that stayed unknown: if one appears later, it is Drover's own. `repaired` says that a move with a broker
    both added and removed was cancelled once since a cancellation was last requested. `asked` is that request, and
    `deferred_by` the guard that holds it off for now (R236-8); requests of older logs are not kept. `returning_to` is
    the list to which the steps of a rollback lead. `bytes_unknown` says that a confirmed step was over before it was
    sampled. `unregistered` are the brokers that Kafka has no registration for, by its answers. `is_settled` says that
    Kafka has ended or refused the last call: a move that it lists now is somebody else's, whatever its list is.
    """

    key: TopicPartition
    topic_id: str
    plan: str
    number: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    created_ms: int
    phase: Phase
    since_ms: int
    current: tuple[int, ...]
    step: Step | None = None
    cancel_mode: CancelMode | None = None
    outcome_unknown: bool = False
    attempts: int = 0
    bytes_copied: int = 0
    block: Block | None = None
    replacement: Replacement | None = None
    restoring: tuple[int, ...] | None = None
    unresolved_targets: tuple[tuple[int, ...], ...] = ()
    repaired: bool = False
    asked: Asked | None = None
    deferred_by: SkipReason | None = None
    returning_to: tuple[int, ...] | None = None
    bytes_unknown: bool = False
    unregistered: tuple[int, ...] = ()
    is_settled: bool = False

    @property
    def call(self) -> Call:
        """The call that is next, open, or was the last to be made."""
        return self.phase.call

    @property
    def stage(self) -> Stage:
        """The stage of that call."""
        return self.phase.stage

    @property
    def in_flight(self) -> bool:
        """Whether the reassignment holds a slot."""
        return self.phase is not _PENDING

    @property
    def call_open(self) -> bool:
        """Whether a call's outcome is still open."""
        return self.phase in OPEN_PHASES

    @property
    def is_cancelled(self) -> bool:
        """Whether the reassignment is being rolled back or stopped."""
        return self.cancel_mode is not None

    @property
    def awaits_cancel(self) -> bool:
        """Whether the end of an open call leads to a cancel: it is cancelled, and does not return by steps."""
        return self.cancel_mode is not None and self.returning_to is None

    @property
    def step_target(self) -> tuple[int, ...]:
        """The list to which its steps lead: the target, or the original one for a rollback that needs copies."""
        return self.target if self.returning_to is None else self.returning_to

    @property
    def is_adopted(self) -> bool:
        """Whether it was taken over in order to be cancelled, so that its target is its original list."""
        return self.target == self.original

    @property
    def destination(self) -> tuple[int, ...]:
        """The list at which a cancel ends: the original one, or the list that the confirmed steps have made.

        The latter for a stop, and where a step is given up for another one.
        """
        is_given_up = self.cancel_mode is None and self.call is not Call.STEP
        return self.current if is_given_up or self.cancel_mode is CancelMode.STOP else self.original

    @property
    def fallback(self) -> tuple[int, ...]:
        """The list that serves once a running step is cancelled.

        The confirmed list where confirmed steps have dropped some of the destination; else the destination, since other
        replicas in the list are dropped next.
        """
        return self.destination if set(self.destination) <= set(self.current) else self.current

    def late_lists(self, at_ms: int) -> tuple[tuple[int, ...], ...]:
        """Return the lists of calls of unknown outcome that may still take effect.

        Once Kafka has ended or refused the last call, earlier ones expire after `LATE_MS` of log time.
        """
        return () if self.is_settled and at_ms - self.since_ms >= LATE_MS else self.unresolved_targets

    def own_lists(self, at_ms: int) -> frozenset[tuple[int, ...]]:
        """Return the lists to which Kafka may be moving the partition because of calls of this reassignment.

        The original list is one of them only while it is sent back, so that somebody else's move there is left alone.
        """
        lists = set(self.late_lists(at_ms))
        if self.is_settled:
            return frozenset(lists)
        if self.restoring is not None:
            lists.add(self.restoring)
        elif self.step is not None and self.step.replicas != self.current:
            lists.add(self.step.replicas)
        return frozenset(lists)

    @property
    def weighing_step(self) -> Step | None:
        """The step that loads brokers now; None between two steps and during a restore."""
        step = self.step
        return None if step is None or self.phase in WEIGHTLESS or self.current == step.replicas else step

    @property
    def load(self) -> BrokerDirections:
        """The directions that the reassignment uses now."""
        step = self.weighing_step
        return () if step is None else step.load


class ExpiredCalls(Struct, frozen=True, gc=False, omit_defaults=True):
    """Calls of unknown outcome of a reassignment that has ended, remembered for `LATE_MS` of log time.

    `sent` are the lists of those calls; `replicas` is the list at the end, which a late effect would change.
    """

    topic_id: str
    plan: str
    sent: tuple[tuple[int, ...], ...]
    replicas: tuple[int, ...]
    ended_ms: int
