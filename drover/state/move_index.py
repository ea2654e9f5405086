"""The index of a cluster's reassignments: the waiting ones, those in flight, and their load on brokers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from drover.events.partitions import TopicPartition
from drover.state.broker_directions import BrokerDirection, BrokerDirections, directions_of
from drover.state.phase import Phase
from drover.state.reassignment import WEIGHTLESS, Reassignment, Step, adding_of, moves_leader
from drover.state.slot_share import share_of

# Bound here, because looking up an enum's member takes longer than the rest of functions that run for every event.
_PENDING = Phase.PENDING
# In flight, before the intent of the next step's call.
_BEFORE_STEP = frozenset({Phase.PREPARED, Phase.CONFIRMED})
_INDEXED = _BEFORE_STEP | {_PENDING}


# Cached, because it is needed whenever a step begins or ends, and a cluster has few different pairs of lists.
@lru_cache(maxsize=4096)
def _weight(
    expected: tuple[int, ...], replicas: tuple[int, ...], leader: int | None
) -> tuple[int, bool, BrokerDirections]:
    """Return a step's number of copies, whether a leader moves with it, and its directions."""
    adding = adding_of(expected, replicas)
    return len(adding), moves_leader(expected, replicas, leader), directions_of(adding, leader)


@dataclass(slots=True)
class MoveIndex:
    """Counts and sets over all reassignments of a cluster, updated with each event, for the scheduler.

    `pending` and `in_flight` split their keys, in no order; `unblocked_of` counts the pending ones without a block by
    plan, and `unblocked_pending` all of them; `before_step` are those in flight that wait for a step to start; `loads`
    counts copies per direction of a broker, and `slots` the slots that they take, in sixteenths; `copies_in_flight`
    counts all copies, `bytes_in_flight` their bytes where these are known, and `leader_steps` the steps in flight with
    which a leader moves.
    """

    pending: dict[TopicPartition, None] = field(default_factory=dict)
    in_flight: dict[TopicPartition, None] = field(default_factory=dict)
    before_step: dict[TopicPartition, None] = field(default_factory=dict)
    unblocked_pending: int = 0
    unblocked_of: dict[str, int] = field(default_factory=dict)
    loads: dict[BrokerDirection, int] = field(default_factory=dict)
    slots: dict[BrokerDirection, int] = field(default_factory=dict)
    copies_in_flight: int = 0
    bytes_in_flight: int = 0
    leader_steps: int = 0

    @classmethod
    def of(cls, reassignments: Iterable[Reassignment]) -> Self:
        """Index these reassignments."""
        made = cls()
        for reassignment in reassignments:
            made.add(reassignment)
        return made

    def copy(self) -> "MoveIndex":
        """Return an independent copy."""
        return MoveIndex(
            self.pending.copy(),
            self.in_flight.copy(),
            self.before_step.copy(),
            self.unblocked_pending,
            self.unblocked_of.copy(),
            self.loads.copy(),
            self.slots.copy(),
            self.copies_in_flight,
            self.bytes_in_flight,
            self.leader_steps,
        )

    def add(self, reassignment: Reassignment) -> None:
        """Index a new reassignment."""
        key = reassignment.key
        if reassignment.phase is _PENDING:
            self.pending[key] = None
            if reassignment.block is None:
                self._count_unblocked(reassignment.plan, 1)
        else:
            self.in_flight[key] = None
            if reassignment.phase in _BEFORE_STEP:
                self.before_step[key] = None
            self._weigh(None, reassignment.weighing_step)

    def change(self, before: Reassignment, after: Reassignment) -> None:
        """Update the index for a reassignment that an event has changed."""
        was, now = before.phase, after.phase
        if was is not now and (was in _INDEXED or now in _INDEXED):
            self._change_phase(before.key, was, now)
        if was is _PENDING and before.block is None:
            self._count_unblocked(before.plan, -1)
        if now is _PENDING and after.block is None:
            self._count_unblocked(after.plan, 1)
        # Most events change neither step nor list, and so no load.
        same = before.step is after.step and before.current is after.current
        if not same or (was in WEIGHTLESS) is not (now in WEIGHTLESS):
            self._weigh(before.weighing_step, after.weighing_step)

    def _count_unblocked(self, plan: str, change: int) -> None:
        self.unblocked_pending += change
        left = self.unblocked_of.get(plan, 0) + change
        if left:
            self.unblocked_of[plan] = left
        else:
            del self.unblocked_of[plan]

    def _change_phase(self, key: TopicPartition, was: Phase, now: Phase) -> None:
        if (was is _PENDING) is not (now is _PENDING):
            left, entered = (self.pending, self.in_flight) if was is _PENDING else (self.in_flight, self.pending)
            del left[key]
            entered[key] = None
        if now in _BEFORE_STEP:
            self.before_step[key] = None
        elif was in _BEFORE_STEP:
            del self.before_step[key]

    def remove(self, reassignment: Reassignment) -> None:
        """Remove a reassignment that has ended."""
        key = reassignment.key
        if reassignment.phase is _PENDING:
            del self.pending[key]
            if reassignment.block is None:
                self._count_unblocked(reassignment.plan, -1)
        else:
            del self.in_flight[key]
            self.before_step.pop(key, None)
            self._weigh(reassignment.weighing_step, None)

    def _weigh(self, before: Step | None, after: Step | None) -> None:
        if before is after or before == after:
            return
        loads, slots = self.loads, self.slots
        if before is not None:
            copies, moves_leader, load = _weight(before.expected, before.replicas, before.leader)
            self.copies_in_flight -= copies
            self.leader_steps -= moves_leader
            if before.copy_bytes:
                self.bytes_in_flight -= copies * before.copy_bytes
            share = share_of(before.copy_bytes)
            for direction in load:
                left = loads[direction] - 1
                if left:
                    loads[direction] = left
                    slots[direction] -= share
                else:
                    del loads[direction], slots[direction]
        if after is not None:
            copies, moves_leader, load = _weight(after.expected, after.replicas, after.leader)
            self.copies_in_flight += copies
            self.leader_steps += moves_leader
            if after.copy_bytes:
                self.bytes_in_flight += copies * after.copy_bytes
            share = share_of(after.copy_bytes)
            for direction in load:
                loads[direction] = loads.get(direction, 0) + 1
                slots[direction] = slots.get(direction, 0) + share
