"""The fold of the events that restrict moves while replicas lag."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.events.adaptation import BrokerAllowanceChanged, StartsResumed, StartsSuspended
from drover.events.base import Event
from drover.state.adaptation import AdaptationState, Allowance, Suspension


def _changed(state: AdaptationState, event: BrokerAllowanceChanged, at_ms: int) -> None:
    if event.halvings:
        state.allowances[event.broker] = Allowance(event.halvings, event.detail, at_ms)
    else:
        state.allowances.pop(event.broker, None)


def _suspended(state: AdaptationState, event: StartsSuspended, at_ms: int) -> None:
    since_ms = at_ms if state.suspension is None else state.suspension.since_ms
    state.suspend(Suspension(event.count, tuple(partition.key for partition in event.partitions), since_ms))


def _resumed(state: AdaptationState, _event: StartsResumed, _at_ms: int) -> None:
    state.suspend(None)


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    BrokerAllowanceChanged: _changed,
    StartsSuspended: _suspended,
    StartsResumed: _resumed,
}
