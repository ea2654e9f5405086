"""The fold of a cluster's identity."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.identity.state import IdentityState
from events.base import Event
from events.clusters import ClusterIdentified, ClusterMatched, ClusterMismatched


def _identified(state: IdentityState, event: ClusterIdentified, _at_ms: int) -> None:
    state.kafka_cluster_id = event.kafka_cluster_id


def _mismatched(state: IdentityState, event: ClusterMismatched, _at_ms: int) -> None:
    state.mismatched_kafka_cluster_id = event.found_kafka_cluster_id


def _matched(state: IdentityState, _event: ClusterMatched, _at_ms: int) -> None:
    state.mismatched_kafka_cluster_id = None


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    ClusterIdentified: _identified,
    ClusterMismatched: _mismatched,
    ClusterMatched: _matched,
}
