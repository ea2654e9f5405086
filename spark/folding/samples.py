"""The fold of byte samples: amounts, rates, and the bytes into and out of each broker.

It uses samples only, never events: the two topics are read side by side in no fixed order, and the tables must not
depend on it.

A sample has the time of its sender's clock, and any client may send one. So it counts as taken at the latest when Kafka
appended it, and samples are forgotten by Kafka's time alone: a sample of the year 9999 hides no later one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, msgpack

from drover.client.transfers import WINDOW_MS, rates_between
from drover.events.progress import Progress, Sample
from drover.events.undecodable import UNDECODABLE
from drover.spark.folding.contribution import Contribution, contributions
from drover.spark.folding.records import SAMPLES, put_unreadable
from drover.spark.schema import TABLES
from drover.spark.tables.measures import window
from drover.spark.tables.row_buffer import Row, RowBuffer

# The gap after which the earlier samples of a partition are forgotten.
FORGET_MS = 600_000


class Point(Struct, array_like=True, frozen=True, gc=False):
    """The part of an earlier sample that a rate needs."""

    at_ms: int
    bytes_done: int
    bytes_total: int


class Copying(Struct, array_like=True):
    """The samples of one partition that rates and gains are made from; it changes while a part is folded."""

    cluster: str
    topic: str
    partition: int
    epoch: int
    at_ms: int
    step: int
    stored: dict[int, int]
    points: list[Point]
    grown_ms: int
    # When Kafka appended the last of them; 0 in the carry of an earlier version.
    seen_ms: int = 0
    # The last size of each replica in this step that was not 0, since a replica on a dead broker shows 0.
    had: dict[int, int] = {}


_samples: msgpack.Decoder[Sample] = msgpack.Decoder(Sample)
_carried = msgpack.Decoder(tuple[Copying, ...])


class SamplesPart:
    """The samples of one partition of their topic in one part; `carried` is the carried state of the part before."""

    def __init__(self, partition: int, carried: bytes | None) -> None:
        self._partition = partition
        self._buffer = RowBuffer(TABLES)
        self._newest_ms = 0
        copies = () if carried is None else _carried.decode(carried)
        self._copies = {(copy.cluster, copy.topic, copy.partition): copy for copy in copies}
        for copy in copies:
            copy.seen_ms = copy.seen_ms or copy.at_ms
        self._touched: dict[tuple[str, str, int], None] = {}

    def take(self, offset: int, appended_ms: int, payload: bytes | None) -> None:
        """Fold one record; they come in the order of their partition."""
        self._newest_ms = max(self._newest_ms, appended_ms)
        try:
            sample = _samples.decode(payload or b"")
        except UNDECODABLE as error:
            put_unreadable(self._buffer, SAMPLES, self._partition, offset, f"sample not understood: {error}")
            return
        # Samples of workers and projectors are in no table.
        if isinstance(sample, Progress):
            self._see(sample, max(0, min(sample.at_ms, appended_ms)), appended_ms)

    def finish(self) -> Iterator[Contribution]:
        """Yield the rows of this part and the carried state; no sample may be added afterwards."""
        for place in self._touched:
            self._buffer.put("samples", place, **_shown(self._copies[place]))
        # Twice the time, because records of an older topic have their senders' times, which may differ.
        recent = [
            copy for _, copy in sorted(self._copies.items()) if abs(self._newest_ms - copy.seen_ms) <= 2 * FORGET_MS
        ]
        yield from contributions(self._buffer, f"samples/{self._partition}", msgpack.encode(recent), self._newest_ms)

    def _see(self, sample: Progress, at_ms: int, appended_ms: int) -> None:
        """Fold a sample taken at `at_ms`; one of an older epoch than its partition's last, or no newer, is dropped."""
        place = (sample.cluster, sample.topic, sample.partition)
        before = self._copies.get(place)
        if before is not None and abs(appended_ms - before.seen_ms) > FORGET_MS:
            before = None
        # The epoch comes first, since the clock of a new owner may be behind.
        if before is not None and (sample.epoch, at_ms) <= (before.epoch, before.at_ms):
            return
        stored = {replica.broker: replica.bytes for replica in sample.adding}
        # The bytes that a broker had before it went down count once.
        had = before.had if before is not None and before.step == sample.step else {}
        self._gain(sample, at_ms, {} if before is None else before.stored | had, stored)
        self._touched[place] = None
        if before is None or at_ms <= before.at_ms or _is_other(before, sample, stored):
            self._copies[place] = _begun(sample, at_ms, stored)
        else:
            _go_on(before, sample, at_ms, stored)
        copying = self._copies[place]
        copying.seen_ms = appended_ms
        copying.had = {broker: size_bytes or had.get(broker, 0) for broker, size_bytes in stored.items()}

    def _gain(self, sample: Progress, at_ms: int, before: Mapping[int, int], stored: Mapping[int, int]) -> None:
        """Count the bytes that each replica has gained; a new replica began with 0."""
        at = window(at_ms)
        for broker, size_bytes in stored.items():
            gained = size_bytes - before.get(broker, 0)
            if gained > 0:
                self._buffer.put("brokers", (sample.cluster, broker, at), bytes_in=gained)
                if sample.leader is not None:
                    self._buffer.put("brokers", (sample.cluster, sample.leader, at), bytes_out=gained)


def _is_other(before: Copying, sample: Progress, stored: Mapping[int, int]) -> bool:
    return before.step != sample.step or _showing(before.stored) != _showing(stored)


def _showing(stored: Mapping[int, int]) -> set[int]:
    """Return the brokers that show bytes; a dead one shows none, and copies none when it shows them again."""
    return {broker for broker, size_bytes in stored.items() if size_bytes}


def _begun(sample: Progress, at_ms: int, stored: dict[int, int]) -> Copying:
    return Copying(
        cluster=sample.cluster,
        topic=sample.topic,
        partition=sample.partition,
        epoch=sample.epoch,
        at_ms=at_ms,
        step=sample.step,
        stored=stored,
        points=[Point(at_ms, sample.bytes_done, sample.bytes_total)],
        grown_ms=at_ms,
    )


def _go_on(copying: Copying, sample: Progress, at_ms: int, stored: dict[int, int]) -> None:
    points = copying.points
    if sample.bytes_done > points[-1].bytes_done:
        copying.grown_ms = at_ms
    past = 0
    while past < len(points) and points[past].at_ms < at_ms - WINDOW_MS:
        past += 1
    del points[:past]
    points.append(Point(at_ms, sample.bytes_done, sample.bytes_total))
    copying.epoch, copying.at_ms, copying.stored = sample.epoch, at_ms, stored


def _shown(copying: Copying) -> Row:
    first, last = copying.points[0], copying.points[-1]
    rate, closing_rate = rates_between(first, last)
    shown: dict[str, Any] = {
        "epoch": copying.epoch,
        "at_ms": copying.at_ms,
        "step": copying.step,
        "bytes_done": last.bytes_done,
        "bytes_total": last.bytes_total,
        "rate": rate,
        "closing_rate": closing_rate,
        "grown_ms": copying.grown_ms,
    }
    return shown
