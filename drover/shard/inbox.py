"""The inbox of one shard: four command topics merged by time, and never more than a contiguous run from each cursor.

What ends or holds back work goes first. A freeze and an unfreeze overtake whatever stands in other topics; so does a
cancel, unless an alter that has arrived before it is of the same author, or names one of its topics, its plan or its
id. No topic fills more than half of a run while another one waits. Within a topic nothing overtakes: cursors move on
in order.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from drover.shard.messages import Arrival
from events.codec import Malformed
from events.commands import Alter, AnyCommand, Cancel, Freeze, Unfreeze
from events.topics import COMMAND_KINDS

CLOSE_BYTES = 1024 * 1024
HIGH_COUNT, LOW_COUNT = 4000, 2000
HIGH_BYTES, LOW_BYTES = 16 * 1024 * 1024, 8 * 1024 * 1024
ARRIVAL_OVERHEAD_BYTES = 64
_ALTER, _CANCEL = COMMAND_KINDS.index("alter"), COMMAND_KINDS.index("cancel")


class InboxGapError(AssertionError):
    """A command was skipped; going on would lose it."""


class Inbox:
    """Commands that have arrived and are not yet durable.

    A command leaves for good only when its batch is folded as valid (`settle`); when fenced, what was taken goes back
    to the head (`give_back`), and `take` drops what another owner has decided meanwhile. Offsets may be skipped only
    with `skip_to`, after the gap was proven empty.
    """

    def __init__(self) -> None:
        self._queues: tuple[deque[Arrival], ...] = tuple(deque() for _ in COMMAND_KINDS)
        self._next = [0] * len(COMMAND_KINDS)
        self._taken: tuple[Arrival, ...] = ()
        # Who and what the alters in here name, and the offsets of those that go before them.
        self._altered: Counter[tuple[str, ...]] = Counter()
        self._first: set[int] = set()
        self.count = 0
        self.bytes = 0

    def reset(self, next_offsets: Sequence[int]) -> None:
        """Forget everything and expect these offsets next, one per command topic."""
        for queue in self._queues:
            queue.clear()
        self._next = list(next_offsets)
        self._taken = ()
        self._altered.clear()
        self._first.clear()
        self.count = self.bytes = 0

    def expected(self, topic_index: int) -> int:
        """Tell which offset must come next."""
        return self._next[topic_index]

    def skip_to(self, topic_index: int, offset: int) -> None:
        """Accept that there is no record between the expected offset and this one (transaction markers)."""
        self._next[topic_index] = max(self._next[topic_index], offset)

    def add(self, arrival: Arrival) -> bool:
        """Queue an arrival; False for one that was queued before. Raises `InboxGapError` if one is missing."""
        expected = self._next[arrival.topic_index]
        if arrival.offset < expected:
            return False
        if arrival.offset > expected:
            topic = COMMAND_KINDS[arrival.topic_index]
            raise InboxGapError(f"command topic {topic}: offset {arrival.offset} came, {expected} is missing")
        self._queues[arrival.topic_index].append(arrival)
        if arrival.topic_index == _ALTER:
            self._altered.update(_names(arrival.command))
        elif arrival.topic_index == _CANCEL and self._goes_first(arrival.command):
            self._first.add(arrival.offset)
        self._next[arrival.topic_index] = expected + 1
        self.count += 1
        self.bytes += _weight(arrival)
        return True

    def take(self, cursors: Sequence[int]) -> tuple[Arrival, ...]:
        """Take the commands whose turn it is, about 1 MiB; those below the log's cursors are dropped first."""
        assert not self._taken, "the last commands taken were neither settled nor given back"
        for queue, cursor in zip(self._queues, cursors, strict=True):
            while queue and queue[0].offset < cursor:
                self._forget((queue.popleft(),))
        taken: list[Arrival] = []
        sizes = [0] * len(self._queues)
        while any(self._queues):
            following = self._following(sizes)
            weight = _weight(following)
            if taken and sum(sizes) + weight > CLOSE_BYTES:
                break
            taken.append(self._queues[following.topic_index].popleft())
            sizes[following.topic_index] += weight
        self._taken = tuple(taken)
        return self._taken

    def _following(self, sizes: Sequence[int]) -> Arrival:
        """Return what comes next: what goes first, else the oldest of a topic that has not had its share."""
        cancels = self._queues[_CANCEL]
        if cancels and cancels[0].offset in self._first:
            return cancels[0]
        heads = [queue[0] for queue in self._queues if queue]
        oldest = min(heads, key=lambda arrival: (arrival.timestamp_ms, arrival.topic_index))
        if sizes[oldest.topic_index] < CLOSE_BYTES // 2:
            return oldest
        # A cancel that does not go first keeps its place in time.
        others = [head for head in heads if head.topic_index not in {_CANCEL, oldest.topic_index}]
        return min(others, key=lambda arrival: arrival.timestamp_ms, default=oldest)

    def _goes_first(self, command: AnyCommand | Malformed) -> bool:
        if isinstance(command, Freeze | Unfreeze):
            return True
        return isinstance(command, Cancel) and not any(self._altered[name] for name in _names(command))

    def settle(self, decided: int | None = None) -> None:
        """Finish the taken commands: the first `decided` of them (all by default) are durable, the rest go back."""
        done = self._taken if decided is None else self._taken[:decided]
        rest = self._taken[len(done) :]
        self._forget(done)
        self._taken = rest
        self.give_back()
        if not self.count:
            self._altered.clear()

    def give_back(self) -> None:
        """Put everything taken back to the head, as if it had never been taken."""
        for arrival in reversed(self._taken):
            self._queues[arrival.topic_index].appendleft(arrival)
        self._taken = ()

    @property
    def is_high(self) -> bool:
        """Whether reading on should stop."""
        return self.count >= HIGH_COUNT or self.bytes >= HIGH_BYTES

    @property
    def is_low(self) -> bool:
        """Whether reading may go on."""
        return self.count <= LOW_COUNT and self.bytes <= LOW_BYTES

    def _forget(self, arrivals: Iterable[Arrival]) -> None:
        for arrival in arrivals:
            if arrival.topic_index == _ALTER:
                self._altered.subtract(_names(arrival.command))
            elif arrival.topic_index == _CANCEL:
                self._first.discard(arrival.offset)
            self.count -= 1
            self.bytes -= _weight(arrival)


def _weight(arrival: Arrival) -> int:
    return len(arrival.payload) + ARRIVAL_OVERHEAD_BYTES


def _names(command: AnyCommand | Malformed) -> Iterator[tuple[str, ...]]:
    """Name the author, the topics, the plan and the id that keep a cancel behind an alter, each once."""
    match command:
        case Alter():
            yield (command.cluster, "plan", command.plan_name)
            yield (command.cluster, "id", command.id)
            topics = {target.topic for target in command.partitions}
        case Cancel():
            if command.plan is not None:
                yield (command.cluster, "plan", command.plan)
            if command.queued is not None:
                yield (command.cluster, "id", command.queued)
            topics = {partition.topic for partition in command.partitions or ()} | set(command.topics or ())
        case _:
            return
    yield (command.cluster, "by", command.by)
    for topic in topics:
        yield (command.cluster, "topic", topic)
