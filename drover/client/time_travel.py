"""The past of a shard: its fold as it was at a place in the log or at a moment, and what ended on the way."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from drover.client.history import warn_unused
from drover.errors import ConfigurationError
from drover.events.partitions import TopicPartition
from drover.events.records import Batch
from drover.events.topics import shard_of
from drover.events.undecodable import UNDECODABLE
from drover.fold.log import RecordVerdict, ShardFold
from drover.fold.plans import Ending
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.journal.snapshots import load_snapshots

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a shard: right after the record at `offset`, or after the last batch not later than `at_ms`.

    With neither it is the present end. `at_ms` is the log's time (`Batch.at_ms`), which `drover history` shows. Where a
    batch puts that time back (R6), the batches before it that claim a later one count as having happened at its own.
    """

    offset: int | None = None
    at_ms: int | None = None

    def is_behind(self, fold: ShardFold) -> bool:
        """Whether it lies before what is folded already."""
        if self.offset is not None:
            return self.offset < fold.position - 1
        return self.at_ms is not None and self.at_ms < fold.at_ms

    def is_before(self, offset: int, at_ms: int | None) -> bool:
        """Whether it lies before the record at this offset, whose time counts if it has one."""
        if self.offset is not None:
            return self.offset < offset
        return self.at_ms is not None and at_ms is not None and self.at_ms < at_ms

    def is_after(self, at_ms: int) -> bool:
        """Whether it is a moment after a batch with this time, whatever came before that batch."""
        return self.at_ms is not None and self.at_ms >= at_ms


@dataclass(frozen=True, slots=True)
class Ended:
    """A reassignment that ended: how (an event's tag), and where."""

    cluster: str
    partition: TopicPartition
    how: str
    offset: int
    at_ms: int


class _Glance(msgspec.Struct, frozen=True):
    """The fields of a record that are read before it is folded."""

    token: bytes = b""
    at_ms: int | None = None
    corrects_time: bool = False


_glance = msgspec.msgpack.Decoder(_Glance)


@dataclass(slots=True)
class Travel:
    """PURE: folds a shard record by record and keeps its fold at each of some points.

    `reached` holds it at those that were reached so far: a batch that puts the log's time back takes moments back that
    are not before it, until a later batch or the end comes. `final` are the points behind which the log went on. At the
    end, `ended` holds what ended between the first point and the last.
    """

    fold: ShardFold
    points: Sequence[Point]
    reached: dict[Point, ShardFold] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    final: frozenset[Point] = frozenset()

    @property
    def is_over(self) -> bool:
        """Whether every point was reached, so that only a batch that puts the time back can change anything."""
        return len(self.reached) == len(set(self.points))

    @property
    def has_moments(self) -> bool:
        """Whether a batch that puts the time back can change anything."""
        return any(point.at_ms is not None for point in self.points)

    def come_to(self, offset: int, payload: bytes) -> None:
        """Reach the points that lie before a record, which is the next one."""
        # The clock of a fenced owner does not count as the log's time.
        seen = _glanced(payload)
        at_ms = seen.at_ms if seen.token == self.fold.token and self.fold.damage is None else None
        self._reach([point for point in self.points if point.is_before(offset, at_ms)])

    def take(self, offset: int, payload: bytes) -> None:
        """Come to a record and fold it; damage stops the fold until an acquire resumes it."""
        self.come_to(offset, payload)
        folded = self.fold.fold_on(offset, payload)
        if folded is None or folded.verdict is not RecordVerdict.VALID or not isinstance(folded.record, Batch):
            return
        if self.reached:
            self.ended += _endings(folded.offset, folded.record)
        for point in self.points:
            if point.is_after(folded.record.at_ms):
                self.reached.pop(point, None)

    def may_be_taken_back_by(self, payload: bytes) -> bool:
        """Whether a record says that it puts the time back to before a moment; whether it counts, only a fold tells."""
        seen = _glanced(payload)
        at_ms = seen.at_ms
        return seen.corrects_time and at_ms is not None and any(point.is_after(at_ms) for point in self.points)

    def end(self) -> None:
        """The log ends here: every point that was not reached is here."""
        self.final = frozenset(self.reached)
        self._reach(self.points)
        places = [fold.position for fold in self.reached.values()]
        self.ended = [one for one in self.ended if min(places) <= one.offset < max(places)]

    def _reach(self, points: Sequence[Point]) -> None:
        for point in points:
            if point not in self.reached:
                self.reached[point] = self.fold.copy()


def _glanced(payload: bytes) -> _Glance:
    try:
        return _glance.decode(payload)
    except UNDECODABLE:
        # The fold says what such a record is.
        return _Glance()


def _endings(offset: int, batch: Batch) -> list[Ended]:
    return [
        Ended(event.cluster, event.key, str(event.__struct_config__.tag), offset, batch.at_ms)
        for event in batch.events
        if isinstance(event, Ending)
    ]


async def travel(connection: LogConnection, shard: int | str, points: Sequence[Point]) -> Travel:
    """Fold a shard, given by number or by a cluster that lives in it, up to these points.

    What lies behind the last point is not folded, and with offsets alone not even read. For a moment it is read, since
    a later batch may put the time back; only where one says so, it is read again and folded as far as that matters.

    Raises `ConfigurationError` for a shard or an offset that the log does not have.
    """
    events = connection.topics.events
    async with LogReader(connection) as reader:
        shards = await reader.partitions(events)
        number = _shard_number(shard, shards)
        end = (await reader.end_offsets(events, (number,)))[number]
        for point in points:
            if point.offset is not None and point.offset >= end:
                raise ConfigurationError(f"shard {number} of the log has offsets 0 to {end - 1}, not {point.offset}")
        fold = (await load_snapshots(reader, connection.topics, (number,), warn_unused)).get(number)
        if fold is not None and not any(point.is_behind(fold) for point in points):
            found = await _travel(reader, events, Travel(fold, points))
            if found.fold.damage is None:
                return found
            # Snapshot and log disagree, or the log is damaged: its first record on will tell which.
            warn_unused(number, found.fold.damage.what)
        found = await _travel(reader, events, Travel(ShardFold(number, shards), points))
        if found.fold.damage is not None:
            _log.warning("shard %d is shown up to there, see docs/recovery.md: %s", number, found.fold.damage.what)
        return found


async def _travel(reader: LogReader, topic: str, found: Travel) -> Travel:
    correction = await _fold_to_points(reader, topic, found)
    if correction is not None:
        await _fold_to_points(reader, topic, found, correction)
    found.end()
    return found


async def _fold_to_points(reader: LogReader, topic: str, found: Travel, correction: int | None = None) -> int | None:
    """Fold until every point is reached, and at least up to the last record that may take moments back.

    Where that is not known, return the last one that was not folded, None if there is none.
    """
    last = None
    async with aclosing(reader.read(topic, {found.fold.shard: found.fold.position})) as reading:
        async for records in reading:
            for record in records:
                if not found.is_over:
                    found.come_to(record.offset, record.payload)
                if not found.is_over or (correction is not None and record.offset <= correction):
                    found.take(record.offset, record.payload)
                elif correction is None and found.may_be_taken_back_by(record.payload):
                    last = record.offset
            is_past = correction is not None and found.fold.position > correction
            if found.is_over and (is_past or not found.has_moments):
                break
    return last


def _shard_number(shard: int | str, shards: int) -> int:
    if isinstance(shard, str):
        return shard_of(shard, shards)
    if shard >= shards:
        raise ConfigurationError(f"the log has shards 0 to {shards - 1}, not {shard}")
    return shard
