"""The batch under way: its events and outcomes, and how they change the speculative state."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from drover.events.cancelled_partitions import as_recorded
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.events.records import AnyEvent, Outcome
from drover.fold.plans import is_ending
from drover.reconcile.messages import Timestamp

# A batch that has reached this size takes no further decision.
FULL_BYTES = 1024 * 1024
# Nor does one whose commands have scanned so many entries of the state, which takes about half a second.
FULL_LOOKED = 2_000_000

# Applies events of one cluster to its speculative state, lets every capability follow, and returns them with the
# events that must be in the same batch, in their order.
Apply = Callable[[Sequence[AnyEvent], int], tuple[AnyEvent, ...]]

_encoder = msgspec.msgpack.Encoder()


class BatchBuilder:
    """Builds one batch. The speculative state changes only by the events that are added here.

    `now` is in log time, which never goes back; `at_ms` is the batch's time.
    `ended` and `intended` are the reassignments that end, and those that get an intent, in this batch.
    `size` is how many bytes the outcomes and events take in the record; the first `decided` events belong to outcomes,
    and are in one record of `decided_size` bytes with them. `looked_through` is how many entries of the state these
    decisions have scanned.
    """

    def __init__(self, apply: Apply, now: Timestamp) -> None:
        self._apply = apply
        self._buffer = bytearray()
        self.now = now
        self.at_ms = now.wall_ms
        self.events: list[AnyEvent] = []
        self.outcomes: list[Outcome] = []
        self.size = 0
        self.decided = self.decided_size = 0
        self.looked_through = 0
        self.intended: set[tuple[str, TopicPartition]] = set()
        self.ended: set[tuple[str, TopicPartition]] = set()

    @property
    def is_full(self) -> bool:
        """Whether further commands must wait for the next batch."""
        return self.size >= FULL_BYTES or self.looked_through >= FULL_LOOKED

    def emit(self, event: AnyEvent) -> None:
        """Add one event; see `emit_all`."""
        self.emit_all((event,))

    def emit_all(self, events: Iterable[AnyEvent]) -> None:
        """Add events of one cluster with the events that belong to them, and apply them to the speculative state.

        The capabilities follow once, after the last of them.
        """
        for event in self._add(tuple(events)):
            self._weigh(as_recorded(event))

    def _add(self, events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
        if not events:
            return ()
        applied = self._apply(events, self.at_ms)
        for event in applied:
            if is_ending(event):
                self.ended.add((event.cluster, event.key))
            elif type(event) is CallIntended:
                self.intended.add((event.cluster, event.key))
        self.events += applied
        return applied

    def end_decisions(self) -> None:
        """Note that all commands of this batch are decided: later events may go into further records."""
        self.decided, self.decided_size = len(self.events), self.size

    def add_outcome(self, outcome: Outcome) -> None:
        """Add the outcome of a command that changes nothing."""
        self.outcomes.append(outcome)
        self._weigh(outcome)

    def add_decision(self, outcome: Outcome, events: Sequence[AnyEvent], size: int) -> None:
        """Add the outcome of a command with its events, which take `size` bytes in the record; see `emit_all`."""
        self.outcomes.append(outcome)
        self.size += size
        given = iter(events)
        awaited = next(given, None)
        for event in self._add(events):
            if event is awaited:
                awaited = next(given, None)
            else:
                self._weigh(as_recorded(event))

    def _weigh(self, part: AnyEvent | Outcome) -> None:
        _encoder.encode_into(part, self._buffer)
        self.size += len(self._buffer)
