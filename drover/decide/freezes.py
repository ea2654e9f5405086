"""Decide to freeze and unfreeze a cluster; each requester has a freeze of their own."""

from collections.abc import Iterable

from drover.decide.decision import Decision, Facts, refuse
from drover.events.clusters import ClusterFrozen, ClusterUnfrozen, FreezeEnded
from drover.events.commands import Freeze, Unfreeze
from drover.events.refusals import RefusalCode
from drover.state.scheduling import Freeze as FreezeState
from drover.state.scheduling import SchedulingState

# Freezes are part of the state, and one is enough to stop all work.
MAX_FREEZES = 100


def decide_freeze(command: Freeze, state: SchedulingState, _facts: Facts) -> Decision:
    """Freeze the cluster, so that no new work starts (R236-9); no effect if the requester has a freeze already."""
    freezes = state.freezes
    if any(freeze.by == command.by for freeze in freezes):
        return Decision(remarks=(f"{state.name} was frozen by {command.by} already, and remains so",))
    if len(freezes) >= MAX_FREEZES:
        detail = f"{len(freezes)} freezes hold in {state.name} already, the most kept: it is frozen without this one"
        return refuse(RefusalCode.TOO_LARGE, detail)
    return Decision(events=(ClusterFrozen(cluster=state.name, by=command.by, reason=command.reason),))


def decide_unfreeze(command: Unfreeze, state: SchedulingState, _facts: Facts) -> Decision:
    """End the requester's freeze, or all of them; has no effect on a cluster that is not frozen."""
    freezes = state.freezes
    if not freezes:
        return Decision(remarks=(f"{state.name} was not frozen",))
    others = [freeze for freeze in freezes if freeze.by != command.by]
    if command.all or not others:
        return Decision(events=(ClusterUnfrozen(cluster=state.name, by=command.by, reason=command.reason),))
    remain = f"{state.name} remains frozen by {_names(others)}"
    if len(others) == len(freezes):
        detail = f"{remain}; {command.by} holds no freeze there: `drover unfreeze --all` ends those of everyone"
        return refuse(RefusalCode.FROZEN_BY_OTHERS, detail)
    ended = FreezeEnded(cluster=state.name, by=command.by, reason=command.reason)
    return Decision(events=(ended,), remarks=(f"{remain}: `drover unfreeze --all` ends those of everyone",))


def _names(freezes: Iterable[FreezeState]) -> str:
    return ", ".join(f"{freeze.by} ({freeze.reason})" for freeze in freezes)
