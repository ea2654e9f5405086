"""The inbox of one shard: four command topics merged by time, and shared by the clusters that live there.

What ends or holds back work goes first. A freeze and an unfreeze overtake whatever waits in other topics; so does a
cancel, unless an alter that has arrived before it is of the same author, or names one of its topics, its plan or its
id. In their own topic they overtake what others have asked for: requesters take turns there, and only the commands of
one requester to one cluster keep their order. An unfreeze of everyone's freezes overtakes nothing there, and nothing
of its cluster overtakes it. No topic fills more than half of a run while another one waits, and within a topic the
cluster that has had the least comes next. In the other topics the commands of one cluster keep their order.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from drover.events.codec import Malformed
from drover.events.commands import Alter, AnyCommand, Cancel, Freeze, Unfreeze
from drover.events.topics import COMMAND_KINDS
from drover.shard.messages import Arrival
from drover.shard.preview import MOST_OF_ONE, Preview
from drover.shard.queues import Queue, Turns, group_of, groups_of, weight_of

CLOSE_BYTES = 1024 * 1024
HIGH_COUNT, LOW_COUNT = 4000, 2000
HIGH_BYTES, LOW_BYTES = 16 * 1024 * 1024, 8 * 1024 * 1024
# Of one topic: what is decided before its turn is named in every record until the cursor has passed it.
MOST_EARLY = 256
CANCEL_INDEX = COMMAND_KINDS.index("cancel")
_ALTER = COMMAND_KINDS.index("alter")
_MAY_OVERTAKE = frozenset({Freeze, Unfreeze, Cancel})


class InboxGapError(AssertionError):
    """A command was skipped; going on would lose it."""


class Inbox:
    """Commands that have arrived and are not yet durable; `clusters` are those that live in the shard.

    A command leaves for good only when its batch is folded as valid (`settle`); when fenced, what was taken goes back
    to the head (`give_back`), and `take` drops what another owner has decided meanwhile. Offsets may be skipped only
    with `skip_to`, after the gap was proven empty. While it is full, `preview` looks through what is not read yet.
    """

    def __init__(self, clusters: Iterable[str] = ()) -> None:
        self._queues: tuple[Queue, ...] = tuple(Queue() for _ in COMMAND_KINDS)
        # Of the topic of cancels: what overtakes others there.
        self._turns = Turns()
        self._preview = Preview(frozenset(clusters))
        self._next = [0] * len(COMMAND_KINDS)
        self._taken: tuple[Arrival, ...] = ()
        # Who and what the alters in here name, and the offsets of cancels that go before them.
        self._altered: Counter[tuple[str, ...]] = Counter()
        self._first: set[int] = set()
        # Whose commands in the topic of cancels take no turns, and the clusters in which everyone is to be unfrozen.
        self._in_order: Counter[tuple[str, ...]] = Counter()
        self.count = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[Arrival]:
        """Iterate over what waits, in the order of each topic."""
        for index, queue in enumerate(self._queues):
            also = self._turns if index == CANCEL_INDEX else ()
            yield from sorted((*queue, *also), key=lambda arrival: arrival.offset)

    def reset(self, next_offsets: Sequence[int]) -> None:
        """Forget everything and expect these offsets next, one per command topic."""
        for queue in self._queues:
            queue.clear()
        self._turns.clear()
        self._preview.clear()
        self._next = list(next_offsets)
        self._taken = ()
        self._altered.clear()
        self._first.clear()
        self._in_order.clear()
        self.count = self.bytes = 0

    def expected(self, topic_index: int) -> int:
        """Tell which offset must come next."""
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
        if index == CANCEL_INDEX and self._preview.read(arrival.offset):
            # It was previewed: it waits, or is decided by now.
            return True
        self.count += 1
        self.bytes += weight_of(arrival)
        if index == CANCEL_INDEX and self._overtakes(arrival.command):
            self._turns.add(arrival)
            return True
        self._queues[index].append(arrival)
        if index == _ALTER:
            self._altered.update(_names(arrival.command))
        elif index == CANCEL_INDEX:
            self._in_order.update(_who(arrival.command))
            if self._goes_first(arrival.command):
                self._first.add(arrival.offset)
        return True

    @property
    def preview_offset(self) -> int:
        """The offset of the topic of cancels from which `preview` goes on."""
        return max(self._preview.next_offset, self._next[CANCEL_INDEX])

    def preview(self, arrival: Arrival) -> bool:
        """Look at a record of the topic of cancels that is not read yet, in their order; whether it waits here now.

        It does if it overtakes all that lies unread before it. It is decided early then, and reading passes it later.
        """
        if arrival.offset < self.preview_offset:
            return False
        self._preview.next_offset = arrival.offset + 1
        command = arrival.command
        if isinstance(command, Malformed) or not self._preview.concerns(command):
            return False
        is_free = self._overtakes(command) and not self._preview.is_behind(command, self._next[CANCEL_INDEX])
        has_place = self._turns.known_of(arrival) < MOST_OF_ONE and self._preview.has_place(arrival, command)
        if not (is_free and has_place):
            self._preview.pass_over(arrival.offset, command)
            return False
        self._preview.take_in(arrival.offset, command)
        self._turns.add(arrival)
        self.count += 1
        self.bytes += weight_of(arrival)
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
        run = _Run(groups_of(busy), [len(offsets) for offsets in early])
        while (following := self._following(run)) is not None:
            weight = weight_of(following)
            if taken and run.bytes + weight > CLOSE_BYTES:
                break
            is_early = self._is_early(following)
            self._remove(following)
            taken.append(replace(following, is_early=True) if is_early else following)
            run.count(following, weight, is_early=is_early)
        self._taken = tuple(taken)
        return self._taken

    def _drop_decided(self, next_offsets: Sequence[int], early: Sequence[frozenset[int]]) -> None:
        for queue, next_offset, ahead in zip(self._queues, next_offsets, early, strict=True):
            if queue and (ahead or queue.oldest().offset < next_offset):
                self._forget(queue.drop(next_offset, ahead))
        if self._turns:
            self._forget(self._turns.drop(next_offsets[CANCEL_INDEX], early[CANCEL_INDEX]))

    def _is_early(self, arrival: Arrival) -> bool:
        """Whether something of its topic that came before it is not decided: unread, or in here."""
        if arrival.topic_index != CANCEL_INDEX:
            return self._queues[arrival.topic_index].oldest() is not arrival
        return arrival.offset in self._preview or self._oldest(CANCEL_INDEX) is not arrival

    def _oldest(self, index: int) -> Arrival | None:
        first = self._queues[index].oldest() if self._queues[index] else None
        in_turns = self._turns.oldest() if index == CANCEL_INDEX else None
        if first is None or (in_turns is not None and in_turns.offset < first.offset):
            return in_turns
        return first

    def _remove(self, arrival: Arrival) -> None:
        if self._takes_turns(arrival):
            self._turns.remove(arrival)
        else:
            self._queues[arrival.topic_index].remove(arrival)

    def _following(self, run: "_Run") -> Arrival | None:
        """Return what comes next: what goes first, else of the oldest topic that has not had its share; or nothing."""
        first = self._going_first(run)
        if first is not None and run.sizes[CANCEL_INDEX] < CLOSE_BYTES // 2:
            return first
        waiting = (self._fair(index, queue, run) for index, queue in enumerate(self._queues) if queue)
        turns = [head for head in waiting if head is not None]
        if first is not None and all(head.topic_index == CANCEL_INDEX for head in turns):
            return first
        if not turns:
            return None
        oldest = min(turns, key=lambda arrival: (arrival.timestamp_ms, arrival.topic_index))
        if run.sizes[oldest.topic_index] < CLOSE_BYTES // 2:
            return oldest
        # A cancel that does not go first keeps its place in time.
        others = [head for head in turns if head.topic_index not in {CANCEL_INDEX, oldest.topic_index}]
        return min(others, key=lambda arrival: arrival.timestamp_ms, default=oldest)

    def _going_first(self, run: "_Run") -> Arrival | None:
        """Return what overtakes other topics: whose turn it is in the topic of cancels, or the first one of a group."""
        if not run.may_be_early(CANCEL_INDEX):
            oldest = self._oldest(CANCEL_INDEX)
            if oldest is None or self._is_early(oldest) or not run.may_take(oldest):
                return None
            return oldest if self._takes_turns(oldest) or oldest.offset in self._first else None
        turns = [head for head in self._turns.heads() if run.may_take(head)] if self._turns else []
        if turns:
            return min(turns, key=run.rank)
        heads = (head for head in self._queues[CANCEL_INDEX].heads() if head.offset in self._first)
        return min(filter(run.may_take, heads), key=run.rank, default=None)

    def _fair(self, index: int, queue: Queue, run: "_Run") -> Arrival | None:
        """Return whose turn it is in a topic: of the group that has had the least, the older one of two."""
        if run.may_be_early(index):
            return min(filter(run.may_take, queue.heads()), key=run.rank, default=None)
        oldest = queue.oldest()
        return oldest if self._oldest(index) is oldest and run.may_take(oldest) else None

    def _takes_turns(self, arrival: Arrival) -> bool:
        return arrival.topic_index == CANCEL_INDEX and arrival.offset in self._turns

    def _overtakes(self, command: AnyCommand | Malformed) -> bool:
        """Whether it overtakes what others have asked for in the topic of cancels."""
        # By type first: `isinstance` takes ten times as long with structs, and this is asked of every command.
        if type(command) not in _MAY_OVERTAKE:
            return False
        assert isinstance(command, Freeze | Unfreeze | Cancel)
        if isinstance(command, Unfreeze) and command.all:
            return False
        is_behind = self._in_order[command.cluster, command.by] or self._in_order[command.cluster,]
        return not is_behind and self._goes_first(command)

    def _goes_first(self, command: AnyCommand | Malformed) -> bool:
        """Whether it overtakes what waits in other topics."""
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

    def give_back(self) -> None:
        """Put everything taken back to the head, as if it had never been taken."""
        for arrival in reversed(self._taken):
            waiting = replace(arrival, is_early=False) if arrival.is_early else arrival
            if self._takes_turns(arrival):
                self._turns.put_back(waiting)
            else:
                self._queues[arrival.topic_index].put_back(waiting)
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
            self.count -= 1
            self.bytes -= weight_of(arrival)
            if self._takes_turns(arrival):
                self._turns.forget(arrival)
            elif arrival.topic_index == _ALTER:
                _subtract(self._altered, _names(arrival.command))
            elif arrival.topic_index == CANCEL_INDEX:
                self._first.discard(arrival.offset)
                _subtract(self._in_order, _who(arrival.command))


class _Run:
    """What a run has taken so far: bytes by topic, and by topic and group; and how much of each topic is early."""

    def __init__(self, busy: frozenset[int], early: list[int]) -> None:
        self.sizes = [0] * len(COMMAND_KINDS)
        self.bytes = 0
        self._busy = busy
        self._early = early
        self._by_group: Counter[tuple[int, int]] = Counter()

    def count(self, arrival: Arrival, weight: int, *, is_early: bool) -> None:
        self.bytes += weight
        self.sizes[arrival.topic_index] += weight
        self._by_group[arrival.topic_index, group_of(arrival)] += weight
        self._early[arrival.topic_index] += is_early

    def may_be_early(self, topic_index: int) -> bool:
        return self._early[topic_index] < MOST_EARLY

    def may_take(self, arrival: Arrival) -> bool:
        return group_of(arrival) not in self._busy

    def rank(self, arrival: Arrival) -> tuple[int, int]:
        return self._by_group[arrival.topic_index, group_of(arrival)], arrival.offset


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


def _who(command: AnyCommand | Malformed) -> Iterator[tuple[str, ...]]:
    """Name what nothing overtakes in the topic of cancels: the requester, and the cluster if everyone is unfrozen."""
    if not isinstance(command, Malformed):
        yield (command.cluster, command.by)
        if isinstance(command, Unfreeze) and command.all:
            yield (command.cluster,)


def _subtract(counts: Counter[tuple[str, ...]], names: Iterable[tuple[str, ...]]) -> None:
    """Count each name down; one that is gone takes no memory."""
    for name in names:
        if counts[name] > 1:
            counts[name] -= 1
        else:
            del counts[name]
