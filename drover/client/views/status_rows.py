"""PURE: the rows and totals of `status`, from the folded state and the byte samples."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from drover.client.differences import plain
from drover.client.transfers import Transfer, Transfers
from drover.client.views.heal_rows import outage_rows
from drover.client.views.throttle_rows import notices_of_throttles
from drover.client.views.waiting_reason import deferral_reason, waiting_reason
from drover.events.clusters import HoldRole
from drover.events.progress import ProjectionSample
from drover.reconcile.gates import (
    BROKER_OPEN,
    CLUSTER_KNOWN,
    ENOUGH_IN_SYNC,
    IN_WINDOW,
    NOT_FROZEN,
    PLAN_IN_WINDOW,
    PLAN_RUNNING,
    Severity,
    Start,
    View,
)
from drover.state.cluster import ClusterState
from drover.state.destinations import target_of
from drover.state.limit_names import in_words
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.reassignment import Reassignment
from drover.unreachable import unreachable_in_words

# The phases with current byte samples; in the others, the last samples are outdated.
COPYING = frozenset({Phase.COPYING})
# A projection with a longer lag gets a notice.
SHOWN_LAG_MS = 5_000


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One reassignment under way.

    `bytes_done` and `bytes_total` cover all its steps; both are None before the first sample. `rate` is in bytes per
    second. `waiting` says why it waits and how to change that, and `since_ms` then since when; `waiting` is None while
    it proceeds. `next_target` in `next_plan` follows once this reassignment has ended. `deferred` says that a rollback
    or stop was asked for, by whom, and which guard holds it off. `seen_ms` is the time of the last byte sample; `rate`
    and `eta_ms` are None if that is more than a few seconds ago. `has_stalled` says that no byte was copied for a
    minute for no known reason. `destination` is the list at which it ends: the target, or the list of a cancel.
    `cause` is the part of `waiting` that is the same for all that wait for the same.
    """

    cluster: str
    topic: str
    partition: int
    plan: str
    state: str
    step: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    replicas: tuple[int, ...]
    bytes_done: int | None
    bytes_total: int | None
    rate: float | None
    eta_ms: int | None
    since_ms: int
    waiting: str | None
    next_plan: str | None = None
    next_target: tuple[int, ...] | None = None
    deferred: str | None = None
    seen_ms: int | None = None
    has_stalled: bool = False
    destination: tuple[int, ...] = ()
    cause: str | None = None

    @property
    def fraction(self) -> float | None:
        """The part of the bytes that is copied, 0 to 1; None if unknown."""
        if self.bytes_done is None or self.bytes_total is None:
            return None
        return min(1.0, self.bytes_done / self.bytes_total) if self.bytes_total else 1.0

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        fraction = self.fraction
        return {**asdict(self), "percent": None if fraction is None else round(fraction * 100, 1)}


def status_rows(state: ClusterState, transfers: Transfers, now_ms: int = 0) -> list[StatusRow]:
    """Return every unfinished reassignment of a cluster: moving ones first, then waiting ones in order of acceptance.

    Rates are those at `now_ms` (wall clock).
    """
    moving = [entry for entry in state.reassignments.values() if entry.in_flight]
    queued = [entry for entry in state.reassignments.values() if not entry.in_flight]
    return [status_row(state, entry, transfers, now_ms) for entry in (*moving, *queued)]


def status_row(state: ClusterState, entry: Reassignment, transfers: Transfers, now_ms: int = 0) -> StatusRow:
    """Return a reassignment of a cluster, with the rates at `now_ms` (wall clock)."""
    step = entry.step
    transfer = None
    if step is not None and entry.phase in COPYING:
        transfer = transfers.transfer(state.name, entry.key, step.number, now_ms, entry.created_ms)
    done, total = _bytes(entry, transfer)
    reason = waiting_reason(state, entry.key)
    deferred = deferral_reason(entry)
    waiting = None if reason is None else str(reason)
    if waiting is None and transfer is not None and transfer.falls_behind:
        waiting = "producers write faster than the copy proceeds"
    has_stalled = waiting is None and transfer is not None and transfer.has_stalled
    if has_stalled:
        waiting = "no byte was copied for a minute"
    # Of a block, the detail is the partition's own.
    cause = waiting if reason is None else reason.why
    return StatusRow(
        cluster=state.name,
        topic=entry.key.topic,
        partition=entry.key.partition,
        plan=entry.plan,
        state=entry.phase.value,
        step=0 if step is None else step.number,
        original=entry.original,
        target=entry.target,
        replicas=entry.current,
        bytes_done=done,
        bytes_total=total,
        rate=None if transfer is None else transfer.rate,
        eta_ms=_arrival(transfer, done, total),
        since_ms=entry.since_ms if reason is None else reason.since_ms,
        waiting=waiting,
        next_plan=None if entry.replacement is None else entry.replacement.plan,
        next_target=None if entry.replacement is None else entry.replacement.target,
        deferred=None if deferred is None else str(deferred),
        seen_ms=None if transfer is None else transfer.at_ms,
        has_stalled=has_stalled,
        destination=target_of(entry),
        cause=cause,
    )


def _bytes(entry: Reassignment, transfer: Transfer | None) -> tuple[int | None, int | None]:
    """Add the bytes of earlier steps, and for each replica of later steps as many as this step copies per replica."""
    if transfer is None or entry.step is None:
        return (entry.bytes_copied or None, None)
    adding = entry.step.adding
    later = [broker for broker in entry.step_target if broker not in entry.step.replicas]
    per_replica = transfer.bytes_total // len(adding) if adding else 0
    done = entry.bytes_copied + transfer.bytes_done
    return done, entry.bytes_copied + transfer.bytes_total + per_replica * len(later)


def _arrival(transfer: Transfer | None, done: int | None, total: int | None) -> int | None:
    if transfer is None or done is None or total is None or not transfer.closing_rate or transfer.closing_rate < 0:
        return None
    return round(max(0, total - done) / transfer.closing_rate * 1000)


@dataclass(frozen=True, slots=True)
class UnmanagedRow:
    """A move that is not Drover's; `never_ends` are the brokers that it both adds and removes.

    With such a broker, some versions of Kafka list the move for ever, even after the whole target is in sync.
    """

    cluster: str
    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    never_ends: tuple[int, ...]
    since_ms: int

    @property
    def target(self) -> tuple[int, ...]:
        """The list at which Kafka will end the move."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def remedy(self) -> str:
        """Return advice about the move."""
        if not self.never_ends:
            return "somebody else's: Drover leaves it alone"
        brokers = ", ".join(map(str, self.never_ends))
        return f"broker {brokers} is both added and removed: if it never ends, `drover repair` cancels it"

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return {**asdict(self), "remedy": self.remedy}


def unmanaged_rows(state: ClusterState) -> list[UnmanagedRow]:
    """Return every recorded move that is not Drover's: moves that may never end first, then by name."""
    moves = sorted(state.unmanaged.items(), key=lambda entry: (not entry[1].never_ends, entry[0]))
    return [
        UnmanagedRow(
            cluster=state.name,
            topic=key.topic,
            partition=key.partition,
            replicas=move.replicas,
            adding=move.adding,
            removing=move.removing,
            never_ends=move.never_ends,
            since_ms=move.since_ms,
        )
        for key, move in moves
    ]


def totals(rows: Sequence[StatusRow]) -> dict[str, Any]:
    """Sum up rows: the count of each state, the bytes, and the total rate.

    `bytes_unknown` counts the copying rows without a known size, which the sums leave out.
    """
    sized = [row for row in rows if row.bytes_total is not None]
    return {
        "reassignments": len(rows),
        "states": dict(sorted(Counter(row.state for row in rows).items())),
        "bytes_done": sum(row.bytes_done or 0 for row in sized),
        "bytes_total": sum(row.bytes_total or 0 for row in sized),
        "bytes_unknown": sum(row.state in COPYING and row.bytes_total is None for row in rows),
        "rate": sum(row.rate or 0.0 for row in sized),
    }


def cluster_document(
    state: ClusterState, owner: str, epoch: int, projection: ProjectionSample | None = None
) -> dict[str, Any]:
    """Return the facts about a cluster as a whole for programs; fields may be added and never changed."""
    return {
        "cluster": state.name,
        "kafka_cluster_id": state.kafka_cluster_id,
        "mismatched_kafka_cluster_id": state.mismatched_kafka_cluster_id,
        "traits": None if state.traits is None else {**plain(state.traits), "in_words": str(state.traits)},
        "frozen": None if state.freeze is None else msgspec.structs.asdict(state.freeze),
        "freezes": [msgspec.structs.asdict(freeze) for freeze in state.freezes],
        "limits": plain(state.limits),
        "changed_limits": plain(state.changed_limits),
        "paused_plans": [{"plan": name, **plain(paused)} for name, paused in sorted(state.paused_plans.items())],
        "plan_windows": plain(state.plan_windows),
        "held_brokers": [{"broker": broker, **plain(held)} for broker, held in sorted(state.held_brokers.items())],
        "allowances": [
            {"broker": broker, **plain(allowance)} for broker, allowance in sorted(state.allowances.items())
        ],
        "suspension": None if state.suspension is None else plain(state.suspension),
        "priorities": plain(state.priorities),
        "blacklist": list(state.blacklist),
        "failed_brokers": [
            {"broker": broker, "at_ms": at_ms} for broker, at_ms in sorted(state.failed_brokers.items())
        ],
        "outages": [row.document() for row in outage_rows(state)],
        "out_of_reach": None if state.outage is None else msgspec.structs.asdict(state.outage),
        "projection": None if projection is None else msgspec.structs.asdict(projection),
        "owner": owner,
        "epoch": epoch,
        "plans": [_plan(plan) for plan in state.plans.values() if plan.status is PlanStatus.OPEN or not plan.is_idle],
    }


def _plan(plan: Any) -> dict[str, Any]:
    return dict(msgspec.to_builtins(plan))


def _notices_of_health(state: ClusterState) -> Iterable[tuple[Severity, str]]:
    """Yield notices that brokers get fewer copies, or that no step starts, because replicas are out of sync."""
    if state.suspension is not None:
        first = state.suspension.partitions[0]
        yield (
            ENOUGH_IN_SYNC.severity,
            (
                f"{state.name}: {first} has fewer replicas in sync than min.insync.replicas, one of "
                f"{state.suspension.count:,}: only they are copied (`drover limits set adapts_to_health=false`)"
            ),
        )
    for broker, allowance in sorted(state.allowances.items()):
        yield (
            Severity.WARN,
            f"{state.name}: broker {broker} may use 1/{1 << allowance.halvings} of its slots: {allowance.detail}",
        )


def _notices_of_brokers(state: ClusterState) -> Iterable[tuple[Severity, str]]:
    """Yield notices about brokers that are reported as failed, unreachable, away, or healed and still away."""
    if state.failed_brokers:
        reported = ", ".join(map(str, sorted(state.failed_brokers)))
        remedy = "`drover broker returned` withdraws a report"
        yield Severity.BAD, f"{state.name}: brokers reported as failed: {reported}: {remedy}"
    if state.unreachable_brokers:
        yield Severity.WARN, f"{state.name}: {unreachable_in_words(state.unreachable_brokers)}"
    if state.absent_brokers:
        away = ", ".join(map(str, sorted(state.absent_brokers)))
        yield Severity.WARN, f"{state.name}: brokers that are away: {away}: `drover heal status`"
    if state.emptied_brokers and state.limits.healing is not None:
        healed = ", ".join(map(str, sorted(state.emptied_brokers)))
        yield (
            Severity.WARN,
            f"{state.name}: brokers that were healed and are still away: {healed}: `drover heal status`",
        )


def notices(
    state: ClusterState, projection: ProjectionSample | None = None, now_ms: int | None = None
) -> Iterable[str]:
    """Yield the lines that an operator should read before the table; durations end at `now_ms` (wall clock)."""
    return (line for _, line in graded_notices(state, projection, now_ms))


def graded_notices(
    state: ClusterState, projection: ProjectionSample | None = None, now_ms: int | None = None
) -> Iterable[tuple[Severity, str]]:
    """Yield the lines of `notices`, each with its severity."""
    if state.outage is not None:
        lasted = "" if now_ms is None else f" for {max(0, now_ms - state.outage.since_ms) // 1000:,} s"
        yield Severity.BAD, f"{state.name} has been out of reach{lasted}: {state.outage.detail}"
    if state.mismatched_kafka_cluster_id is not None:
        line = (
            f"another Kafka cluster answers ({state.mismatched_kafka_cluster_id} instead of {state.kafka_cluster_id})"
        )
        yield CLUSTER_KNOWN.severity, f"{state.name}: {line}; Drover makes no calls"
    if state.traits is not None and not state.traits.is_known:
        yield Severity.WARN, f"{state.name}: {state.traits}"
    for freeze in state.freezes:
        yield NOT_FROZEN.severity, f"{state.name} is frozen by {freeze.by}: {freeze.reason}"
    if (waiting := IN_WINDOW.blocked(Start(), View(state))) is not None:
        yield waiting.severity, f"{state.name}: {waiting}"
    for plan in sorted(state.plan_windows):
        if (waiting := PLAN_IN_WINDOW.blocked(Start(plan=plan), View(state))) is not None:
            yield waiting.severity, f"{state.name}: {waiting}"
    for plan, paused in sorted(state.paused_plans.items()):
        line = f"plan {plan} is paused by {paused.by}: {paused.reason}: `drover resume {plan}`"
        yield PLAN_RUNNING.severity, f"{state.name}: {line}"
    for broker, held in sorted(state.held_brokers.items()):
        spared = "" if held.role is HoldRole.BOTH else f" as a {held.role.value}"
        yield BROKER_OPEN.severity, f"{state.name}: broker {broker} is held{spared} by {held.by}: {held.reason}"
    yield from _notices_of_health(state)
    if state.changed_limits:
        changed = ", ".join(
            f"{name} {in_words(limit.value)} ({limit.by})" for name, limit in sorted(state.changed_limits.items())
        )
        yield Severity.NOTE, f"{state.name}: limits that commands have set: {changed}: `drover limits show`"
    if state.blacklist:
        listed = ", ".join(map(str, state.blacklist))
        yield Severity.NOTE, f"{state.name}: brokers that should not lead: {listed}"
    yield from _notices_of_brokers(state)
    stuck = sum(bool(move.never_ends) for move in state.unmanaged.values())
    if stuck:
        why = "a broker is both added and removed"
        yield Severity.WARN, f"{state.name}: {stuck} moves of others may never end ({why}): `drover repair`"
    if state.broker_throttles and not state.reassignments:
        brokers = ", ".join(map(str, sorted(state.broker_throttles)))
        when = "on a dead or unreachable broker, once it is listed again"
        yield Severity.WARN, f"{state.name}: throttles must still be put back on broker {brokers} ({when})"
    yield from ((Severity.WARN, line) for line in notices_of_throttles(state))
    if projection is not None and (projection.error or projection.lag_ms > SHOWN_LAG_MS):
        lag = f"{state.name}: ZooKeeper is {projection.lag_events:,} events and {projection.lag_ms / 1000:.0f} s behind"
        yield Severity.WARN, lag if projection.error is None else f"{lag}: {projection.error}"
