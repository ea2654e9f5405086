"""The slice of the state with a cluster's reassignments."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from drover.events.partitions import TopicPartition
from drover.state.declared import index, items_by_key, recorded, values_in_order
from drover.state.lists import ListsState
from drover.state.move_index import MoveIndex
from drover.state.plans import PlansState
from drover.state.reassignment import ExpiredCalls, Reassignment


@dataclass(eq=False)
class ReassignmentState(PlansState, ListsState):
    """The reassignments of a cluster that have not ended, and calls of ended ones that may still take effect.

    `reassignments` are in the order of acceptance. `expired_calls` are the calls of ended reassignments. `moves` is the
    index of `reassignments`. It is built on its first use: a reader that does without it replays the log in a fifth
    less time. `moves_if_made` is None until then.
    """

    reassignments: dict[TopicPartition, Reassignment] = recorded(
        "reassignments",
        factory=dict,
        content=values_in_order,
        key=attrgetter("key"),
        described_as=("reassignment", "begun", "ended"),
    )
    next_number: int = recorded("next_number", 1)
    expired_calls: dict[TopicPartition, ExpiredCalls] = recorded(
        "expired_calls", factory=dict, content=items_by_key, described_as=("late calls", "possible", "past")
    )
    moves_if_made: MoveIndex | None = index(lambda: None)

    def rebuild_indexes(self) -> None:
        """Drop the index of the reassignments, which is rebuilt on its first use."""
        super().rebuild_indexes()
        self.moves_if_made = None

    @property
    def moves(self) -> MoveIndex:
        """The index of the reassignments, built on its first use and kept up to date from then on."""
        if self.moves_if_made is None:
            self.moves_if_made = MoveIndex.of(self.reassignments.values())
        return self.moves_if_made

    def put(self, reassignment: Reassignment) -> None:
        """Store a new reassignment."""
        stored = self.reassignments.setdefault(reassignment.key, reassignment)
        assert stored is reassignment, f"{reassignment.key} is under way already"
        if self.moves_if_made is not None:
            self.moves_if_made.add(reassignment)

    def change(self, before: Reassignment, after: Reassignment) -> None:
        """Replace a reassignment."""
        self.reassignments[before.key] = after
        if self.moves_if_made is not None:
            self.moves_if_made.change(before, after)

    def take(self, topic: str, partition: int) -> Reassignment:
        """Remove a reassignment that has ended, and return it."""
        # A plain pair equals a TopicPartition as a key, and takes half the time to make.
        reassignments: dict[Any, Reassignment] = self.reassignments
        ended = reassignments.pop((topic, partition))
        if self.moves_if_made is not None:
            self.moves_if_made.remove(ended)
        return ended
