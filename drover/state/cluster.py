"""The state of one managed cluster: the slices of all capabilities."""

from dataclasses import dataclass, fields
from typing import Self

from drover.state.adaptation import AdaptationState
from drover.state.declared import copy_of
from drover.state.healing import HealingState
from drover.state.identity import IdentityState
from drover.state.leaders import LeadershipState
from drover.state.moves import ReassignmentState
from drover.state.scheduling import SchedulingState
from drover.state.throttles import ThrottlingState
from drover.state.unmanaged import UnmanagedState


@dataclass(eq=False)
class ClusterState(
    AdaptationState,
    IdentityState,
    ThrottlingState,
    HealingState,
    UnmanagedState,
    LeadershipState,
    SchedulingState,
    ReassignmentState,
):
    """The state of a managed cluster; only `drover.fold.evolve.apply` changes it.

    A new capability adds its slice as a base class. Functions take the narrowest slice that they need.
    """

    @property
    def leader_movements(self) -> int:
        """Return the number of leaders that steps, elections, and reorders before elections are moving (R435-8)."""
        return self.moves.leader_steps + self.leaders_under_way

    def copy(self) -> Self:
        """Return an independent copy; the values inside are frozen and shared."""
        copy = type(self)(self.name)
        for attribute in fields(self):
            setattr(copy, attribute.name, copy_of(getattr(self, attribute.name)))
        return copy
