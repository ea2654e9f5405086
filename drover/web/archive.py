"""PURE: the latest rows of the log's history in memory, indexed by partition, plan and command.

Filled once from the log, and by every later batch. The number of rows is bounded: `drover history` shows older ones.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

from drover.client.history import ValidRecord
from drover.client.views.history_rows import Chronicle, HistoryRow
from drover.events.throttles import BrokerThrottleIntended, BrokerThrottleLeft, BrokerThrottleSet

MAX_ROWS = 200_000
# Further partitions of a command are not indexed: their own events make their history.
MAX_INDEXED_PARTITIONS = 2_000
_NONE: deque[int] = deque()


@dataclass(slots=True)
class Archive:
    """The rows, in the order of each shard; `is_complete` says that the past has been read."""

    max_rows: int = MAX_ROWS
    is_complete: bool = False
    rows: dict[int, HistoryRow] = field(default_factory=dict)
    throttled_ms: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    dropped_until_ms: int | None = None
    _chronicle: Chronicle = field(default_factory=Chronicle)
    _next: int = 0
    _index: dict[tuple[str, str, str], deque[int]] = field(default_factory=dict)
    _times: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _released: set[tuple[str, int]] = field(default_factory=set)
    _early: list[ValidRecord] = field(default_factory=list)

    def take(self, records: Iterable[ValidRecord]) -> None:
        """Add batches of the past, in the order of each shard."""
        for record in records:
            self._see_throttles(record)
            for row in self._chronicle.rows(record):
                self._add(row)

    def follow(self, records: Iterable[ValidRecord]) -> None:
        """Add new batches; they wait until the past is complete."""
        if self.is_complete:
            self.take(records)
        else:
            self._early += records

    def complete(self) -> None:
        """Mark the past as complete, and add the batches that have waited."""
        self.is_complete = True
        early, self._early = self._early, []
        self.take(early)

    def story(
        self,
        cluster: str,
        part: slice,
        *,
        partition: str | None = None,
        plan: str | None = None,
        id_: str | None = None,
    ) -> tuple[list[HistoryRow], int]:
        """Return a part of the rows about a partition, a plan or a command, newest first, and their total number.

        Without any of these, returns rows of the whole cluster. The history of a command consists of its own rows,
        those of the same records, and those of its plan.
        """
        numbers: Sequence[int] | deque[int]
        if id_ is not None:
            numbers = self._numbers_of_command(cluster, id_)
        elif partition is not None:
            numbers = self._indexed(cluster, "partition", partition)
        elif plan is not None:
            numbers = self._indexed(cluster, "plan", plan)
        else:
            numbers = self._indexed(cluster, "all", "")
        shown = islice(reversed(numbers), part.start, part.stop)
        return [self.rows[number] for number in shown], len(numbers)

    def times(self, cluster: str) -> list[int]:
        """Return the times (ms since the epoch) of a cluster's rows, in order."""
        return self._times[cluster]

    def counts(self, cluster: str, first_ms: int, last_ms: int, buckets: int) -> list[int]:
        """Count a cluster's rows in equal parts of a span of time."""
        times = self._times[cluster]
        width = max(1, last_ms - first_ms) / buckets
        edges = [bisect_left(times, first_ms + width * number) for number in range(buckets)]
        edges.append(bisect_left(times, last_ms + 1))
        return [after - before for before, after in pairwise(edges)]

    def _indexed(self, cluster: str, kind: str, name: str) -> deque[int]:
        return self._index.get((cluster, kind, name), _NONE)

    def _numbers_of_command(self, cluster: str, id_: str) -> list[int]:
        numbers = set(self._indexed(cluster, "id", id_))
        own = [self.rows[number] for number in numbers]
        for plan in {row.plan for row in own if row.plan is not None}:
            numbers.update(self._indexed(cluster, "plan", plan))
        for shard, offset in {(row.shard, row.offset) for row in own}:
            numbers.update(self._indexed(cluster, "place", f"{shard}@{offset}"))
        return sorted(number for number in numbers if self.rows[number].id in {None, id_})

    def _add(self, row: HistoryRow) -> None:
        number = self._next
        self._next += 1
        self.rows[number] = row
        self._note_time(self._times[row.cluster], row.at_ms)
        for place in _places(row):
            self._index.setdefault(place, deque()).append(number)
        if len(self.rows) > self.max_rows:
            self._drop(number - self.max_rows)

    @staticmethod
    def _note_time(times: list[int], at_ms: int) -> None:
        """Add a time and keep the list sorted: after the log's time was put back (R6), later times become that time."""
        for place in range(len(times) - 1, -1, -1):
            if times[place] <= at_ms:
                break
            times[place] = at_ms
        times.append(at_ms)

    def _drop(self, number: int) -> None:
        row = self.rows.pop(number)
        self.dropped_until_ms = row.at_ms
        times = self._times[row.cluster]
        # The list is cut now and then, because a cut for every row would be slow.
        if len(times) > 2 * self.max_rows:
            del times[: len(times) - self.max_rows]
        for place in _places(row):
            numbers = self._index.get(place)
            while numbers and numbers[0] <= number:
                numbers.popleft()
            if not numbers:
                self._index.pop(place, None)

    def _see_throttles(self, record: ValidRecord) -> None:
        for event in record.batch.events:
            match event:
                case BrokerThrottleIntended():
                    self.throttled_ms[event.cluster].setdefault(event.broker, record.batch.at_ms)
                    if event.release:
                        self._released.add((event.cluster, event.broker))
                    else:
                        self._released.discard((event.cluster, event.broker))
                case BrokerThrottleSet() if (event.cluster, event.broker) in self._released:
                    self._released.discard((event.cluster, event.broker))
                    self.throttled_ms[event.cluster].pop(event.broker, None)
                case BrokerThrottleLeft():
                    self.throttled_ms[event.cluster].pop(event.broker, None)
                case _:
                    pass


def _places(row: HistoryRow) -> Iterable[tuple[str, str, str]]:
    yield row.cluster, "all", ""
    yield row.cluster, "place", f"{row.shard}@{row.offset}"
    if row.id is not None:
        yield row.cluster, "id", row.id
    if row.plan is not None:
        yield row.cluster, "plan", row.plan
    for key in row.partitions[:MAX_INDEXED_PARTITIONS]:
        yield row.cluster, "partition", str(key)
