"""Deciding to freeze and unfreeze a cluster."""

from drover.capability.decision import Decision, Facts
from drover.scheduling.state import SchedulingState
from events.clusters import ClusterFrozen, ClusterUnfrozen
from events.commands import Freeze, Unfreeze


def decide_freeze(command: Freeze, state: SchedulingState, _facts: Facts) -> Decision:
    """Let nothing new start (R236-9); has no effect on a cluster that is frozen."""
    if state.freeze is not None:
        return Decision()
    return Decision(events=(ClusterFrozen(cluster=state.name, by=command.by, reason=command.reason),))


def decide_unfreeze(command: Unfreeze, state: SchedulingState, _facts: Facts) -> Decision:
    """End the freeze; has no effect on a cluster that is not frozen."""
    if state.freeze is None:
        return Decision()
    return Decision(events=(ClusterUnfrozen(cluster=state.name, by=command.by, reason=command.reason),))
