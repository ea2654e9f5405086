"""The fold of the list of brokers that should not lead."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.leadership.state import LeadershipState
from events.base import Event
from events.brokers import BlacklistSet


def _set(state: LeadershipState, event: BlacklistSet, _at_ms: int) -> None:
    state.blacklist = event.brokers


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {BlacklistSet: _set}
