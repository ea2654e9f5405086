"""The slots that copies between racks take of each rack's uplink, while `max_moves_per_rack` limits them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from drover.events.partitions import TopicPartition
from drover.reconcile.observations import ObservationCache
from drover.reconcile.starts.resources import Uplink
from drover.state.cluster import ClusterState
from drover.state.reassignment import Step


def uplinks_of(adding: Iterable[int], leader: int | None, racks: Mapping[int, str | None]) -> tuple[Uplink, ...]:
    """Return the uplinks that copies from a leader to the brokers in `adding` pass, once per copy.

    A copy within a rack passes none, nor does one from or to a broker whose rack is unknown.
    """
    source = None if leader is None else racks.get(leader)
    if source is None:
        return ()
    there = [rack for broker in adding if (rack := racks.get(broker)) is not None and rack != source]
    return (Uplink(source, "out"),) * len(there) + tuple(Uplink(rack, "in") for rack in there)


class RackTraffic:
    """Counts the slots in use on each rack's uplink, in sixteenths; counts nothing without `max_moves_per_rack`.

    The log does not hold the brokers' racks. So a new owner counts anew, and so does this one when it sees a broker in
    another rack.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        self._state = state
        self._observed = observed
        self._racks: Mapping[int, str | None] = {}
        self._copies: dict[TopicPartition, tuple[tuple[Uplink, ...], int]] = {}
        self._taken: Counter[Uplink] = Counter()

    def refresh(self) -> bool:
        """Recount if racks have changed, or if the limit was set or removed; return whether it did."""
        is_bounded = self._state.limits.budgets.max_moves_per_rack is not None
        racks = self._observed.racks if is_bounded else {}
        if racks is self._racks or racks == self._racks:
            return False
        self._racks = racks
        self._copies.clear()
        self._taken.clear()
        for key in self._state.moves.in_flight:
            self.follow(key)
        return True

    def follow(self, key: TopicPartition) -> None:
        """Replace what a partition counted for by what its step takes now."""
        if not self._racks:
            return
        uplinks, share = self._copies.pop(key, ((), 0))
        for uplink in uplinks:
            self._taken[uplink] -= share
        entry = self._state.reassignments.get(key)
        step = None if entry is None else entry.weighing_step
        if step is not None and (uplinks := self.uplinks(step)):
            self._copies[key] = uplinks, step.slot_share
            for uplink in uplinks:
                self._taken[uplink] += step.slot_share

    def uplinks(self, step: Step | None) -> tuple[Uplink, ...]:
        """Return the uplinks that the copies of a step pass; none without a limit."""
        return () if step is None or not self._racks else uplinks_of(step.adding, step.leader, self._racks)

    def taken(self, uplink: Uplink) -> int:
        """Return the sixteenths of slots in use on an uplink."""
        return self._taken.get(uplink, 0)
