"""The copies between racks: what they take of the slots of each rack, where a limit bounds it."""

from collections import Counter
from collections.abc import Mapping

from drover.capability.observations import ObservationCache
from drover.reassignment.state import Step
from drover.scheduling.resources import RackWay
from drover.state.cluster import ClusterState
from events.partitions import TopicPartition


def rack_ways(step: Step, racks: Mapping[int, str | None]) -> tuple[RackWay, ...]:
    """Return the ways out of and into racks that the copies of a step take, one by one.

    A copy within a rack takes none, nor does one from or to a broker whose rack is not known.
    """
    source = None if step.leader is None else racks.get(step.leader)
    if source is None:
        return ()
    there = [rack for broker in step.adding if (rack := racks.get(broker)) is not None and rack != source]
    return (RackWay(source, "out"),) * len(there) + tuple(RackWay(rack, "in") for rack in there)


class RackTraffic:
    """What weighs on each rack, in sixteenths of a slot; nothing is counted while no limit bounds it.

    The log does not say which broker is in which rack, so this is gone with the ownership, and counted anew when a
    broker is seen in another rack.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        self._state = state
        self._observed = observed
        self._racks: Mapping[int, str | None] = {}
        self._copies: dict[TopicPartition, tuple[tuple[RackWay, ...], int]] = {}
        self._taken: Counter[RackWay] = Counter()

    def refresh(self) -> bool:
        """Count everything anew if the racks, or whether they are bounded, have changed; return whether they have."""
        is_bounded = self._state.limits.budgets.max_moves_per_rack is not None
        racks = self._observed.racks if is_bounded else {}
        if racks is self._racks or racks == self._racks:
            return False
        self._racks = racks
        self._copies.clear()
        self._taken.clear()
        for key in self._state.in_flight:
            self.follow(key)
        return True

    def follow(self, key: TopicPartition) -> None:
        """Count a partition as it is now, in place of what it was."""
        if not self._racks:
            return
        ways, share = self._copies.pop(key, ((), 0))
        for way in ways:
            self._taken[way] -= share
        entry = self._state.reassignments.get(key)
        step = None if entry is None else entry.weighing_step
        if step is not None and (ways := self.ways(step)):
            self._copies[key] = ways, step.slot_share
            for way in ways:
                self._taken[way] += step.slot_share

    def ways(self, step: Step | None) -> tuple[RackWay, ...]:
        """Return the ways that a step takes; none without a limit."""
        return () if step is None or not self._racks else rack_ways(step, self._racks)

    def taken(self, way: RackWay) -> int:
        """Return how many sixteenths of slots are taken."""
        return self._taken.get(way, 0)
