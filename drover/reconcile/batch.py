"""The batch under way: its events and outcomes, and how they change the speculative state."""

from collections.abc import Callable, Iterable

import msgspec

from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.events.records import AnyEvent, Outcome
from drover.events.references import as_recorded
from drover.fold.plans import is_ending
from drover.reconcile.messages import Moment

# Nothing further is decided in a batch that has reached this size.
FULL_BYTES = 1024 * 1024
# Nor in one whose commands have looked through so many entries of the state: that takes about half a second.
FULL_LOOKED = 2_000_000

# Applies an event to the speculative state of its cluster, tells every capability, and returns it with the
# events that must be in the same batch, in their order.
Apply = Callable[[AnyEvent, int], tuple[AnyEvent, ...]]

_encoder = msgspec.msgpack.Encoder()


class BatchBuilder:
    """Builds one batch. Only `emit` changes the speculative state.

    `now` is in log time, which never goes back; `at_ms` is the batch's time.
    `ended` and `intended` are the reassignments that end, and those that get an intent, in this batch.
    `size` is how many bytes the outcomes and events take in the record; the first `decided` events belong to outcomes,
    and are in one record with them. `looked_through` is how many entries of the state they have looked through.
    """

    def __init__(self, apply: Apply, now: Moment) -> None:
        self._apply = apply
        self._buffer = bytearray()
        self.now = now
        self.at_ms = now.wall_ms
        self.events: list[AnyEvent] = []
        self.outcomes: list[Outcome] = []
        self.size = 0
        self.decided = 0
        self.looked_through = 0
        self.intended: set[tuple[str, TopicPartition]] = set()
        self.ended: set[tuple[str, TopicPartition]] = set()

    @property
    def is_full(self) -> bool:
        """Whether what is still to be decided must wait for the next batch."""
        return self.size >= FULL_BYTES or self.looked_through >= FULL_LOOKED

    def emit(self, event: AnyEvent) -> None:
        """Add one event to the batch with the events that belong to it, and apply them to the speculative state."""
        for one in self._apply(event, self.at_ms):
            if is_ending(one):
                self.ended.add((one.cluster, one.key))
            elif type(one) is CallIntended:
                self.intended.add((one.cluster, one.key))
            self.events.append(one)
            self._weigh(as_recorded(one))

    def emit_all(self, events: Iterable[AnyEvent]) -> None:
        """Add events in their order."""
        for event in events:
            self.emit(event)

    def end_decisions(self) -> None:
        """Note that all commands of this batch are decided: what comes now may go into further records."""
        self.decided = len(self.events)

    def add_outcome(self, outcome: Outcome) -> None:
        """Add what became of a command."""
        self.outcomes.append(outcome)
        self._weigh(outcome)

    def _weigh(self, part: AnyEvent | Outcome) -> None:
        _encoder.encode_into(part, self._buffer)
        self.size += len(self._buffer)
