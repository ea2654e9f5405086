"""The fold of a cluster's identity."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.events.base import Event
from drover.events.clusters import (
    BrokersSeen,
    ClusterIdentified,
    ClusterMatched,
    ClusterMismatched,
    ClusterOutOfReach,
    ClusterTraitsSeen,
    ClusterWithinReach,
    UnreachableBrokersChanged,
)
from drover.state.identity import IdentityState, Outage


def _identified(state: IdentityState, event: ClusterIdentified, _at_ms: int) -> None:
    state.kafka_cluster_id = event.kafka_cluster_id
    state.known_brokers = tuple(sorted({*state.known_brokers, *event.brokers}))


def _seen(state: IdentityState, event: BrokersSeen, _at_ms: int) -> None:
    state.known_brokers = tuple(sorted({*state.known_brokers, *event.brokers}))


def _unreachable_changed(state: IdentityState, event: UnreachableBrokersChanged, at_ms: int) -> None:
    before = state.unreachable_brokers
    state.unreachable_brokers = {broker: min(before.get(broker, at_ms), at_ms) for broker in event.brokers}


def _mismatched(state: IdentityState, event: ClusterMismatched, _at_ms: int) -> None:
    state.mismatched_kafka_cluster_id = event.found_kafka_cluster_id


def _matched(state: IdentityState, _event: ClusterMatched, _at_ms: int) -> None:
    state.mismatched_kafka_cluster_id = None


def _traits_seen(state: IdentityState, event: ClusterTraitsSeen, _at_ms: int) -> None:
    state.traits = event.traits


def _out_of_reach(state: IdentityState, event: ClusterOutOfReach, _at_ms: int) -> None:
    state.outage = Outage(event.since_ms, event.detail)


def _within_reach(state: IdentityState, _event: ClusterWithinReach, _at_ms: int) -> None:
    state.outage = None


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    ClusterIdentified: _identified,
    BrokersSeen: _seen,
    ClusterMismatched: _mismatched,
    ClusterMatched: _matched,
    ClusterTraitsSeen: _traits_seen,
    ClusterOutOfReach: _out_of_reach,
    ClusterWithinReach: _within_reach,
    UnreachableBrokersChanged: _unreachable_changed,
}
