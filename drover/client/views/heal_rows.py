"""PURE: absent brokers and healing, as rows and sentences for people and programs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from drover.client.differences import plain
from drover.events.healing import BrakeReason, HealChoice, HealingLimits
from drover.reconcile.gates import NOT_FROZEN, Start, View
from drover.reconcile.healing.timers import bytes_of_a_day
from drover.state.cluster import ClusterState
from drover.state.healing import Absence
from drover.unreachable import unreachable_in_words

if TYPE_CHECKING:
    # Only for types: the planner behind it takes long to load, and no view of the log needs it.
    from drover.reconcile.healing.heal_plan import HealPlan


class OutageRow(Struct, frozen=True):
    """A broker that is away: since when, what Drover does about it, and when (ms since the epoch; None for never).

    A broker stays in the list until it is seen alive, even if healing has replaced all of its replicas.
    `healed_partitions` counts the partitions that were healed in this absence; `healed_ms` is the time at which no
    replica list had the broker any more.
    """

    cluster: str
    broker: int
    since_ms: int
    state: str
    heals_at_ms: int | None
    healed_partitions: int = 0
    healed_ms: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return dict(plain(self))


def outage_rows(state: ClusterState) -> list[OutageRow]:
    """Return the brokers that are away, by number; healed ones are included until they are back."""
    limits = state.limits.healing
    if limits is None:
        return []
    rows = [
        OutageRow(
            state.name,
            broker,
            outage.since_ms,
            _said(state, broker, outage),
            _heals_at_ms(outage, limits),
            _healed_partitions(state, broker),
        )
        for broker, outage in state.absent_brokers.items()
    ]
    rows += [_healed(state, broker, healed_ms) for broker, healed_ms in state.emptied_brokers.items()]
    return sorted(rows, key=lambda row: row.broker)


def _healed(state: ClusterState, broker: int, healed_ms: int) -> OutageRow:
    healed = state.healed_brokers.get(broker)
    since_ms = healed_ms if healed is None else healed.since_ms
    status = "healed: it has no replicas any more"
    if healed is not None:
        status = f"healed by {healed.heal}: {_partitions(healed.partitions)} moved to other brokers"
    return OutageRow(state.name, broker, since_ms, status, None, _healed_partitions(state, broker), healed_ms)


def _healed_partitions(state: ClusterState, broker: int) -> int:
    healed = state.healed_brokers.get(broker)
    return 0 if healed is None else healed.partitions


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"


def _heals_at_ms(outage: Absence, limits: HealingLimits) -> int | None:
    if limits.failure_interval_ms < 0 or outage.choice is not None:
        return None
    return outage.since_ms + limits.failure_interval_ms


def _said(state: ClusterState, broker: int, outage: Absence) -> str:
    heal = state.heal
    if not outage.seen:
        return "reported as failed, but not seen to be away yet"
    if heal is not None and broker in heal.brokers:
        return f"is healed by {heal.name}"
    if outage.choice is HealChoice.SKIP:
        return "is skipped: `drover heal start` heals it"
    for brake in state.healing_brakes.values():
        if brake.broker in {None, broker}:
            return f"held back, {brake.why.value}: {brake.detail}"
    if frozen := NOT_FROZEN.blocked(Start(), View(state)):
        return str(frozen)
    if outage.choice is HealChoice.START:
        return "is to be healed now"
    return "alarmed about" if outage.is_alarmed else "away"


def heal_lines(state: ClusterState) -> Iterator[str]:
    """Say whether healing is on, what it is doing, and which partitions it cannot heal."""
    limits, heal, running = state.limits.healing, state.heal, state.heal_running
    if state.unreachable_brokers:
        yield f"{state.name}: {unreachable_in_words(state.unreachable_brokers)}. Drover heals none of it"
    if limits is None:
        yield (
            f"{state.name}: healing is not set up, and absent brokers are not noticed: add "
            f"[clusters.{state.name}.healing] and restart the workers"
        )
        return
    if limits.failure_interval_ms < 0:
        yield (
            f"{state.name}: healing is off (failure_interval_ms = -1): absent brokers are recorded, but not healed by "
            "themselves; `drover heal start` heals a broker"
        )
    else:
        seconds = limits.failure_interval_ms / 1000
        yield f"{state.name}: healing is on: a broker that is away for {seconds:,.10g} s is healed"
    if heal is not None:
        begun = heal.chunks - len(state.heal_chunks)
        brokers = ", ".join(map(str, heal.brokers))
        yield (
            f"{state.name}: {heal.name} replaces broker {brokers}: {begun} of {heal.chunks} chunks begun, "
            f"{heal.healed} of {heal.partitions} partitions healed, {heal.skipped} skipped"
        )
    if running is not None:
        yield f"{state.name}: chunk {running.number} of {running.chunks} is under way as plan {running.plan}"
    for brake in state.healing_brakes.values():
        if brake.broker is None or brake.why is BrakeReason.FLAPPING:
            yield f"{state.name}: braked, {brake.why.value}: {brake.detail}"
    if state.heal_left is not None:
        yield f"{state.name}: {state.heal_left.count} partitions cannot be healed now:"
        for partition in state.heal_left.partitions:
            detail = f": {partition.detail}" if partition.detail else ""
            yield f"  {partition.topic}:{partition.partition}: {partition.why.value}{detail}"
    for broker in sorted(state.emptied_brokers):
        yield (
            f"{state.name}: all replicas of broker {broker} were replaced; it is still away. When it is back, Kafka "
            f"deletes its old copies of them, and `drover plan add {broker}` gives it replicas again"
        )


def heal_document(state: ClusterState, now_ms: int) -> dict[str, Any]:
    """Return the state of healing for programs; fields may be added and never changed."""
    return {
        "cluster": state.name,
        "limits": plain(state.limits.healing),
        "outages": [row.document() for row in outage_rows(state)],
        "brakes": [plain(brake) for brake in state.healing_brakes.values()],
        "heal": plain(state.heal),
        "running": plain(state.heal_running),
        "chunks": [plain(chunk) for _, chunk in sorted(state.heal_chunks.items())],
        "left": plain(state.heal_left),
        "unreachable": [
            {"broker": broker, "since_ms": since_ms} for broker, since_ms in sorted(state.unreachable_brokers.items())
        ],
        "emptied_brokers": sorted(state.emptied_brokers),
        "bytes_of_a_day": bytes_of_a_day(state, now_ms),
    }


def plan_rows(plan: "HealPlan", chunk_partitions: int) -> list[tuple[str, ...]]:
    """Return a plan as rows: chunk, partition, the list now and afterwards, bytes."""
    return [
        (
            str(number // chunk_partitions + 1),
            f"{assignment.topic}:{assignment.partition}",
            _list(assignment.original),
            _list(assignment.target),
            "" if assignment.size_bytes is None else f"{assignment.copied_bytes:,}",
        )
        for number, assignment in enumerate(plan.assignments)
    ]


def plan_document(plan: "HealPlan", brokers: Sequence[int], chunk_partitions: int) -> dict[str, Any]:
    """Return a plan for programs; `partitions` has the form of `kafka-reassign-partitions`."""
    return {
        "version": 1,
        "brokers": list(brokers),
        "chunk_partitions": chunk_partitions,
        "partitions": [
            {"topic": assignment.topic, "partition": assignment.partition, "replicas": list(assignment.target)}
            for assignment in plan.assignments
        ],
        "bytes": sum(assignment.copied_bytes for assignment in plan.assignments),
        "left": [plain(partition) for partition in plan.left],
    }


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
