"""The fold of moves that others started."""

from collections.abc import Callable, Mapping
from typing import Any

from drover.events.base import Event
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen
from drover.state.unmanaged import UnmanagedMove, UnmanagedState


def _seen(state: UnmanagedState, event: UnmanagedMoveSeen, at_ms: int) -> None:
    recorded = state.unmanaged.get(event.key)
    since_ms = at_ms if recorded is None else recorded.since_ms
    state.unmanaged[event.key] = UnmanagedMove(event.replicas, event.adding, event.removing, since_ms)


def _ended(state: UnmanagedState, event: UnmanagedMoveEnded, _at_ms: int) -> None:
    del state.unmanaged[event.key]


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {UnmanagedMoveSeen: _seen, UnmanagedMoveEnded: _ended}
