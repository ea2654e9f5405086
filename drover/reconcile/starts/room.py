"""The room of a cluster by its owner's view: taken by moves in flight, expected, or kept in this pass."""

from collections import Counter
from collections.abc import Iterable, Mapping

from drover.events.partitions import TopicPartition
from drover.reconcile.gates import Budget, Start, Uplink, View, hold_of, limit_of
from drover.reconcile.observations import ObservationCache
from drover.reconcile.starts.throttles import Throttles
from drover.state.broker_directions import BrokerDirection
from drover.state.cluster import ClusterState
from drover.state.reassignment import Step
from drover.state.slot_share import LEAST_SHARE, WHOLE_SLOT


def uplinks_of(adding: Iterable[int], leader: int | None, racks: Mapping[int, str | None]) -> tuple[Uplink, ...]:
    """Return the uplinks that copies from a leader to the brokers in `adding` pass, once per copy.

    A copy within a rack passes none, nor does one from or to a broker whose rack is unknown.
    """
    source = None if leader is None else racks.get(leader)
    if source is None:
        return ()
    others = [rack for broker in adding if (rack := racks.get(broker)) is not None and rack != source]
    return (Uplink(source, "out"),) * len(others) + tuple(Uplink(rack, "in") for rack in others)


class Room(View):
    """The room of one cluster during one pass.

    Moves whose observation was asked for are expected to start, so that later moves do not take their room. Room is
    kept for moves that others have passed too often.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, throttles: Throttles) -> None:
        super().__init__(state)
        self._observed = observed
        self._throttles = throttles
        self._expected: Counter[BrokerDirection | Uplink | Budget] = Counter()
        self._kept: dict[BrokerDirection | Uplink, tuple[TopicPartition, int]] = {}
        self._uplinks: Counter[Uplink] = Counter()

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The racks of the brokers; none while no limit concerns racks."""
        return {} if self.state.limits.budgets.max_moves_per_rack is None else self._observed.racks

    def uplinks(self, step: Step | None) -> tuple[Uplink, ...]:
        """Return the uplinks that the copies of a step pass; none without a limit."""
        racks = self.racks
        return uplinks_of(step.adding, step.leader, racks) if step is not None and racks else ()

    def begin(self) -> None:
        """Forget the room expected and kept in the last pass; count copies between racks, which the log does not."""
        self._expected.clear()
        self._kept.clear()
        self._uplinks.clear()
        if self.racks:
            for key in self.state.moves.in_flight:
                self._count_uplinks(self.state.reassignments[key].weighing_step)

    def _count_uplinks(self, step: Step | None) -> None:
        if step is not None:
            for uplink in self.uplinks(step):
                self._uplinks[uplink] += step.slot_share

    def begun(self, before: Step | None, after: Step | None) -> None:
        """Count a step that this pass has begun in place of the one that was prepared."""
        for uplink in self.uplinks(before):
            self._uplinks[uplink] -= 0 if before is None else before.slot_share
        self._count_uplinks(after)

    def expect(self, start: Start) -> None:
        """Leave room for a step that begins once its partition has been observed."""
        for resource in start.slots:
            self._expected[resource] += start.share
        self._expected[Budget.COPIES] += start.copies
        self._expected[Budget.LEADERS] += start.moves_leader

    def keep(self, start: Start) -> bool:
        """Keep every slot that a step needs, unless one of them is kept already; return whether they are kept."""
        needs = Counter(start.slots)
        if self._kept.keys() & needs.keys():
            return False
        self._kept.update((resource, (start.key, count * start.share)) for resource, count in needs.items())
        return True

    def _kept_for_others(self, resource: BrokerDirection | Uplink, key: TopicPartition) -> int:
        owner, amount = self._kept.get(resource, (key, 0))
        return 0 if owner == key else amount

    def slots_taken(self, direction: BrokerDirection, key: TopicPartition) -> int:
        """Return the sixteenths of slots taken, expected, and kept for others in a direction."""
        taken = self.state.moves.slots.get(direction, 0) + self._expected[direction]
        return taken + self._kept_for_others(direction, key) if self._kept else taken

    def uplink_taken(self, uplink: Uplink, key: TopicPartition) -> int:
        """Return the sixteenths of slots taken, expected, and kept for others on an uplink."""
        return self._uplinks[uplink] + self._expected[uplink] + self._kept_for_others(uplink, key)

    def budget_taken(self, budget: Budget) -> int:
        """Return how much of a budget is taken or expected."""
        return super().budget_taken(budget) + self._expected[budget]

    def is_waited_for(self, broker: int, start: Start) -> bool:
        """Whether a step waits for room at a broker; a likely step to a dead one is tried, so that this is recorded."""
        return start.is_observed or broker in self._observed.live

    def throttle_entries(self, topic: str) -> int:
        """Return how many entries a topic's list of throttled replicas needs."""
        return self._throttles.entries_of(topic)

    def takes_copies(self, broker: int) -> bool:
        """Whether any copy into a broker may begin."""
        direction = BrokerDirection(broker, "in")
        if hold_of(self.state, direction) is not None:
            return False
        taken = self.state.moves.slots.get(direction, 0)
        slots = self.state.slots_of(broker, limit_of(self.state.limits, direction))
        return not taken or taken + LEAST_SHARE <= slots * WHOLE_SLOT

    @property
    def partitions(self) -> int:
        """How many more partitions may be in flight; negative where the limit was lowered below the present number."""
        return self.state.limits.max_partitions_in_flight - len(self.state.moves.in_flight)
