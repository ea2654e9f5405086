"""The resources that a step needs before it can begin, and which of them have no room."""

from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.starts.rack_traffic import RackTraffic
from drover.reconcile.starts.resources import Health, Knowledge, Needs, ReleasedPort, Resource, RunningPlan
from drover.reconcile.starts.room import Lacking, budgets_of
from drover.reconcile.starts.unsized import Unsized
from drover.state.cluster import ClusterState
from drover.state.ports import Ports, without
from drover.state.reassignment import Reassignment, Step
from drover.state.slot_share import share_of


class StepNeeds:
    """Finds what the steps of one cluster need."""

    def __init__(self, state: ClusterState, sizes: CopySizes, unsized: Unsized, racks: RackTraffic) -> None:
        self._state = state
        self._sizes = sizes
        self._unsized = unsized
        self._racks = racks

    def share(self, reassignment: Reassignment) -> int:
        """Return the share of a slot that each of its copies takes, in sixteenths."""
        return share_of(self._sizes.of_next(reassignment))

    def of(
        self, reassignment: Reassignment, step: Step, ports: Ports, lacking: Lacking, held: Step | None = None
    ) -> tuple[Needs, list[Resource]]:
        """Return the resources that a step needs, and those of them that have no room: none if it may begin.

        `ports` are what it needs beyond what `held`, its prepared step, has already. A step that waits for its plan,
        its size, a held broker or an uplink queues with all that wait for the same, whichever brokers they copy to.
        """
        key, state = reassignment.key, self._state
        if reassignment.plan in state.paused_plans:
            return (RunningPlan(reassignment.plan),), [RunningPlan(reassignment.plan)]
        if step.adding and state.is_suspended(key):
            return (Health.ENOUGH_IN_SYNC,), [Health.ENOUGH_IN_SYNC]
        if step.adding and self._unsized.holds(key):
            return (Knowledge.SIZE,), [Knowledge.SIZE]
        share = self.share(reassignment)
        withheld = self._withheld(ports)
        full = lacking(withheld, key, share) if withheld else []
        if full:
            return withheld, full
        uplinks: Needs = without(self._racks.uplinks(step), self._racks.uplinks(held))
        full = lacking(uplinks, key, share)
        if full:
            return uplinks, full
        needs = (*ports, *self.budgets(step, held))
        return needs, lacking(needs, key, share)

    def _withheld(self, ports: Ports) -> Needs:
        """List what a step needs of held brokers; while it waits for their release, no slots are kept for it."""
        holds = self._state.held_brokers
        if not holds:
            return ()
        needed = (port for port in dict.fromkeys(ports) if port.broker in holds and holds[port.broker].holds(port.way))
        return tuple(ReleasedPort(port.way, port.broker) for port in needed)

    def budgets(self, step: Step, held: Step | None = None) -> Needs:
        """Return the budgets that a step draws on beyond what `held` has of them, each as often as it does."""
        return budgets_of(self._state.limits, step, held)
