"""PURE but for rich: a cluster's whole state as a document and as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from drover.cli.columns import Fit
from drover.cli.output import amount, plural, styled, table, timestamp
from drover.client.differences import plain
from drover.events.throttles import Rates
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from drover.state.reassignment import Block
from drover.state.scheduling import Limits


def state_document(state: ClusterState) -> dict[str, Any]:
    """Return a cluster's state for programs; fields may be added and never changed.

    Maps by name become lists whose entries hold the name: plans in the order in which they were opened,
    reassignments in the order of acceptance, the queue in its own, everything else sorted. A value that is not named
    here is shown as it is recorded.
    """
    document = {
        "cluster": state.name,
        "kafka_cluster_id": state.kafka_cluster_id,
        "mismatched_kafka_cluster_id": state.mismatched_kafka_cluster_id,
        "freeze": plain(state.freeze),
        "limits": plain(state.limits),
        "blacklist": list(state.blacklist),
        "failed_brokers": [
            {"broker": broker, "at_ms": at_ms} for broker, at_ms in sorted(state.failed_brokers.items())
        ],
        "plans": [plain(plan) for plan in state.plans.values()],
        "reassignments": [_about(entry.key, entry) for entry in state.reassignments.values()],
        "queue": [_about(key, entry) for key, entry in state.queue.items()],
        "foreign": [_about(key, entry) for key, entry in sorted(state.unmanaged.items())],
        "given_up": [_about(key, entry) for key, entry in sorted(state.expired_calls.items())],
        "broker_throttles": [
            {"broker": broker, **plain(entry)} for broker, entry in sorted(state.broker_throttles.items())
        ],
        "topic_throttles": [{"topic": topic, **plain(entry)} for topic, entry in sorted(state.topic_throttles.items())],
    }
    for attribute, declared in declarations(ClusterState).items():
        if declared.told_as and declared.name not in document:
            document[declared.name] = plain(getattr(state, attribute))
    return document


def _about(key: tuple[str, int], entry: Any) -> dict[str, Any]:
    fields = plain(entry)
    fields.pop("key", None)
    return {"topic": key[0], "partition": key[1], **fields}


def layout(where: str, states: Sequence[ClusterState]) -> RenderableType:
    """Lay clusters out for people; empty tables are left out."""
    parts: list[RenderableType] = [styled(f"As of {where}.", style="dim")]
    for state in states:
        parts += [styled(""), styled(state.name, style="bold"), *map(styled, _lines(state)), *_tables(state)]
    if not states:
        parts.append(styled("No cluster lives in this shard yet."))
    return Group(*parts)


def _lines(state: ClusterState) -> list[str]:
    lines = [f"Kafka cluster {state.kafka_cluster_id or 'not seen yet'}; {_limits(state.limits)}."]
    if state.traits is not None:
        lines.append(f"{state.traits}.")
    if state.mismatched_kafka_cluster_id is not None:
        lines.append(f"Another Kafka cluster answers under this name: {state.mismatched_kafka_cluster_id}.")
    lines += [f"Frozen by {one.by} since {timestamp(one.since_ms)}: {one.reason}." for one in state.freezes]
    if state.blacklist:
        lines.append(f"Brokers that should not lead: {_list(state.blacklist)}.")
    if state.failed_brokers:
        lines.append(f"Brokers reported as failed: {_list(sorted(state.failed_brokers))}.")
    if not (state.plans or state.reassignments):
        lines.append("There are no plans.")
    return lines


def _limits(limits: Limits) -> str:
    return (
        f"at most {plural(limits.max_partitions_in_flight, 'partition')} in flight, "
        f"{plural(limits.max_moves_per_broker, 'move')} per broker, "
        f"{plural(limits.max_replicas_per_step, 'replica')} per step ({limits.stepping.value})"
    )


def _tables(state: ClusterState) -> list[RenderableType]:
    found: list[RenderableType] = []
    for columns, rows in (
        (("plan", "status", "active", "done", "rolled back", "failed", "by", "reason"), _plans(state)),
        (("partition", "plan", "state", "step", "replicas", "now", "since", "waits for"), _reassignments(state)),
        (("queued behind", "plan", "target", "since"), _queue(state)),
        (("move of others", "replicas", "adding", "removing", "since"), _unmanaged(state)),
        (("broker throttle", "before", "wanted", "state"), _broker_throttles(state)),
        (("topic throttle", "leaders", "followers", "state"), _topic_throttles(state)),
    ):
        if rows:
            found += [styled(""), table(columns, rows, fit=Fit(below=("waits for", "reason")))]
    return found


def _plans(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (
            plan.name,
            plan.status.value,
            *(str(count) for count in (plan.active, plan.completed, plan.rolled_back, plan.failed)),
            plan.by,
            plan.reason,
        )
        for plan in state.plans.values()
    ]


def _reassignments(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (
            str(entry.key),
            entry.plan,
            entry.phase.value,
            "-" if entry.step is None else str(entry.step.number),
            f"{_list(entry.original)} → {_list(entry.target)}",
            _list(entry.current),
            timestamp(entry.since_ms),
            _block(entry.block),
        )
        for entry in state.reassignments.values()
    ]


def _queue(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (str(key), entry.plan, _list(entry.target), timestamp(entry.since_ms)) for key, entry in state.queue.items()
    ]


def _unmanaged(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (str(key), _list(move.replicas), _list(move.adding), _list(move.removing), timestamp(move.since_ms))
        for key, move in sorted(state.unmanaged.items())
    ]


def _broker_throttles(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (str(broker), _rates(entry.baseline), _rates(entry.intended), _pending(entry.pending))
        for broker, entry in sorted(state.broker_throttles.items())
    ]


def _topic_throttles(state: ClusterState) -> list[tuple[str, ...]]:
    return [
        (topic, ",".join(entry.present.leader), ",".join(entry.present.follower), _pending(entry.pending))
        for topic, entry in sorted(state.topic_throttles.items())
    ]


def _pending(pending: object) -> str:
    return "being written" if pending else "in force"


def _rates(rates: Rates) -> str:
    sides: Mapping[str, int | None] = {"leader": rates.leader, "follower": rates.follower}
    return ", ".join(f"{side} {amount(rate)}/s" for side, rate in sides.items() if rate is not None) or "none"


def _block(block: Block | None) -> str:
    return "" if block is None else f"{block.why.value}: {block.detail}"


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
