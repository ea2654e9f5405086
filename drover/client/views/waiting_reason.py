"""PURE: why a reassignment waits, what would let it go on, and since when; for every state (L8)."""

from drover.decide.replica_sets import adding
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CancelMode
from drover.reconcile.gates import (
    CALL_GATES,
    CLUSTER_GATES,
    STEP_GATES,
    Severity,
    Start,
    View,
    Waiting,
    hold_of,
    waiting_at,
)
from drover.state.broker_directions import BrokerDirection, directions_of
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment

# The phases before a next step; a rollback or stop goes on even while the cluster is frozen.
_STARTING = frozenset({Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED})
# A prepared step has already passed the gates of steps.
_GATED = _STARTING - {Phase.PREPARED}
_CALL_ENDS = "at most 4 s, and 5 s when its owner has changed"


def deferral_reason(entry: Reassignment) -> Waiting | None:
    """Say why a requested rollback or stop is deferred, and until when; None if there is none.

    The reassignment goes on meanwhile, so this is not a reason why the reassignment itself waits.
    """
    asked = entry.asked
    if asked is None or entry.deferred_by is None:
        return None
    back = entry.fallback if asked.mode is CancelMode.ROLLBACK else entry.current
    why = f"the {asked.mode.value} that {asked.by} asked for ({asked.reason}) is deferred, {entry.deferred_by.value}"
    remedy = (
        f"it is tried again once enough of replicas {', '.join(map(str, back))} are in sync; until then the move goes "
        "on, and an alter with the same target withdraws the cancel"
    )
    return Waiting("cancel-deferred", Severity.WARN, why, remedy, asked.since_ms)


def waiting_reason(state: ClusterState, key: TopicPartition) -> Waiting | None:
    """Say why an unfinished reassignment waits; None while it proceeds.

    A reassignment proceeds while it copies, and also if only the next observation of the cluster is missing (every
    150 ms; within 2 s if an unexpected answer must be confirmed).
    """
    entry = state.reassignments[key]
    start, view = _start_of(state, entry), View(state)
    if waiting := waiting_at(start, view, CALL_GATES):
        return waiting
    if entry.block is not None:
        return Waiting("blocked", Severity.BAD, entry.block.why.value, entry.block.detail, entry.block.since_ms)
    if call := _open_call(state, entry):
        return call
    if entry.phase in _STARTING and (waiting := waiting_at(start, view, CLUSTER_GATES)):
        return waiting
    if entry.phase in _GATED:
        return waiting_at(start, view, STEP_GATES) or _turn(state, entry)
    if entry.attempts:
        why = f"a pause after {entry.attempts} calls without effect"
        return Waiting("backoff", Severity.WARN, why, "the next try follows within 5 s", entry.since_ms)
    return _throttle(state, entry) if entry.phase is Phase.PREPARED else None


def _start_of(state: ClusterState, entry: Reassignment) -> Start:
    """Return the needs of the next step, without racks and the sizes of waiting moves, which the log does not have."""
    added = adding(entry.current, entry.step_target)
    leader = None if entry.step is None else entry.step.leader
    return Start(
        key=entry.key,
        plan=entry.plan,
        since_ms=entry.since_ms,
        directions=tuple(dict.fromkeys(directions_of(added, leader))) if added else (),
        copies=min(len(added), state.limits.max_replicas_per_step),
        moves_leader=bool(added) and entry.current[0] != entry.step_target[0],
        is_pending=entry.phase is Phase.PENDING,
    )


def _open_call(state: ClusterState, entry: Reassignment) -> Waiting | None:
    key, since_ms = entry.key, entry.since_ms
    if entry.call_open:
        why, remedy = f"the answer to its {entry.call.value} call", _CALL_ENDS
    elif key in state.elections:
        why, remedy = "the election of the leader that its last step brought in", _CALL_ENDS
        since_ms = state.elections[key].since_ms
    elif key in state.intended_orders:
        why, remedy = "the answer to the call that changes the order of its list", _CALL_ENDS
        since_ms = state.intended_orders[key].since_ms
    elif entry.outcome_unknown:
        why, remedy = "the last call's answer was lost", "an observation of the cluster shows its effect"
    else:
        return None
    return Waiting("call-open", Severity.NOTE, why, remedy, since_ms)


def _turn(state: ClusterState, entry: Reassignment) -> Waiting:
    """Return the reason behind gates that are open in the log: its turn, or gates that only the owner can judge.

    Between two steps, a reassignment keeps its slot and goes before pending ones, but takes room on brokers only when
    all of them have room: holding some while waiting for others could deadlock two reassignments.
    """
    others = _other_gates(state, entry)
    if entry.phase is Phase.CONFIRMED:
        remedy = f"an observation and room on its leader; it goes before all that is queued{others}"
        return Waiting("turn", Severity.NOTE, "its next step", remedy, entry.since_ms)
    remedy = f"what was accepted earlier comes first{others}"
    return Waiting("turn", Severity.NOTE, "a slot", remedy, entry.since_ms)


def _other_gates(state: ClusterState, entry: Reassignment) -> str:
    """Name the gates that only the owner can judge; the log has neither leaders, nor which racks and lists are full."""
    between_racks, throttled = state.limits.budgets.max_moves_per_rack, state.rate_of(entry.plan) is not None
    of_racks = "" if between_racks is None else f", or a rack's uplink is full (max_moves_per_rack is {between_racks})"
    of_lists = ", or the topic's list of throttled replicas is full" if throttled else ""
    return _held_leaders(state, entry) + of_racks + of_lists


def _held_leaders(state: ClusterState, entry: Reassignment) -> str:
    if not adding(entry.current, entry.step_target):
        return ""
    holds = {broker: hold_of(state, BrokerDirection(broker, "out")) for broker in entry.current}
    return "".join(f", or broker {broker} leads it: {hold}" for broker, hold in holds.items() if hold is not None)


def _throttle(state: ClusterState, entry: Reassignment) -> Waiting:
    brokers = () if entry.step is None else (*entry.step.expected, *entry.step.adding)
    owed = [str(broker) for broker in brokers if (throttle := state.broker_throttles.get(broker)) and throttle.pending]
    where = f" on broker {', '.join(owed)}" if owed else ""
    remedy = "it starts when that is done, without waiting for dead brokers"
    return Waiting("throttle-pending", Severity.NOTE, f"its throttle is being set{where}", remedy, entry.since_ms)
