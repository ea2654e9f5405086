"""The gates in front of a step: everything that can keep it from beginning, in the order in which they are checked.

PURE. The starter asks whether a gate is shut; `status`, the page and the queue of KIP-236 also ask for the words. A new
limit is one more gate here. Gates see a cluster through a `View`: by the log alone, or with its owner's observations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal, NamedTuple

from drover.events.partitions import TopicPartition
from drover.reconcile.throttles.ahead import MAX_ENTRIES_PER_TOPIC
from drover.state.broker_directions import BrokerDirection, BrokerDirections
from drover.state.cluster import ClusterState
from drover.state.scheduling import ClosedWindow, Limits
from drover.state.slot_share import WHOLE_SLOT
from drover.windows import in_words

NO_PARTITION = TopicPartition("", -1)


class Severity(StrEnum):
    """How bad it is: `note` is part of the work, `warn` was asked for or ends by itself, `bad` needs an operator."""

    NOTE = "note"
    WARN = "warn"
    BAD = "bad"


class Waiting(NamedTuple):
    """Why something waits: the reason and its code, what ends it, and since when (ms since the epoch)."""

    code: str
    severity: Severity
    why: str
    remedy: str
    since_ms: int

    def __str__(self) -> str:
        """Return the reason and the remedy as one line."""
        return f"{self.why}: {self.remedy}"


class Uplink(NamedTuple):
    """One direction of a rack's uplink: copies into the rack from others, or out of it to others."""

    rack: str
    way: Literal["in", "out"]


class Budget(Enum):
    """A limit on the copies, or leaders, that the whole cluster has under way."""

    COPIES = "max_replica_copies_in_flight"
    LEADERS = "max_leader_movements"


class Start(NamedTuple):
    """A step that would begin: the room that it takes, and since when it waits.

    `directions` and `uplinks` name those that each copy passes, once per copy; a copy takes `share` sixteenths of a
    slot of each. `entries` is how many entries it needs in its topic's list of throttled replicas. `is_observed` says
    that the step follows from an observation: without one it is only the likely one.
    """

    key: TopicPartition = NO_PARTITION
    plan: str = ""
    since_ms: int = 0
    directions: BrokerDirections = ()
    uplinks: tuple[Uplink, ...] = ()
    copies: int = 0
    moves_leader: bool = False
    share: int = WHOLE_SLOT
    is_pending: bool = False
    entries: int = 0
    is_observed: bool = False

    @property
    def slots(self) -> tuple[BrokerDirection | Uplink, ...]:
        """The directions and uplinks of which its copies take slots, once per copy."""
        passed: tuple[BrokerDirection | Uplink, ...] = self.directions
        return passed + self.uplinks


class View:
    """A cluster as gates see it, by the log alone: neither racks nor lists of throttled replicas are in it."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    def slots_taken(self, direction: BrokerDirection, key: TopicPartition) -> int:
        """Return the sixteenths of slots that are taken in this direction, as far as partition `key` is concerned."""
        del key
        return self.state.moves.slots.get(direction, 0)

    def uplink_taken(self, uplink: Uplink, key: TopicPartition) -> int:
        """Return the sixteenths of slots that are taken on a rack's uplink."""
        del uplink, key
        return 0

    def budget_taken(self, budget: Budget) -> int:
        """Return how much of a budget is taken."""
        state = self.state
        return state.moves.copies_in_flight if budget is Budget.COPIES else state.leader_movements

    def is_waited_for(self, broker: int, start: Start) -> bool:
        """Whether a step waits for room at a broker."""
        del broker, start
        return True

    def throttle_entries(self, topic: str) -> int:
        """Return how many entries a topic's list of throttled replicas has."""
        del topic
        return 0


def limit_of(limits: Limits, direction: BrokerDirection) -> int:
    """Return how many slots a broker has in this direction: whole copies at a time."""
    return limits.max_incoming if direction.way == "in" else limits.max_outgoing


def _exceeds(taken: int, wanted: int, most: int) -> bool:
    """Whether a limit forbids so much more; a step that exceeds it by itself goes alone."""
    return bool(taken) and taken + wanted > most


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that keeps a step from beginning: its code, and two functions of a step and a view.

    `is_shut` says whether it keeps the step from beginning now; `words` returns why, what opens it, and since when it
    has been shut (ms since the epoch, 0 if that does not count), for a gate that is shut.
    """

    code: str
    severity: Severity
    is_shut: Callable[[Start, View], bool]
    words: Callable[[Start, View], tuple[str, str, int]]

    def blocked(self, start: Start, view: View) -> Waiting | None:
        """Return why the step waits here; None if it may pass."""
        if not self.is_shut(start, view):
            return None
        why, remedy, since_ms = self.words(start, view)
        return Waiting(self.code, self.severity, why, remedy, max(start.since_ms, since_ms))


# The cluster has answered, and it is the one that was first identified under its name.
def _cluster_known_shut(_start: Start, view: View) -> bool:
    return not view.state.is_right_cluster


def _cluster_known_words(_start: Start, view: View) -> tuple[str, str, int]:
    other = view.state.mismatched_kafka_cluster_id
    if other is None:
        return "the cluster has not answered yet", "its first answer", 0
    why = f"another Kafka cluster ({other}) answers under this name"
    return why, "correct the bootstrap address; until then nothing is sent", 0


CLUSTER_KNOWN = Gate("cluster-unknown", Severity.BAD, _cluster_known_shut, _cluster_known_words)


# The cluster is not frozen (R236-9).
def _not_frozen_shut(_start: Start, view: View) -> bool:
    return view.state.freeze is not None


def _not_frozen_words(_start: Start, view: View) -> tuple[str, str, int]:
    freeze = view.state.freeze
    assert freeze is not None, "the gate is shut"
    return f"withheld, frozen by {freeze.by} ({freeze.reason})", "`drover unfreeze`", freeze.since_ms


NOT_FROZEN = Gate("frozen", Severity.WARN, _not_frozen_shut, _not_frozen_words)


# A maintenance window is open, or there are none.
def _in_window_shut(_start: Start, view: View) -> bool:
    return "" in view.state.closed_windows


def _in_window_words(_start: Start, view: View) -> tuple[str, str, int]:
    return _window_words("no maintenance window", view.state.closed_windows[""])


def _window_words(windows: str, closed: ClosedWindow) -> tuple[str, str, int]:
    why = f"withheld, {windows} is open ({closed.windows})"
    return why, f"the next one opens at {in_words(closed.opens_at_ms)}", closed.since_ms


IN_WINDOW = Gate("window-closed", Severity.NOTE, _in_window_shut, _in_window_words)


# The cluster is not being migrated from ZooKeeper to KRaft.
def _not_migrating_shut(_start: Start, view: View) -> bool:
    return view.state.is_migrating


def _not_migrating_words(_start: Start, _view: View) -> tuple[str, str, int]:
    return "withheld, the cluster is being migrated from ZooKeeper to KRaft", "the end of the migration", 0


NOT_MIGRATING = Gate("migrating", Severity.WARN, _not_migrating_shut, _not_migrating_words)


# The plan is not paused.
def _plan_running_shut(start: Start, view: View) -> bool:
    return start.plan in view.state.paused_plans


def _plan_running_words(start: Start, view: View) -> tuple[str, str, int]:
    paused, plan = view.state.paused_plans[start.plan], start.plan
    return (
        f"withheld, plan {plan} is paused by {paused.by} ({paused.reason})",
        f"`drover resume {plan}`",
        paused.since_ms,
    )


PLAN_RUNNING = Gate("plan-paused", Severity.WARN, _plan_running_shut, _plan_running_words)


# A maintenance window of the plan is open, or it has none of its own.
def _plan_in_window_shut(start: Start, view: View) -> bool:
    return bool(start.plan) and start.plan in view.state.closed_windows


def _plan_in_window_words(start: Start, view: View) -> tuple[str, str, int]:
    return _window_words(f"no maintenance window of plan {start.plan}", view.state.closed_windows[start.plan])


PLAN_IN_WINDOW = Gate("plan-window-closed", Severity.NOTE, _plan_in_window_shut, _plan_in_window_words)


# No partition is below min.insync.replicas, or this is one of those: its copies repair it.
def _enough_in_sync_shut(start: Start, view: View) -> bool:
    return start.copies > 0 and view.state.is_suspended(start.key)


def _enough_in_sync_words(_start: Start, view: View) -> tuple[str, str, int]:
    suspension = view.state.suspension
    assert suspension is not None, "the gate is shut"
    have = "partition has" if suspension.count == 1 else "partitions have"
    why = f"withheld, {suspension.count} {have} fewer replicas in sync than min.insync.replicas"
    return why, "their repair, or `drover limits set adapts_to_health=false`", suspension.since_ms


ENOUGH_IN_SYNC = Gate("below-min-isr", Severity.BAD, _enough_in_sync_shut, _enough_in_sync_words)


# Fewer partitions are in flight than may be; one that is in flight keeps its slot until its end.
def _partition_slots_shut(start: Start, view: View) -> bool:
    state = view.state
    return start.is_pending and len(state.moves.in_flight) >= state.limits.max_partitions_in_flight


def _partition_slots_words(_start: Start, view: View) -> tuple[str, str, int]:
    count, most = len(view.state.moves.in_flight), view.state.limits.max_partitions_in_flight
    why = f"a slot of the cluster ({count} of {most} partitions in flight)"
    return why, f"the end of one of them (max_partitions_in_flight is {most})", 0


PARTITION_SLOTS = Gate("max-partitions-in-flight", Severity.NOTE, _partition_slots_shut, _partition_slots_words)


# No broker of the step is held in the direction of its copy.
def _broker_open_shut(start: Start, view: View) -> bool:
    return bool(view.state.held_brokers) and _broker_open_held(start, view) is not None


def _broker_open_held(start: Start, view: View) -> BrokerDirection | None:
    holds = view.state.held_brokers
    for direction in start.directions:
        hold = holds.get(direction.broker)
        if hold is not None and hold.holds(direction.way) and view.is_waited_for(direction.broker, start):
            return direction
    return None


def _broker_open_words(start: Start, view: View) -> tuple[str, str, int]:
    direction = _broker_open_held(start, view)
    assert direction is not None, "the gate is shut"
    hold = view.state.held_brokers[direction.broker]
    role = "destination" if direction.way == "in" else "source"
    why = f"withheld, broker {direction.broker} is held as a {role} by {hold.by} ({hold.reason})"
    return why, f"`drover broker release {direction.broker}`", hold.since_ms


BROKER_OPEN = Gate("broker-held", Severity.WARN, _broker_open_shut, _broker_open_words)


# Every broker of the step has slots for its copies.
def _broker_slots_shut(start: Start, view: View) -> bool:
    return _broker_slots_full(start, view) is not None


def _broker_slots_full(start: Start, view: View) -> BrokerDirection | None:
    directions = start.directions
    for direction in directions if len(directions) <= 2 else dict.fromkeys(directions):
        taken = view.slots_taken(direction, start.key)
        if not taken:
            continue
        state = view.state
        slots = state.slots_of(direction.broker, limit_of(state.limits, direction))
        if _exceeds(taken, directions.count(direction) * start.share, slots * WHOLE_SLOT) and view.is_waited_for(
            direction.broker, start
        ):
            return direction
    return None


def _broker_slots_words(start: Start, view: View) -> tuple[str, str, int]:
    direction, state = _broker_slots_full(start, view), view.state
    assert direction is not None, "the gate is shut"
    taken, copies = view.slots_taken(direction, start.key), state.moves.loads.get(direction, 0)
    limit = state.slots_of(direction.broker, limit_of(state.limits, direction))
    lowered = state.allowances.get(direction.broker)
    budgets, is_in = state.limits.budgets, direction.way == "in"
    has_own = (budgets.max_incoming_per_broker if is_in else budgets.max_outgoing_per_broker) is not None
    name = f"max_{'incoming' if is_in else 'outgoing'}_per_broker" if has_own else "max_moves_per_broker"
    why = f"slots of broker {direction.broker} ({copies} of {limit} copies {direction.way})"
    if taken < copies * WHOLE_SLOT:
        slots = f"{taken / WHOLE_SLOT:.1f} of {limit} slots"
        why = f"slots of broker {direction.broker} ({copies} copies {direction.way} take {slots})"
    cause = f"{name} is {limit}" if lowered is None else f"lowered for a time: {lowered.detail}"
    return why, f"the end of one of them ({cause})", 0


BROKER_SLOTS = Gate("broker-slots", Severity.NOTE, _broker_slots_shut, _broker_slots_words)


# The uplink of every rack that a copy passes has a slot for it.
def _rack_slots_shut(start: Start, view: View) -> bool:
    return bool(start.uplinks) and _rack_slots_full(start, view) is not None


def _rack_slots_full(start: Start, view: View) -> Uplink | None:
    most = view.state.limits.budgets.max_moves_per_rack
    if most is None:
        return None
    for uplink in dict.fromkeys(start.uplinks):
        wanted = start.uplinks.count(uplink) * start.share
        if _exceeds(view.uplink_taken(uplink, start.key), wanted, most * WHOLE_SLOT):
            return uplink
    return None


def _rack_slots_words(start: Start, view: View) -> tuple[str, str, int]:
    uplink, most = _rack_slots_full(start, view), view.state.limits.budgets.max_moves_per_rack
    assert uplink is not None, "the gate is shut"
    way = "into" if uplink.way == "in" else "out of"
    why = f"a slot, the uplink {way} rack {uplink.rack} is full"
    return why, f"the end of a copy {way} it (max_moves_per_rack is {most})", 0


RACK_SLOTS = Gate("max-moves-per-rack", Severity.NOTE, _rack_slots_shut, _rack_slots_words)


# Fewer copies are under way than may be.
def _copies_in_flight_shut(start: Start, view: View) -> bool:
    most = view.state.limits.budgets.max_replica_copies_in_flight
    return bool(most is not None and start.copies and _exceeds(view.budget_taken(Budget.COPIES), start.copies, most))


def _copies_in_flight_words(_start: Start, view: View) -> tuple[str, str, int]:
    most = view.state.limits.budgets.max_replica_copies_in_flight
    why = f"a slot, {view.budget_taken(Budget.COPIES)} copies are under way"
    return why, f"the end of one of them (max_replica_copies_in_flight is {most})", 0


COPIES_IN_FLIGHT = Gate("max-replica-copies-in-flight", Severity.NOTE, _copies_in_flight_shut, _copies_in_flight_words)


# Fewer bytes are being copied than may be; a copy's bytes count once it is under way.
def _bytes_in_flight_shut(start: Start, view: View) -> bool:
    most = view.state.limits.budgets.max_bytes_in_flight
    return bool(most is not None and start.copies and view.state.moves.bytes_in_flight >= most)


def _bytes_in_flight_words(_start: Start, view: View) -> tuple[str, str, int]:
    most = view.state.limits.budgets.max_bytes_in_flight
    why = f"a slot, {view.state.moves.bytes_in_flight:,} bytes are being copied"
    return why, f"the end of some of their copies (max_bytes_in_flight is {most:,})", 0


BYTES_IN_FLIGHT = Gate("max-bytes-in-flight", Severity.NOTE, _bytes_in_flight_shut, _bytes_in_flight_words)


# Fewer leaders are on their way than may be (R435-8), by steps, elections and reordered lists.
def _leader_movements_shut(start: Start, view: View) -> bool:
    most = view.state.limits.max_leader_movements
    return start.moves_leader and _exceeds(view.budget_taken(Budget.LEADERS), 1, most)


def _leader_movements_words(_start: Start, view: View) -> tuple[str, str, int]:
    most = view.state.limits.max_leader_movements
    why = f"a slot, {view.budget_taken(Budget.LEADERS)} leaders are on their way"
    return why, f"one of them has arrived (max_leader_movements is {most})", 0


LEADER_MOVEMENTS = Gate("max-leader-movements", Severity.NOTE, _leader_movements_shut, _leader_movements_words)


# The topic's list of throttled replicas takes the entries of the step.
def _throttle_room_shut(start: Start, view: View) -> bool:
    entries = start.entries
    return bool(entries) and view.throttle_entries(start.key.topic) + entries > MAX_ENTRIES_PER_TOPIC


def _throttle_room_words(start: Start, _view: View) -> tuple[str, str, int]:
    why = f"the list of throttled replicas of topic {start.key.topic} is full"
    return why, f"the end of some of its moves (a list takes {MAX_ENTRIES_PER_TOPIC:,} entries)", 0


THROTTLE_ROOM = Gate("throttled-replicas-full", Severity.NOTE, _throttle_room_shut, _throttle_room_words)


# The gates that are shut for every call; for every change but a cancellation; and for every step.
CALL_GATES: tuple[Gate, ...] = (CLUSTER_KNOWN,)
CHANGE_GATES: tuple[Gate, ...] = (CLUSTER_KNOWN, NOT_FROZEN, NOT_MIGRATING)
CLUSTER_GATES: tuple[Gate, ...] = (*CHANGE_GATES, IN_WINDOW)
# Those of one plan alone; and all that can keep every step of a plan from beginning.
OWN_PLAN_GATES: tuple[Gate, ...] = (PLAN_RUNNING, PLAN_IN_WINDOW)
PLAN_GATES: tuple[Gate, ...] = (*CLUSTER_GATES, *OWN_PLAN_GATES)
# Gates that open when a copy ends at a broker or on an uplink; and those that open when any copy or leader arrives.
SLOT_GATES: tuple[Gate, ...] = (BROKER_SLOTS, RACK_SLOTS)
BUDGET_GATES: tuple[Gate, ...] = (COPIES_IN_FLIGHT, BYTES_IN_FLIGHT, LEADER_MOVEMENTS)
# The gates behind the cluster's, in this order: what was asked for, slots, budgets, the topic's throttle list.
STEP_GATES: tuple[Gate, ...] = (
    *OWN_PLAN_GATES,
    ENOUGH_IN_SYNC,
    PARTITION_SLOTS,
    BROKER_OPEN,
    *SLOT_GATES,
    *BUDGET_GATES,
    THROTTLE_ROOM,
)
GATES: tuple[Gate, ...] = (*CLUSTER_GATES, *STEP_GATES)


_ANYTHING = Start(is_pending=True)


def first_shut(start: Start, view: View, gates: tuple[Gate, ...] = GATES) -> Gate | None:
    """Return the first gate that keeps a step from beginning; None if it may begin."""
    for gate in gates:
        if gate.is_shut(start, view):
            return gate
    return None


def waiting_at(start: Start, view: View, gates: tuple[Gate, ...] = GATES) -> Waiting | None:
    """Return why a step waits, by the first gate that is shut; None if it may begin."""
    gate = first_shut(start, view, gates)
    return None if gate is None else gate.blocked(start, view)


def changes_nothing(state: ClusterState) -> bool:
    """Whether a gate is shut for every change of the cluster."""
    return first_shut(_ANYTHING, View(state), CHANGE_GATES) is not None


def lapse(state: ClusterState, gates: tuple[Gate, ...]) -> str | None:
    """Say by the first gate that is shut why a call with a durable intent is not sent; None if it may be sent."""
    waiting = waiting_at(_ANYTHING, View(state), gates)
    return None if waiting is None else f"{waiting.why}: nothing was sent"


def calls_nothing(state: ClusterState) -> bool:
    """Whether a gate is shut for every call: the cluster that answers is not, or may not be, the one that is meant."""
    return first_shut(_ANYTHING, View(state), CALL_GATES) is not None


def begins_nothing(state: ClusterState) -> bool:
    """Whether a gate is shut for every step."""
    return first_shut(_ANYTHING, View(state), CLUSTER_GATES) is not None


def plan_waits(state: ClusterState, plan: str) -> Waiting | None:
    """Return why every step of a plan waits; None if one may begin."""
    return waiting_at(Start(plan=plan, is_pending=True), View(state), PLAN_GATES)


def hold_of(state: ClusterState, direction: BrokerDirection) -> Waiting | None:
    """Return the hold on a broker that keeps copies in this direction from starting; None if there is none."""
    return BROKER_OPEN.blocked(Start(directions=(direction,)), View(state))


def queue_closed(state: ClusterState) -> Waiting | None:
    """Return why every entry of the queue of KIP-236 waits; None if one may be taken."""
    if waiting := waiting_at(_ANYTHING, View(state), (*CLUSTER_GATES, PARTITION_SLOTS)):
        return waiting
    # Moves that are blocked, or whose plan may not begin a step, wait for something else: they hold up no entry.
    view = View(state)
    earlier = sum(
        count
        for plan, count in state.moves.unblocked_of.items()
        if first_shut(Start(plan=plan, is_pending=True), view, OWN_PLAN_GATES) is None
    )
    if not earlier:
        return None
    return Waiting("turn", Severity.NOTE, "its turn", f"{earlier} accepted before have not started", 0)


def entry_passed_over(key: TopicPartition, state: ClusterState) -> Waiting | None:
    """Return why an entry of the queue waits while later ones pass it; None if they may not."""
    entry, active = state.queue[key], state.reassignments.get(key)
    if waiting := waiting_at(Start(key, entry.plan, entry.since_ms), View(state), OWN_PLAN_GATES):
        return waiting
    if active is None:
        if key not in state.unmanaged:
            return None
        why, remedy = "somebody else's move of the partition", "its end"
        return Waiting("unmanaged-move", Severity.WARN, why, remedy, entry.since_ms)
    plan = None
    if active.target == entry.target and not active.is_cancelled:
        plan = active.plan
    elif active.replacement is not None and active.replacement.target == entry.target:
        plan = active.replacement.plan
    if plan is None:
        return None
    why = f"its move to that very list in plan {plan}"
    return Waiting("same-target", Severity.NOTE, why, "its end", entry.since_ms)
