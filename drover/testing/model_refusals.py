"""The replica lists that the model cluster refuses, with Kafka's words; None for an acceptable list."""

from collections.abc import Sequence

from drover.facts import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
)
from drover.testing.controller_model import Partition, without
from drover.testing.model_state import ModelState


def list_refusal(state: ModelState, replicas: Sequence[int]) -> CallResult | None:
    """Refuse an empty list, a broker that is named twice, and one that does not exist."""
    problem = None
    if not replicas:
        problem = "The manual partition assignment includes an empty replica list."
    elif len(set(replicas)) < len(replicas):
        twice = next(broker for place, broker in enumerate(replicas) if broker in replicas[:place])
        problem = f"The manual partition assignment includes the broker {twice} more than once."
    else:
        unknown = next((broker for broker in replicas if not state.is_registered(broker)), None)
        if unknown is not None:
            problem = f"The manual partition assignment includes broker {unknown}, but no such broker is registered."
    return None if problem is None else CallResult(INVALID_REPLICA_ASSIGNMENT, problem)


def dead_refusal(state: ModelState, before: Partition, replicas: tuple[int, ...]) -> CallResult | None:
    """Refuse a new replica on a broker that is not alive, where the version does so."""
    new = without(replicas, before.original)
    if state.traits.takes_dead_destinations or all(state.electable(broker) for broker in new):
        return None
    problem = f"Replica assignment has brokers that are not alive. Replica list: {list(replicas)}"
    return CallResult(INVALID_REPLICA_ASSIGNMENT, problem)


def unknown_in_zookeeper_mode(state: ModelState, replicas: tuple[int, ...] | None) -> CallResult:
    """Answer for a partition that does not exist: ZooKeeper mode checks the list before the partition."""
    if replicas is None:
        return CallResult(NO_REASSIGNMENT_IN_PROGRESS)
    refusal = list_refusal(state, replicas) or dead_refusal(state, Partition((), (), None), replicas)
    return refusal or CallResult(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def new_replicas_refusal(state: ModelState, number: int, replicas: Sequence[int]) -> CallResult | None:
    """Refuse to add a partition: in ZooKeeper mode on any dead broker, otherwise if no replica could lead."""
    dead = [broker for broker in replicas if not state.electable(broker)]
    if state.traits.zookeeper_mode and dead:
        return CallResult(INVALID_REPLICA_ASSIGNMENT, f"Unknown broker(s) in replica assignment: {dead}.")
    return fenced_refusal(state, number, replicas)


def fenced_refusal(state: ModelState, number: int, replicas: Sequence[int]) -> CallResult | None:
    """Refuse a new partition of which no replica could lead."""
    if any(state.electable(broker) for broker in replicas):
        return None
    return CallResult(
        INVALID_REPLICA_ASSIGNMENT,
        f"All brokers specified in the manual partition assignment for partition {number} are fenced or in"
        " controlled shutdown.",
    )
