"""The state of one managed cluster: its reassignments, plans, limits and throttle ledger.

Values are frozen (msgspec structs, whose copies with changes are made in C: see docs/decisions/0004-state-values.md);
`ClusterState` owns the maps and the indexes over them and changes through `apply` only, which folds
one event.

The state hash leaves out what is at its default (`drover.shard.state_hash`): a field that is added here later needs a
default under which old logs mean what they meant.
"""

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct, field

from drover.plans.state import PlansState
from drover.reassignment.phase import OPEN_PHASES, Phase, Stage
from drover.reassignment.ports import Port, Ports, ports_of
from drover.reassignment.slot_share import share_of
from drover.state.declared import index, items_by_key, recorded, values_in_order
from drover.state.lists import ListsState
from events.partitions import TopicPartition
from events.reassignments import Blocker, Call, CancelMode, SkipReason

# A call of Drover's ends within 4 s; what is in the network's buffers even then is given a minute.
LATE_MS = 60_000

# Looking an enum's member up takes longer than all else in some of the functions that every event runs through.
_PENDING = Phase.PENDING
# In flight, and the next step's call is still to be intended.
_BEFORE_STEP = frozenset({Phase.PREPARED, Phase.CONFIRMED})
_INDEXED = _BEFORE_STEP | {_PENDING}
# A reassignment in one of these weighs on no broker: nothing is copied for it. A restore only drops replicas or puts
# them in order; a rollback that needs copies goes by steps, like every other move.
_WEIGHTLESS = frozenset({Phase.PENDING, Phase.RESTORING, Phase.RESTORE_INTENDED})


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One alter call on the way: `expected` is the list it starts from, `replicas` the list it asks for.

    `leader` led when the step was planned (None: nobody). `copy_bytes` is the size of one copy, as far as it was known.
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
        return _adding(self.expected, self.replicas)

    @property
    def load(self) -> Ports:
        """The ports this step weighs on: the leader's way out and the way into each added broker, once per copy."""
        return ports_of(self.adding, self.leader)

    @property
    def slot_share(self) -> int:
        """What each of its copies takes of a slot, in sixteenths."""
        return share_of(self.copy_bytes)

    @property
    def moves_leader(self) -> bool:
        """Whether leadership moves with it (R435-8): the leader goes, or what is to lead is brought in first."""
        return _moves_leader(self.expected, self.replicas, self.leader)


# These are asked for at every event of a partition; a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def _adding(expected: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in replicas if broker not in expected)


def _moves_leader(expected: tuple[int, ...], replicas: tuple[int, ...], leader: int | None) -> bool:
    return leader is not None and (leader not in replicas or replicas[0] not in {leader, *expected})


@lru_cache(maxsize=4096)
def _weight(expected: tuple[int, ...], replicas: tuple[int, ...], leader: int | None) -> tuple[int, bool, Ports]:
    """Return a step's number of copies, whether a leader moves with it, and its ports."""
    adding = _adding(expected, replicas)
    return len(adding), _moves_leader(expected, replicas, leader), ports_of(adding, leader)


class Block(Struct, frozen=True, gc=False, omit_defaults=True):
    """Why a reassignment waits, what would unblock it, and since when (wall clock of the log, ms since epoch)."""

    why: Blocker
    detail: str
    since_ms: int


class Asked(Struct, frozen=True, gc=False, omit_defaults=True):
    """The cancellation that was asked for last, by whom, and since when; it holds until it is withdrawn."""

    mode: CancelMode
    by: str
    reason: str
    since_ms: int


class Replacement(Struct, frozen=True, gc=False, omit_defaults=True):
    """The target that is queued, under its plan, in the record that ends the running reassignment (R455-8)."""

    plan: str
    target: tuple[int, ...]


class Reassignment(Struct, frozen=True, gc=False, omit_defaults=True):
    """One partition on its way from its original replica list to a target.

    `current` is the list the next step starts from: the original at first, then each confirmed step's. `step` is the
    running or last step. `unsure` says that the last call's outcome was lost. `attempts` counts calls in a row that
    lapsed. `number` is the order of acceptance within the cluster. `cancel_mode` says which cancellation was asked for;
    `restoring` is the list of the last restore call. `unresolved_targets` holds every list that was sent with an
    outcome that stayed unknown: should one show up later, it is Drover's own doing. `repaired` says that Kafka's odd
    state (a broker both added and removed) was found and cancelled once since a cancellation was last asked for.
    `asked` is that request, and `held_off` the guard because of which the reassignment goes on in spite of it (R236-8);
    requests of older logs are not kept. `returning_to` is the list to which the steps of a rollback lead.
    `bytes_unknown` says that a confirmed step was over before it was sampled.
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
    unresolved_targets: tuple[tuple[int, ...], ...] = field(default=(), name="lost_lists")
    repaired: bool = field(default=False, name="mended")
    asked: Asked | None = None
    held_off: SkipReason | None = None
    returning_to: tuple[int, ...] | None = None
    bytes_unknown: bool = False

    @property
    def call(self) -> Call:
        """The call that is next, open, or was the last to be made."""
        return self.phase.call

    @property
    def stage(self) -> Stage:
        """How far that call is."""
        return self.phase.stage

    @property
    def in_flight(self) -> bool:
        """Whether it holds a slot."""
        return self.phase is not _PENDING

    @property
    def call_open(self) -> bool:
        """Whether the outcome of a call is still to come."""
        return self.phase in OPEN_PHASES

    @property
    def is_cancelled(self) -> bool:
        """Whether it is being rolled back or stopped."""
        return self.cancel_mode is not None

    @property
    def awaits_cancel(self) -> bool:
        """Whether it is cancelled and goes by no steps: the end of an open call leads to a cancel."""
        return self.cancel_mode is not None and self.returning_to is None

    @property
    def heading(self) -> tuple[int, ...]:
        """The list to which its steps lead: the target, or the original one for a rollback that needs copies."""
        return self.target if self.returning_to is None else self.returning_to

    @property
    def is_adopted(self) -> bool:
        """Whether it was taken over in order to be cancelled: it has nowhere else to go."""
        return self.target == self.original

    @property
    def destination(self) -> tuple[int, ...]:
        """The list at which a cancel ends: the original, or what the confirmed steps have made of it.

        The latter for a stop, and where a step is given up for another one.
        """
        is_given_up = self.cancel_mode is None and self.call is not Call.STEP
        return self.current if is_given_up or self.cancel_mode is CancelMode.STOP else self.original

    @property
    def fallback(self) -> tuple[int, ...]:
        """The list that serves once a running step is cancelled.

        The confirmed list where confirmed steps have dropped some of the destination; else the destination, since what
        steps have added beside it is dropped next.
        """
        return self.destination if set(self.destination) <= set(self.current) else self.current

    @property
    def weighing_step(self) -> Step | None:
        """The step that weighs on the cluster now; None between two steps, and once it is being restored."""
        step = self.step
        return None if step is None or self.phase in _WEIGHTLESS or self.current == step.replicas else step

    @property
    def load(self) -> Ports:
        """The ports it weighs on now."""
        step = self.weighing_step
        return () if step is None else step.load


class ExpiredCalls(Struct, frozen=True, gc=False, omit_defaults=True):
    """Calls of unknown outcome of a reassignment that has ended, remembered for `LATE_MS` of log time.

    `sent` are the lists of those calls; `replicas` is the list at the end, which a late effect would disturb.
    """

    topic_id: str
    plan: str
    sent: tuple[tuple[int, ...], ...]
    replicas: tuple[int, ...]
    ended_ms: int


@dataclass(eq=False)
class ReassignmentState(PlansState, ListsState):
    """The reassignments of a cluster that have not ended, and what late calls may still do.

    `reassignments` are in the order of acceptance, which is the order in which they start. `expired_calls` is what
    calls of ended reassignments may still do. `pending` and `in_flight` split the keys of `reassignments`, in no order;
    `unblocked_pending` counts the pending ones without a block; `before_step` are those in flight that wait for a step
    to start; `loads` counts copies per way into and out of a broker, and `slots` what they take of its slots, in
    sixteenths; `copies_in_flight` counts all copies, `bytes_in_flight` how much they copy, where that is known, and
    `leader_steps` the steps in flight with which a leader moves.
    """

    reassignments: dict[TopicPartition, Reassignment] = recorded(
        "reassignments",
        factory=dict,
        content=values_in_order,
        key=attrgetter("key"),
        told_as=("reassignment", "begun", "ended"),
    )
    next_number: int = recorded("next_number", 1)
    expired_calls: dict[TopicPartition, ExpiredCalls] = recorded(
        "given_up", factory=dict, content=items_by_key, told_as=("late calls", "possible", "past")
    )
    pending: dict[TopicPartition, None] = index(dict)
    in_flight: dict[TopicPartition, None] = index(dict)
    before_step: dict[TopicPartition, None] = index(dict)
    unblocked_pending: int = index(int)
    loads: dict[Port, int] = index(dict)
    slots: dict[Port, int] = index(dict)
    copies_in_flight: int = index(int)
    bytes_in_flight: int = index(int)
    leader_steps: int = index(int)

    def rebuild_indexes(self) -> None:
        """Index every reassignment anew."""
        super().rebuild_indexes()
        self.pending, self.in_flight, self.before_step, self.loads, self.slots = {}, {}, {}, {}, {}
        self.unblocked_pending = self.copies_in_flight = self.bytes_in_flight = self.leader_steps = 0
        for reassignment in self.reassignments.values():
            self._index(reassignment)

    def put(self, reassignment: Reassignment) -> None:
        """Store a new reassignment and index it."""
        key = reassignment.key
        assert key not in self.reassignments, f"{key} is under way already"
        self.reassignments[key] = reassignment
        self._index(reassignment)

    def _index(self, reassignment: Reassignment) -> None:
        key = reassignment.key
        if reassignment.phase is _PENDING:
            self.pending[key] = None
            self.unblocked_pending += reassignment.block is None
        else:
            self.in_flight[key] = None
            if reassignment.phase in _BEFORE_STEP:
                self.before_step[key] = None
            self._weigh(None, reassignment.weighing_step)

    def change(self, before: Reassignment, after: Reassignment) -> None:
        """Replace a reassignment and keep the indexes true."""
        key = before.key
        self.reassignments[key] = after
        was, now = before.phase, after.phase
        if was is not now and (was in _INDEXED or now in _INDEXED):
            self._change_phase(key, was, now)
        if was is _PENDING and before.block is None:
            self.unblocked_pending -= 1
        if now is _PENDING and after.block is None:
            self.unblocked_pending += 1
        # Most events change neither step nor list: what they weigh need not be asked.
        same = before.step is after.step and before.current is after.current
        if not same or (was in _WEIGHTLESS) is not (now in _WEIGHTLESS):
            self._weigh(before.weighing_step, after.weighing_step)

    def _change_phase(self, key: TopicPartition, was: Phase, now: Phase) -> None:
        if (was is _PENDING) is not (now is _PENDING):
            left, entered = (self.pending, self.in_flight) if was is _PENDING else (self.in_flight, self.pending)
            del left[key]
            entered[key] = None
        if now in _BEFORE_STEP:
            self.before_step[key] = None
        elif was in _BEFORE_STEP:
            del self.before_step[key]

    def drop(self, reassignment: Reassignment) -> None:
        """Forget a reassignment that has ended."""
        key = reassignment.key
        del self.reassignments[key]
        if reassignment.phase is _PENDING:
            del self.pending[key]
            self.unblocked_pending -= reassignment.block is None
        else:
            del self.in_flight[key]
            self.before_step.pop(key, None)
            self._weigh(reassignment.weighing_step, None)

    def _weigh(self, before: Step | None, after: Step | None) -> None:
        if before is after or before == after:
            return
        loads, slots = self.loads, self.slots
        if before is not None:
            copies, moves_leader, load = _weight(before.expected, before.replicas, before.leader)
            self.copies_in_flight -= copies
            self.leader_steps -= moves_leader
            if before.copy_bytes:
                self.bytes_in_flight -= copies * before.copy_bytes
            share = share_of(before.copy_bytes)
            for port in load:
                left = loads[port] - 1
                if left:
                    loads[port] = left
                    slots[port] -= share
                else:
                    del loads[port], slots[port]
        if after is not None:
            copies, moves_leader, load = _weight(after.expected, after.replicas, after.leader)
            self.copies_in_flight += copies
            self.leader_steps += moves_leader
            if after.copy_bytes:
                self.bytes_in_flight += copies * after.copy_bytes
            share = share_of(after.copy_bytes)
            for port in load:
                loads[port] = loads.get(port, 0) + 1
                slots[port] = slots.get(port, 0) + share
