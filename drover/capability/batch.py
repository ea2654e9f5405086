"""The batch under way: its events and outcomes, and how they change the speculative state."""

from collections.abc import Callable, Iterable

from drover.capability.messages import Moment
from drover.plans.evolve import Ending
from events.partitions import TopicPartition
from events.reassignments import CallIntended
from events.records import AnyEvent, Outcome

# Applies an event to the speculative state of its cluster, tells every capability, and returns it with the
# events that must be in the same batch, in their order.
Apply = Callable[[AnyEvent, int], tuple[AnyEvent, ...]]


class BatchBuilder:
    """Builds one batch. Only `emit` changes the speculative state.

    `now` is in log time, which never goes back; `at_ms` is the batch's time.
    `ended` and `intended` are the reassignments that end, and those that get an intent, in this batch.
    """

    def __init__(self, apply: Apply, now: Moment) -> None:
        self._apply = apply
        self.now = now
        self.at_ms = now.wall_ms
        self.events: list[AnyEvent] = []
        self.outcomes: list[Outcome] = []
        self.intended: set[tuple[str, TopicPartition]] = set()
        self.ended: set[tuple[str, TopicPartition]] = set()

    def emit(self, event: AnyEvent) -> None:
        """Add one event to the batch with the events that belong to it, and apply them to the speculative state."""
        for one in self._apply(event, self.at_ms):
            if isinstance(one, Ending):
                self.ended.add((one.cluster, one.key))
            elif isinstance(one, CallIntended):
                self.intended.add((one.cluster, one.key))
            self.events.append(one)

    def emit_all(self, events: Iterable[AnyEvent]) -> None:
        """Add events in their order."""
        for event in events:
            self.emit(event)
