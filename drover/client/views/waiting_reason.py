"""Why a reassignment waits: what holds it, what would let it go on, and since when; for every state there is (L8)."""

from dataclasses import dataclass

from drover.decide.replica_sets import adding
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CancelMode
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.ports import ports_of
from drover.state.reassignment import Reassignment
from drover.state.slot_share import WHOLE_SLOT

# Before its next step; a rollback or stop goes on also while the cluster is frozen.
_STARTING = frozenset({Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED})


@dataclass(frozen=True, slots=True)
class WaitingReason:
    """What a reassignment waits for: `why`, what `unblocks` it, and since when (ms since epoch)."""

    why: str
    unblocks: str
    since_ms: int

    def __str__(self) -> str:
        """Say both in one line."""
        return f"{self.why}: {self.unblocks}"


def held_off_reason(entry: Reassignment) -> WaitingReason | None:
    """Say why a rollback or stop that was asked for is not carried out, and what changes that; None if none waits.

    The reassignment goes on meanwhile, so this is no reason why it waits itself.
    """
    asked = entry.asked
    if asked is None or entry.held_off is None:
        return None
    back = entry.fallback if asked.mode is CancelMode.ROLLBACK else entry.current
    return WaitingReason(
        f"the {asked.mode.value} that {asked.by} asked for ({asked.reason}) is held off, {entry.held_off.value}",
        f"it is tried again when enough of replicas {', '.join(map(str, back))} are in sync; until then the move goes "
        "on, and an alter with the same target withdraws it",
        asked.since_ms,
    )


def waiting_reason(state: ClusterState, key: TopicPartition) -> WaitingReason | None:
    """Say what a reassignment that has not ended waits for; None while it is being worked on.

    Worked on is what copies, and what the next look at the cluster carries further (every 150 ms, an answer that does
    not fit twice within 2 s).
    """
    entry = state.reassignments[key]
    if state.mismatched_kafka_cluster_id is not None:
        why = f"another Kafka cluster ({state.mismatched_kafka_cluster_id}) answers under this name"
        return WaitingReason(why, "correct the bootstrap address; until then nothing is sent", entry.since_ms)
    if entry.block is not None:
        return WaitingReason(entry.block.why.value, entry.block.detail, entry.block.since_ms)
    if entry.call_open:
        why = f"the answer to its {entry.call.value} call"
        return WaitingReason(why, "at most 4 s, and 5 s when its owner has changed", entry.since_ms)
    if key in state.elections:
        why = "the election of the leader that its last step brought in"
        return WaitingReason(why, "at most 4 s, and 5 s when its owner has changed", state.elections[key].since_ms)
    if key in state.intended_orders:
        why = "the answer to the call that changes the order of its list"
        return WaitingReason(
            why, "at most 4 s, and 5 s when its owner has changed", state.intended_orders[key].since_ms
        )
    if entry.unsure:
        why = "the last call's answer was lost"
        return WaitingReason(why, "the cluster is looked at to see what it did", entry.since_ms)
    if state.freeze is not None and entry.phase in _STARTING:
        why = f"withheld, frozen by {state.freeze.by} ({state.freeze.reason})"
        return WaitingReason(why, "`drover unfreeze`", max(entry.since_ms, state.freeze.since_ms))
    if state.is_migrating and entry.phase in _STARTING:
        why = "withheld, the cluster is being migrated from ZooKeeper to KRaft"
        return WaitingReason(why, "the end of the migration", entry.since_ms)
    paused = state.paused_plans.get(entry.plan)
    if paused is not None and entry.phase in {Phase.PENDING, Phase.CONFIRMED}:
        why = f"withheld, plan {entry.plan} is paused by {paused.by} ({paused.reason})"
        return WaitingReason(why, f"`drover resume {entry.plan}`", max(entry.since_ms, paused.since_ms))
    suspension = state.suspension
    if suspension is not None and entry.phase in {Phase.PENDING, Phase.CONFIRMED} and state.is_suspended(key):
        have = "partition has" if suspension.count == 1 else "partitions have"
        why = f"withheld, {suspension.count} {have} fewer replicas in sync than min.insync.replicas"
        since_ms = max(entry.since_ms, suspension.since_ms)
        return WaitingReason(why, "their repair, or `drover limits set adapts_to_health=false`", since_ms)
    if entry.attempts and entry.phase not in {Phase.PENDING, Phase.CONFIRMED}:
        why = f"a pause after {entry.attempts} calls without effect"
        return WaitingReason(why, "the next try follows within 5 s", entry.since_ms)
    return _before_a_step(state, entry)


def _before_a_step(state: ClusterState, entry: Reassignment) -> WaitingReason | None:
    if entry.phase is Phase.PREPARED:
        return _throttle(state, entry)
    if entry.phase is Phase.CONFIRMED:
        return _full_brokers(state, entry) or _next_step(state, entry)
    if entry.phase is not Phase.PENDING:
        return None
    limit = state.limits.max_partitions_in_flight
    if len(state.moves.in_flight) >= limit:
        why = f"a slot, {len(state.moves.in_flight)} partitions are in flight"
        unblocks = f"the end of one of them (max_partitions_in_flight is {limit})"
        return WaitingReason(why, unblocks, entry.since_ms)
    full = _full_brokers(state, entry)
    if full is not None:
        return full
    unblocks = f"what was accepted earlier comes first{_other_ends(state, entry)}"
    return WaitingReason("a slot", unblocks, entry.since_ms)


def _next_step(state: ClusterState, entry: Reassignment) -> WaitingReason:
    """Between two steps: it keeps its slot, but takes room on brokers only when there is room on all it needs.

    Holding some while waiting for others could stop two such reassignments for ever. It goes before what is pending.
    """
    unblocks = f"a look at the partition, and room on its leader, before all that is queued{_other_ends(state, entry)}"
    return WaitingReason("its next step", unblocks, entry.since_ms)


def _other_ends(state: ClusterState, entry: Reassignment) -> str:
    """Name what may hold it up as well; the log does not say which rack or list is full, nor who leads."""
    between_racks, throttled = state.limits.budgets.max_moves_per_rack, state.rate_of(entry.plan) is not None
    of_racks = "" if between_racks is None else f", or a rack's uplink is full (max_moves_per_rack is {between_racks})"
    of_lists = ", or the topic's list of throttled replicas is full" if throttled else ""
    return _held_leaders(state, entry) + of_racks + of_lists


def _held_leaders(state: ClusterState, entry: Reassignment) -> str:
    if not adding(entry.current, entry.heading):
        return ""
    holds = {broker: state.held_brokers.get(broker) for broker in entry.current}
    found = [(broker, held) for broker, held in holds.items() if held is not None and held.holds("out")]
    return "".join(
        f", or broker {broker} leads it, which is held as a source by {held.by} ({held.reason}): "
        f"`drover broker release {broker}`"
        for broker, held in found
    )


def _throttle(state: ClusterState, entry: Reassignment) -> WaitingReason:
    brokers = () if entry.step is None else (*entry.step.expected, *entry.step.adding)
    owed = [str(broker) for broker in brokers if (known := state.broker_throttles.get(broker)) and known.pending]
    where = f" on broker {', '.join(owed)}" if owed else ""
    return WaitingReason(
        f"its throttle is being set{where}", "it starts when that is done; dead brokers are not waited for",
        entry.since_ms,
    )  # fmt: skip


def _full_brokers(state: ClusterState, entry: Reassignment) -> WaitingReason | None:
    """Name the first way into or out of a broker, or else the budget, that has no room for a copy that it needs."""
    added = adding(entry.current, entry.heading)
    leader = None if entry.step is None else entry.step.leader
    limits = state.limits
    for port in ports_of(added, leader) if added else ():
        held = state.held_brokers.get(port.broker)
        if held is not None and held.holds(port.way):
            role = "destination" if port.way == "in" else "source"
            why = f"withheld, broker {port.broker} is held as a {role} by {held.by} ({held.reason})"
            unblocks = f"`drover broker release {port.broker}`"
            return WaitingReason(why, unblocks, max(entry.since_ms, held.since_ms))
        taken, limit = state.moves.slots.get(port, 0), limits.max_incoming if port.way == "in" else limits.max_outgoing
        limit, lowered = state.slots_of(port.broker, limit), state.allowances.get(port.broker)
        if taken > (limit - 1) * WHOLE_SLOT:
            of_way = limits.budgets.max_incoming_per_broker, limits.budgets.max_outgoing_per_broker
            own = of_way[port.way == "out"] is not None
            name = f"max_{'incoming' if port.way == 'in' else 'outgoing'}_per_broker" if own else "max_moves_per_broker"
            copies = state.moves.loads.get(port, 0)
            why = f"a slot, broker {port.broker} has {copies} of {limit} copies {port.way}"
            if taken < copies * WHOLE_SLOT:
                slots = f"{taken / WHOLE_SLOT:.1f} of {limit} slots"
                why = f"a slot, {copies} copies {port.way} take {slots} of broker {port.broker}"
            cause = f"{name} is {limit}" if lowered is None else f"lowered for a time: {lowered.detail}"
            return WaitingReason(why, f"the end of one of them ({cause})", entry.since_ms)
    return _full_budget(state, entry, min(len(added), limits.max_replicas_per_step)) if added else None


def _full_budget(state: ClusterState, entry: Reassignment, needed: int) -> WaitingReason | None:
    budgets = state.limits.budgets
    copies, most = state.moves.copies_in_flight, budgets.max_replica_copies_in_flight
    if most is not None and copies and copies + needed > most:
        unblocks = f"the end of one of them (max_replica_copies_in_flight is {most})"
        return WaitingReason(f"a slot, {copies} copies are under way", unblocks, entry.since_ms)
    size, most = state.moves.bytes_in_flight, budgets.max_bytes_in_flight
    if most is not None and size >= most:
        unblocks = f"the end of some of their copies (max_bytes_in_flight is {most:,})"
        return WaitingReason(f"a slot, {size:,} bytes are being copied", unblocks, entry.since_ms)
    leaders, most = state.leader_movements, state.limits.max_leader_movements
    if leaders >= most and entry.current[0] != entry.heading[0]:
        unblocks = f"one of them has arrived (max_leader_movements is {most})"
        return WaitingReason(f"a slot, {leaders} leaders are on their way", unblocks, entry.since_ms)
    return None
