"""Room for further steps: what is in flight, held against the limits. A question costs what it asks about."""

from collections.abc import Callable, Mapping

from drover.events.partitions import TopicPartition
from drover.reconcile.observations import ObservationCache
from drover.reconcile.starts.candidates import Candidates
from drover.reconcile.starts.rack_traffic import RackTraffic
from drover.reconcile.starts.resources import (
    Budget,
    Health,
    Knowledge,
    Needs,
    ReleasedPort,
    Resource,
    RunningPlan,
    Uplink,
)
from drover.reconcile.starts.throttles import Throttles
from drover.reconcile.throttles.ahead import MAX_ENTRIES_PER_TOPIC
from drover.state.cluster import ClusterState
from drover.state.ports import Port
from drover.state.reassignment import Step
from drover.state.scheduling import Limits
from drover.state.slot_share import LEAST_SHARE, WHOLE_SLOT

Lacking = Callable[[Needs, TopicPartition, int], list[Resource]]
_NOTHING: Mapping[Resource, int] = {}
# `isinstance(one, Port | Uplink)` would build the union on every call, dozens of times per draft.
_IN_SLOTS = (Port, Uplink)
_OF_BROKERS = (Port, ReleasedPort)


def limit_of(limits: Limits, port: Port) -> int:
    """Return how many slots a port has: whole copies that may pass it at a time."""
    return limits.max_incoming if port.way == "in" else limits.max_outgoing


def budgets_of(limits: Limits, step: Step, held: Step | None = None) -> tuple[Budget, ...]:
    """Return the budgets that a step draws on: one for each copy, for its bytes, and for the leader that it moves.

    `held` is the prepared step whose room it takes over.
    """
    budgets = limits.budgets
    found: tuple[Budget, ...] = ()
    if budgets.max_replica_copies_in_flight is not None or budgets.max_bytes_in_flight is not None:
        copies = len(step.adding) - (0 if held is None else len(held.adding))
        if copies > 0 and budgets.max_replica_copies_in_flight is not None:
            found = (Budget.COPIES,) * copies
        if copies > 0 and budgets.max_bytes_in_flight is not None:
            found = (*found, Budget.BYTES)
    if step.moves_leader and not (held is not None and held.moves_leader):
        found = (*found, Budget.LEADERS)
    return found


class Room:
    """The room of one cluster beside what is in flight, and beside what is reserved for others.

    `candidates` knows what is reserved, and what those with a look are likely to take.
    """

    def __init__(
        self,
        state: ClusterState,
        observed: ObservationCache,
        throttles: Throttles,
        candidates: Candidates,
        racks: RackTraffic,
    ) -> None:
        self._state = state
        self._racks = racks
        self._observed = observed
        self._throttles = throttles
        self._candidates = candidates

    def left(self, needs: Needs, key: TopicPartition, share: int) -> list[Resource]:
        """List the resources that have no room for what a reassignment needs, beside what is in flight.

        `share` is what each of its copies takes of a slot, in sixteenths.
        """
        return self._lacking(needs, key, share, _NOTHING)

    def lacking(self, needs: Needs, key: TopicPartition, share: int) -> list[Resource]:
        """List those that have none beside what is being looked at, too; nothing waits for room at a dead broker."""
        live = self._observed.live
        found = self._lacking(needs, key, share, self._candidates.expected)
        return [one for one in found if not isinstance(one, _OF_BROKERS) or one.broker in live]

    def has_room(self, resource: Resource, share: int = LEAST_SHARE) -> bool:
        """Whether there is room for one more that takes this share of a slot, beside what is being looked at."""
        state = self._state
        match resource:
            case Budget():
                return not self._is_used_up(resource, 1, self._candidates.expected)
            case Knowledge():
                return False  # what has a size now is offered anew
            case Health():
                return state.suspension is None
            case RunningPlan():
                return resource.plan not in state.paused_plans
            case ReleasedPort():
                hold = state.held_brokers.get(resource.broker)
                return hold is None or not hold.holds(resource.way)
            case Port():
                is_live = resource.broker in self._observed.live
                kept = self._candidates.kept(resource)
                return not is_live or not self._is_full(resource, share, self._candidates.expected, kept)
            case Uplink():
                kept = self._candidates.kept(resource)
                return not self._is_full(resource, share, self._candidates.expected, kept)
            case _:
                return self.may_throttle(resource, 1)

    def may_throttle(self, topic: str, entries: int) -> bool:
        """Whether a topic's list of throttled replicas takes so many more."""
        return self._throttles.entries_of(topic) + entries <= MAX_ENTRIES_PER_TOPIC

    @property
    def partitions(self) -> int:
        """How many more partitions may be in flight; negative where the limit was lowered below what is."""
        return self._state.limits.max_partitions_in_flight - len(self._state.moves.in_flight)

    @property
    def copies(self) -> int:
        """How many more copies could begin, as far as brokers and budgets go, if they were of next to nothing."""
        state, limits = self._state, self._state.limits
        slots = len(self._observed.live) * (limits.max_incoming + limits.max_outgoing)
        room = (slots * WHOLE_SLOT - sum(state.moves.slots.values())) // LEAST_SHARE
        most = limits.budgets.max_replica_copies_in_flight
        return max(0, room if most is None else min(room, most - state.moves.copies_in_flight))

    def _lacking(
        self, needs: Needs, key: TopicPartition, share: int, expected: Mapping[Resource, int]
    ) -> list[Resource]:
        found: list[Resource] = []
        for one in dict.fromkeys(needs):
            if isinstance(one, _IN_SLOTS):
                kept = self._candidates.kept(one, key)
                if self._is_full(one, needs.count(one) * share, expected, kept):
                    found.append(one)
            elif isinstance(one, Budget):
                if self._is_used_up(one, needs.count(one), expected):
                    found.append(one)
            elif not self.has_room(one, share):
                found.append(one)
        return found

    def _is_used_up(self, budget: Budget, wanted: int, expected: Mapping[Resource, int]) -> bool:
        """Whether a budget has less left than is wanted; what exceeds it by itself goes alone.

        Leaders that elections and order calls move count, too. Bytes are counted only once a copy is on its way.
        """
        state, budgets = self._state, self._state.limits.budgets
        if budget is Budget.BYTES:
            return (
                budgets.max_bytes_in_flight is not None and state.moves.bytes_in_flight >= budgets.max_bytes_in_flight
            )
        if budget is Budget.COPIES:
            most, taken = budgets.max_replica_copies_in_flight, state.moves.copies_in_flight
        else:
            most, taken = state.limits.max_leader_movements, state.leader_movements
        taken += expected.get(budget, 0)
        return most is not None and bool(taken) and taken + wanted > most

    def _is_full(self, port: Port | Uplink, wanted: int, expected: Mapping[Resource, int], kept: int) -> bool:
        """Whether a port or an uplink has fewer sixteenths of slots left than are wanted.

        A held port takes nothing. What exceeds a limit by itself goes alone. `kept` is reserved for a reassignment that
        others have passed too often.
        """
        state = self._state
        if isinstance(port, Uplink):
            slots, in_use = state.limits.budgets.max_moves_per_rack, self._racks.taken(port)
        else:
            held = state.held_brokers.get(port.broker)
            if held is not None and held.holds(port.way):
                return True
            slots, in_use = state.slots_of(port.broker, limit_of(state.limits, port)), state.moves.slots.get(port, 0)
        taken = in_use + expected.get(port, 0) + kept
        return slots is not None and bool(taken) and taken + wanted > slots * WHOLE_SLOT
