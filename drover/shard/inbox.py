"""The inbox of one shard: four command topics merged by time, and shared by the clusters that live there.

What ends or holds back work goes first. A freeze and an unfreeze overtake whatever waits in other topics; so does a
cancel, unless an alter that has arrived before it is of the same author, or names one of its topics, its plan or its
id. No topic fills more than half of a run while another one waits, and within a topic the cluster that has had the
least comes next. The commands of one cluster keep their order in each topic.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

from drover.shard.messages import Arrival
from events.codec import Malformed
from events.commands import Alter, AnyCommand, Cancel, Freeze, Unfreeze
from events.topics import COMMAND_KINDS

CLOSE_BYTES = 1024 * 1024
HIGH_COUNT, LOW_COUNT = 4000, 2000
HIGH_BYTES, LOW_BYTES = 16 * 1024 * 1024, 8 * 1024 * 1024
ARRIVAL_OVERHEAD_BYTES = 64
# Clusters share so many places in the order of a topic.
GROUPS = 16
# Of one topic: what is decided before its turn is named in every record until the cursor has passed it.
MOST_EARLY = 256
_ALTER, _CANCEL = COMMAND_KINDS.index("alter"), COMMAND_KINDS.index("cancel")


class InboxGapError(AssertionError):
    """A command was skipped; going on would lose it."""


class _Queue:
    """What has arrived in one topic: by groups of clusters, each in its order."""

    def __init__(self) -> None:
        self._groups: dict[int, deque[Arrival]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(sorted((arrival for group in self._groups.values() for arrival in group), key=_offset))

    def clear(self) -> None:
        self._groups.clear()

    def append(self, arrival: Arrival) -> None:
        self._groups.setdefault(_group(arrival), deque()).append(arrival)

    def put_back(self, arrival: Arrival) -> None:
        """Put it before those of its group; nothing of that was taken since."""
        self._groups.setdefault(_group(arrival), deque()).appendleft(arrival)

    def remove(self, arrival: Arrival) -> None:
        """Take the first of its group."""
        group = self._groups[_group(arrival)]
        assert group[0] is arrival, "the commands of a cluster keep their order"
        group.popleft()
        if not group:
            del self._groups[_group(arrival)]

    def heads(self) -> Iterator[Arrival]:
        """Yield the first one of each group."""
        return (group[0] for group in self._groups.values())

    def oldest(self) -> Arrival:
        """Return what came first."""
        if len(self._groups) == 1:
            (group,) = self._groups.values()
            return group[0]
        return min(self.heads(), key=_offset)

    def drop(self, next_offset: int, early: frozenset[int]) -> list[Arrival]:
        """Take out what is decided: below that offset, or one of these."""
        everything = list(self)
        dropped = [one for one in everything if one.offset < next_offset or one.offset in early]
        if dropped:
            gone = {one.offset for one in dropped}
            self._groups.clear()
            for one in everything:
                if one.offset not in gone:
                    self.append(one)
        return dropped


class Inbox:
    """Commands that have arrived and are not yet durable.

    A command leaves for good only when its batch is folded as valid (`settle`); when fenced, what was taken goes back
    to the head (`give_back`), and `take` drops what another owner has decided meanwhile. Offsets may be skipped only
    with `skip_to`, after the gap was proven empty.
    """

    def __init__(self) -> None:
        self._queues: tuple[_Queue, ...] = tuple(_Queue() for _ in COMMAND_KINDS)
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

    def take(
        self,
        next_offsets: Sequence[int],
        early: Sequence[frozenset[int]] = (frozenset(),) * len(COMMAND_KINDS),
        busy: frozenset[str] = frozenset(),
    ) -> tuple[Arrival, ...]:
        """Take the commands whose turn it is, about 1 MiB; those that the log has decided are dropped first.

        These are the ones below `next_offsets` and those in `early`. Commands of `busy` clusters cannot be decided now,
        and hold up nobody else's.
        """
        assert not self._taken, "the last commands taken were neither settled nor given back"
        self._drop_decided(next_offsets, early)
        taken: list[Arrival] = []
        run = _Run({_group_of(name) for name in busy}, [len(offsets) for offsets in early])
        while (following := self._following(run)) is not None:
            weight = _weight(following)
            if taken and run.bytes + weight > CLOSE_BYTES:
                break
            queue = self._queues[following.topic_index]
            is_early = queue.oldest() is not following
            queue.remove(following)
            taken.append(replace(following, is_early=True) if is_early else following)
            run.count(following, weight, is_early=is_early)
        self._taken = tuple(taken)
        return self._taken

    def _drop_decided(self, next_offsets: Sequence[int], early: Sequence[frozenset[int]]) -> None:
        for queue, next_offset, ahead in zip(self._queues, next_offsets, early, strict=True):
            if queue and (ahead or queue.oldest().offset < next_offset):
                self._forget(queue.drop(next_offset, ahead))

    def _following(self, run: "_Run") -> Arrival | None:
        """Return what comes next: what goes first, else of the oldest topic that has not had its share; or nothing."""
        cancels = self._queues[_CANCEL]
        if cancels:
            heads = cancels.heads() if run.may_be_early(_CANCEL) else (cancels.oldest(),)
            first = [head for head in heads if head.offset in self._first and run.may_take(head)]
            if first:
                return min(first, key=run.rank)
        turns = [head for queue in self._queues if queue and (head := self._fair(queue, run)) is not None]
        if not turns:
            return None
        oldest = min(turns, key=lambda arrival: (arrival.timestamp_ms, arrival.topic_index))
        if run.sizes[oldest.topic_index] < CLOSE_BYTES // 2:
            return oldest
        # A cancel that does not go first keeps its place in time.
        others = [head for head in turns if head.topic_index not in {_CANCEL, oldest.topic_index}]
        return min(others, key=lambda arrival: arrival.timestamp_ms, default=oldest)

    def _fair(self, queue: _Queue, run: "_Run") -> Arrival | None:
        """Return whose turn it is in a topic: of the group that has had the least, the older one of two."""
        oldest = queue.oldest()
        if not run.may_be_early(oldest.topic_index):
            return oldest if run.may_take(oldest) else None
        return min((head for head in queue.heads() if run.may_take(head)), key=run.rank, default=None)

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
            self._queues[arrival.topic_index].put_back(replace(arrival, is_early=False))
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


class _Run:
    """What a run has taken so far: bytes by topic, and by topic and group; and how much of each topic is early."""

    def __init__(self, busy: set[int], early: list[int]) -> None:
        self.sizes = [0] * len(COMMAND_KINDS)
        self.bytes = 0
        self._busy = busy
        self._early = early
        self._by_group: Counter[tuple[int, int]] = Counter()

    def count(self, arrival: Arrival, weight: int, *, is_early: bool) -> None:
        self.bytes += weight
        self.sizes[arrival.topic_index] += weight
        self._by_group[arrival.topic_index, _group(arrival)] += weight
        self._early[arrival.topic_index] += is_early

    def may_be_early(self, topic_index: int) -> bool:
        return self._early[topic_index] < MOST_EARLY

    def may_take(self, arrival: Arrival) -> bool:
        return _group(arrival) not in self._busy

    def rank(self, arrival: Arrival) -> tuple[int, int]:
        return self._by_group[arrival.topic_index, _group(arrival)], arrival.offset


def _group(arrival: Arrival) -> int:
    return _group_of(arrival.command.cluster or "")


@lru_cache(maxsize=1024)
def _group_of(cluster: str) -> int:
    """Name the group that a cluster shares with others: any client can think of any number of names."""
    return crc32(cluster.encode()) % GROUPS


def _offset(arrival: Arrival) -> int:
    return arrival.offset


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
