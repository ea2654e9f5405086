"""The fold of failed brokers."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.healing.state import HealingState
from events.base import Event
from events.brokers import BrokerFailureRecorded, BrokerReturnRecorded


def _failed(state: HealingState, event: BrokerFailureRecorded, _at_ms: int) -> None:
    state.failed_brokers[event.broker] = event.failed_at_ms


def _returned(state: HealingState, event: BrokerReturnRecorded, _at_ms: int) -> None:
    state.failed_brokers.pop(event.broker, None)


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    BrokerFailureRecorded: _failed,
    BrokerReturnRecorded: _returned,
}
