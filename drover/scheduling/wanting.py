"""What a step that is to begin needs room at, and what of it is full."""

from drover.reassignment.copy_sizes import CopySizes
from drover.reassignment.ports import Ports, without
from drover.reassignment.slot_share import share_of
from drover.reassignment.state import Reassignment, Step
from drover.scheduling.rack_traffic import RackTraffic
from drover.scheduling.resources import Health, Knowledge, Needs, Resource, RunningPlan
from drover.scheduling.room import Lacking, exhausted
from drover.scheduling.unsized import Unsized
from drover.state.cluster import ClusterState


class Wanting:
    """The needs of steps of one cluster."""

    def __init__(self, state: ClusterState, sizes: CopySizes, unsized: Unsized, racks: RackTraffic) -> None:
        self._state = state
        self._sizes = sizes
        self._unsized = unsized
        self._racks = racks

    def share(self, reassignment: Reassignment) -> int:
        """Return what each of its copies takes of a slot."""
        return share_of(self._sizes.of_next(reassignment))

    def of(
        self, reassignment: Reassignment, step: Step, ports: Ports, lacking: Lacking, held: Step | None = None
    ) -> tuple[Needs, list[Resource]]:
        """Say for what a step waits: what it needs, and what of it is full.

        `ports` are those that it needs beside what `held`, the prepared step, has already. For its plan, its size, a
        budget of the cluster, or a rack, it waits among all that do, whatever they need at brokers.
        """
        key, state = reassignment.key, self._state
        if reassignment.plan in state.paused_plans:
            return (RunningPlan(reassignment.plan),), [RunningPlan(reassignment.plan)]
        if step.adding and state.is_suspended(key):
            return (Health.ENOUGH_IN_SYNC,), [Health.ENOUGH_IN_SYNC]
        if step.adding and self._unsized.holds(key):
            return (Knowledge.SIZE,), [Knowledge.SIZE]
        budget = exhausted(state, step, held)
        if budget is not None:
            return (budget,), [budget]
        share = self.share(reassignment)
        ways: Needs = without(self._racks.ways(step), self._racks.ways(held))
        narrow = lacking(ways, key, share)
        return (ways, narrow) if narrow else (ports, lacking(ports, key, share))
