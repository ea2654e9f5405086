"""The fold of events into the state of clusters: every capability's rules in one table."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import drover.fold.adaptation
import drover.fold.healing
import drover.fold.identity
import drover.fold.leaders
import drover.fold.plans
import drover.fold.scheduling
import drover.fold.throttles
import drover.fold.unmanaged
from drover.events.base import Event
from drover.events.records import AnyEvent
from drover.fold import moves as reassignments
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment

# The rules of each capability, by type of event: they change the capability's own slice of the state.
_RULES = (
    drover.fold.adaptation.APPLYING,
    drover.fold.healing.APPLYING,
    drover.fold.identity.APPLYING,
    drover.fold.leaders.APPLYING,
    drover.fold.plans.APPLYING,
    drover.fold.scheduling.APPLYING,
    drover.fold.throttles.APPLYING,
    drover.fold.unmanaged.APPLYING,
    reassignments.APPLYING,
)
_Rule = Callable[[Any, Any, int], None]


def _both(first: _Rule, second: _Rule) -> _Rule:
    def rule(state: Any, event: Any, at_ms: int) -> None:
        first(state, event, at_ms)
        second(state, event, at_ms)

    return rule


APPLYING: Mapping[type[Event], _Rule] = {kind: rule for rules in _RULES for kind, rule in rules.items()} | {
    kind: _both(rule, reassignments.APPLYING[kind]) for kind, rule in drover.fold.healing.BEFORE_REASSIGNMENTS.items()
}
_EVOLVING = reassignments.EVOLVING


def apply(state: ClusterState, event: AnyEvent, at_ms: int) -> None:
    """Fold one event of this cluster into its state; `at_ms` is the batch's time.

    Raises `KeyError` or `AssertionError` only for an event that no decision could have written.
    """
    evolving = _EVOLVING.get(type(event))
    if evolving is None:
        APPLYING[type(event)](state, event, at_ms)
    else:
        # The most frequent events by far. A plain pair equals a TopicPartition as a key, and takes half the time to
        # make.
        moving: dict[Any, Reassignment] = state.reassignments
        about: Any = event  # one partition, see EVOLVING
        before = moving[about.topic, about.partition]
        state.change(before, evolving(before, event, at_ms))


def apply_all(state_of: Callable[[str], ClusterState], events: Iterable[AnyEvent], at_ms: int) -> None:
    """Fold a batch's events in their order, each into its cluster's state; see `apply`."""
    name: str | None = None
    for event in events:
        if event.cluster != name:
            name = event.cluster
            state = state_of(name)
        # The bodies of `apply` and `ReassignmentState.change`, inlined because a replay spends its time here. They do
        # not use `moves`, which would build the index.
        evolving = _EVOLVING.get(type(event))
        if evolving is None:
            APPLYING[type(event)](state, event, at_ms)
        else:
            about: Any = event  # one partition, see EVOLVING
            key = about.topic, about.partition
            moving: dict[Any, Reassignment] = state.reassignments
            before = moving[key]
            after = moving[key] = evolving(before, event, at_ms)
            indexed = state.moves_if_made
            if indexed is not None:
                indexed.change(before, after)
