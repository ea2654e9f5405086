"""The inbox of one shard: commands from its four topics that are not yet durable.

Each topic is first in, first out. `drover.cancel` comes before the others, so that a freeze or a cancel never waits for
a flood of alters; the others follow each other by the time of their records. No topic fills more than half of a run
while another one waits.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from drover.events.topics import COMMAND_KINDS
from drover.shard.messages import Arrival

CLOSE_BYTES = 1024 * 1024
HIGH_COUNT, LOW_COUNT = 4000, 2000
HIGH_BYTES, LOW_BYTES = 16 * 1024 * 1024, 8 * 1024 * 1024
ARRIVAL_OVERHEAD_BYTES = 64
CANCEL_INDEX = COMMAND_KINDS.index("cancel")


class InboxGapError(AssertionError):
    """An offset is missing: a command would be lost."""


class Inbox:
    """Commands that have arrived and are not yet durable.

    A command leaves for good only when its batch is folded as valid (`settle`). When the worker is fenced, the commands
    it took go back to the head (`give_back`), and `take` drops those that another owner has decided meanwhile. Offsets
    may be skipped only with `skip_to`, after the gap was proven empty.
    """

    def __init__(self) -> None:
        self._queues: tuple[deque[Arrival], ...] = tuple(deque() for _ in COMMAND_KINDS)
        self._next = [0] * len(COMMAND_KINDS)
        self._taken: tuple[Arrival, ...] = ()
        self.count = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[Arrival]:
        """Iterate over the waiting commands, topic by topic."""
        for queue in self._queues:
            yield from queue

    def reset(self, next_offsets: Sequence[int]) -> None:
        """Forget everything and expect these offsets next, one per command topic."""
        for queue in self._queues:
            queue.clear()
        self._next = list(next_offsets)
        self._taken = ()
        self.count = self.bytes = 0

    def expected(self, topic_index: int) -> int:
        """Return the offset that must come next."""
        return self._next[topic_index]

    def skip_to(self, topic_index: int, offset: int) -> None:
        """Accept that there is no record between the expected offset and this one (transaction markers)."""
        self._next[topic_index] = max(self._next[topic_index], offset)

    def add(self, arrival: Arrival) -> bool:
        """Queue an arrival; False for one that was queued before. Raises `InboxGapError` if one is missing."""
        index = arrival.topic_index
        expected = self._next[index]
        if arrival.offset < expected:
            return False
        if arrival.offset > expected:
            topic = COMMAND_KINDS[index]
            raise InboxGapError(f"command topic {topic}: offset {arrival.offset} came, {expected} is missing")
        self._next[index] = expected + 1
        self._queues[index].append(arrival)
        self.count += 1
        self.bytes += weight_of(arrival)
        return True

    def take(self, next_offsets: Sequence[int]) -> tuple[Arrival, ...]:
        """Take the next commands, about 1 MiB; those below `next_offsets`, which the log has decided, are dropped."""
        assert not self._taken, "the last commands taken were neither settled nor given back"
        for queue, next_offset in zip(self._queues, next_offsets, strict=True):
            while queue and queue[0].offset < next_offset:
                self._forget(queue.popleft())
        taken: list[Arrival] = []
        sizes, size = [0] * len(COMMAND_KINDS), 0
        while (following := self._following(sizes)) is not None:
            weight = weight_of(following)
            if taken and size + weight > CLOSE_BYTES:
                break
            self._queues[following.topic_index].popleft()
            taken.append(following)
            sizes[following.topic_index] += weight
            size += weight
        self._taken = tuple(taken)
        return self._taken

    def _following(self, sizes: Sequence[int]) -> Arrival | None:
        """Return the next arrival: a cancel, else the oldest; topics that have had half of the run come last."""
        heads = [queue[0] for queue in self._queues if queue]
        sharing = [head for head in heads if sizes[head.topic_index] < CLOSE_BYTES // 2]
        return min(sharing or heads, key=_place, default=None)

    def settle(self, decided: int | None = None) -> None:
        """Finish the taken commands: the first `decided` of them (all by default) are durable, the rest go back."""
        done = self._taken if decided is None else self._taken[:decided]
        for arrival in done:
            self._forget(arrival)
        self._taken = self._taken[len(done) :]
        self.give_back()

    def give_back(self) -> None:
        """Put the taken commands back to the heads of their queues."""
        for arrival in reversed(self._taken):
            self._queues[arrival.topic_index].appendleft(arrival)
        self._taken = ()

    @property
    def is_high(self) -> bool:
        """Whether reading should stop."""
        return self.count >= HIGH_COUNT or self.bytes >= HIGH_BYTES

    @property
    def is_low(self) -> bool:
        """Whether reading may go on."""
        return self.count <= LOW_COUNT and self.bytes <= LOW_BYTES

    def _forget(self, arrival: Arrival) -> None:
        self.count -= 1
        self.bytes -= weight_of(arrival)


def weight_of(arrival: Arrival) -> int:
    """Return the bytes that a command takes while it waits."""
    return len(arrival.payload) + ARRIVAL_OVERHEAD_BYTES


def _place(arrival: Arrival) -> tuple[bool, int, int]:
    return arrival.topic_index != CANCEL_INDEX, arrival.timestamp_ms, arrival.topic_index
