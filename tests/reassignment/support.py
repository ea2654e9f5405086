"""Small makers of states, facts and commands for the tests of the pure domain."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drover.decide.decision import Decision, Facts
from drover.decide.verdict import Context
from drover.events.commands import Alter, Cancel, PartitionName, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import (
    Call,
    CallAccepted,
    CallIntended,
    ReassignmentCreated,
    RollbackRequested,
    StopRequested,
)
from drover.events.records import AnyEvent
from drover.facts import Move, PartitionFacts
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment, Step

CLUSTER = "local"
KEY = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
TOPIC_ID = "id-orders"
LIVE = frozenset({1, 2, 3, 4, 5, 6})
_numbers = itertools.count(1)


def state_after(events: Iterable[AnyEvent] = (), at_ms: int = 1000) -> ClusterState:
    state = ClusterState(CLUSTER)
    state.kafka_cluster_id = "kafka-1"
    for event in events:
        apply(state, event, at_ms)
    return state


def opened(plan: str = "p") -> PlanOpened:
    return PlanOpened(cluster=CLUSTER, plan=plan, by="ana", reason="r")


def queued(
    key: TopicPartition = KEY,
    original: tuple[int, ...] = (1, 2, 3),
    target: tuple[int, ...] = (4, 2, 1),
    plan: str = "p",
) -> ReassignmentCreated:
    return ReassignmentCreated(
        cluster=CLUSTER, topic=key.topic, partition=key.partition, topic_id=TOPIC_ID, plan=plan, original=original,
        target=target,
    )  # fmt: skip


def intended(
    expected: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (4, 2, 1),
    *,
    key: TopicPartition = KEY,
    number: int = 1,
    final: bool = True,
) -> CallIntended:
    return CallIntended(
        cluster=CLUSTER, topic=key.topic, partition=key.partition, call=Call.STEP, expected=expected,
        replicas=replicas, step=number, final=final, leader=expected[0],
    )  # fmt: skip


def accepted(call: Call = Call.STEP, key: TopicPartition = KEY) -> CallAccepted:
    return CallAccepted(cluster=CLUSTER, topic=key.topic, partition=key.partition, call=call)


def requested(key: TopicPartition = KEY) -> RollbackRequested:
    return RollbackRequested(cluster=CLUSTER, topic=key.topic, partition=key.partition, by="bob", reason="r")


def stop_requested(key: TopicPartition = KEY) -> StopRequested:
    return StopRequested(cluster=CLUSTER, topic=key.topic, partition=key.partition, by="bob", reason="r")


def copying() -> ClusterState:
    """A state in which KEY is copying in its only step."""
    return state_after([opened(), queued(), intended(), accepted()])


def reassignment(phase: Phase, **fields: Any) -> Reassignment:
    """One on its way from [1,2,3] to [4,2,1] in one step."""
    values: dict[str, Any] = {
        "key": KEY,
        "topic_id": TOPIC_ID,
        "plan": "p",
        "number": 1,
        "original": (1, 2, 3),
        "target": (4, 2, 1),
        "created_ms": 0,
        "phase": phase,
        "since_ms": 0,
        "current": (1, 2, 3),
        "step": Step(1, True, (1, 2, 3), (4, 2, 1), 1),
    }
    return Reassignment(**(values | fields))


def sight(
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    *,
    move: Move | None = None,
    leader: int | None = 1,
    topic_id: str = TOPIC_ID,
) -> PartitionFacts:
    return PartitionFacts(topic_id, leader, replicas, replicas if isr is None else isr, move)


def moving(replicas: tuple[int, ...] = (4, 2, 1, 3), isr: tuple[int, ...] = (1, 2, 3), **fields: Any) -> PartitionFacts:
    """KEY as it looks while the step to [4,2,1] is copying."""
    adding = fields.pop("adding", (4,))
    removing = fields.pop("removing", (3,))
    return sight(replicas, isr, move=Move(replicas, adding, removing), **fields)


def context(**fields: Any) -> Context:
    values: dict[str, Any] = {
        "cluster": CLUSTER, "live": LIVE, "min_isr": 1, "max_replicas_per_step": 1, "at_ms": 5000,
    }  # fmt: skip
    return Context(**(values | {"is_certain": fields.get("persisted", False)} | fields))


def facts(partitions: Mapping[TopicPartition, PartitionFacts | None] | None = None, **fields: Any) -> Facts:
    values: dict[str, Any] = {
        "partitions": {KEY: sight(), OTHER: sight((2, 3, 1))} if partitions is None else partitions,
        "live_brokers": LIVE,
    }
    return Facts(**(values | fields))


def alter(targets: Mapping[TopicPartition, Sequence[int] | None], **fields: Any) -> Alter:
    originals: Mapping[TopicPartition, tuple[int, ...]] = fields.pop("originals", {})
    fields.setdefault("id", f"alter-{next(_numbers)}")
    partitions = tuple(
        PartitionTarget(
            topic=key.topic,
            partition=key.partition,
            replicas=None if replicas is None else tuple(replicas),
            original_replicas=originals.get(key),
        )
        for key, replicas in targets.items()
    )
    return Alter(cluster=CLUSTER, by="ana", reason="r", partitions=partitions, **fields)


def cancel(*keys: TopicPartition, **fields: Any) -> Cancel:
    fields.setdefault("mode", "rollback")
    if keys:
        fields["partitions"] = tuple(PartitionName(key.topic, key.partition) for key in keys)
    return Cancel(id=f"cancel-{next(_numbers)}", cluster=CLUSTER, by="bob", reason="r", **fields)


def codes(decision: Decision) -> list[str]:
    return [refusal.code.value for refusal in decision.refusals]


def tags(events: Iterable[AnyEvent]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in events]
