"""The past of a shard: its fold at an offset or a time, and the reassignments that ended on the way."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from drover.client.history import warn_unused
from drover.errors import ConfigurationError
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCompleted
from drover.events.records import Batch
from drover.events.topics import shard_of
from drover.events.undecodable import UNDECODABLE
from drover.fold.log import RecordVerdict, ShardFold
from drover.fold.plans import Ending
from drover.journal.connection import LogConnection
from drover.journal.port import Following
from drover.journal.reader import LogReader
from drover.journal.snapshots import load_snapshots

COMPLETED = str(ReassignmentCompleted.__struct_config__.tag)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a shard: right after the record at `offset`, or after the last batch up to `at_ms`.

    With neither it is the current end. `at_ms` is the log's time (`Batch.at_ms`), which `drover history` shows.
    """

    offset: int | None = None
    at_ms: int | None = None

    def is_behind(self, fold: ShardFold) -> bool:
        """Whether the point lies before the position of a fold."""
        if self.offset is not None:
            return self.offset < fold.position - 1
        return self.at_ms is not None and self.at_ms < fold.at_ms

    def is_before(self, offset: int, at_ms: int | None) -> bool:
        """Whether the point lies before the record with this offset and, if it has one, this time."""
        if self.offset is not None:
            return self.offset < offset
        return self.at_ms is not None and at_ms is not None and self.at_ms < at_ms


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a reassignment: `how` is the tag of the event, `offset` and `at_ms` its place in the log."""

    cluster: str
    partition: TopicPartition
    how: str
    offset: int
    at_ms: int

    @property
    def is_completed(self) -> bool:
        """Whether the partition has reached its target."""
        return self.how == COMPLETED


class _Glance(msgspec.Struct, frozen=True):
    """The fields of a record that are read before it is folded."""

    token: bytes = b""
    at_ms: int | None = None


_glance = msgspec.msgpack.Decoder(_Glance)


@dataclass(slots=True)
class Travel:
    """PURE: folds a shard record by record and copies the fold at each of the points.

    `reached` holds the copies so far. After `end`, `final` holds the points that more records follow, and `ended` the
    reassignments that ended between the first point and the last.
    """

    fold: ShardFold
    points: Sequence[Point]
    reached: dict[Point, ShardFold] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    final: frozenset[Point] = frozenset()

    @property
    def is_over(self) -> bool:
        """Whether every point was reached."""
        return len(self.reached) == len(set(self.points))

    def come_to(self, offset: int, payload: bytes) -> None:
        """Reach the points that lie before the next record."""
        # The clock of a fenced owner does not count as the log's time.
        seen = _glanced(payload)
        at_ms = seen.at_ms if seen.token == self.fold.token and self.fold.damage is None else None
        self._reach([point for point in self.points if point.is_before(offset, at_ms)])

    def take(self, offset: int, payload: bytes) -> None:
        """Reach the points before a record, and fold it; damage stops the fold until an acquire resumes it."""
        self.come_to(offset, payload)
        folded = self.fold.fold_on(offset, payload)
        if folded is None or folded.verdict is not RecordVerdict.VALID or not isinstance(folded.record, Batch):
            return
        if self.reached:
            self.ended += _endings(folded.offset, folded.record)

    def end(self) -> None:
        """Reach the remaining points, because the log ends here."""
        self.final = frozenset(self.reached)
        self._reach(self.points)
        places = [fold.position for fold in self.reached.values()]
        self.ended = [ending for ending in self.ended if min(places) <= ending.offset < max(places)]

    def _reach(self, points: Sequence[Point]) -> None:
        for point in points:
            if point not in self.reached:
                self.reached[point] = self.fold.copy()


def _glanced(payload: bytes) -> _Glance:
    try:
        return _glance.decode(payload)
    except UNDECODABLE:
        # The fold judges records that cannot be decoded.
        return _Glance()


def _endings(offset: int, batch: Batch) -> list[Ended]:
    return [
        Ended(event.cluster, event.key, str(event.__struct_config__.tag), offset, batch.at_ms)
        for event in batch.events
        if isinstance(event, Ending)
    ]


async def travel(connection: LogConnection, shard: int | str, points: Sequence[Point]) -> Travel:
    """Fold a shard, given by its number or by a cluster that lives in it, up to these points.

    Stops reading after the last point. Raises `ConfigurationError` for a shard or an offset that the log does not have.
    """
    async with LogReader(connection) as reader:
        return await travel_in(reader, connection, shard, points)


async def travel_in(reader: Following, connection: LogConnection, shard: int | str, points: Sequence[Point]) -> Travel:
    """Fold a shard up to these points with an open reader; see `travel`."""
    events = connection.topics.events
    shards = await reader.partitions(events)
    number = _shard_number(shard, shards)
    end = (await reader.end_offsets(events, (number,)))[number]
    for point in points:
        if point.offset is not None and point.offset >= end:
            raise ConfigurationError(f"shard {number} of the log has offsets 0 to {end - 1}, not {point.offset}")
    fold = (await load_snapshots(reader, connection.topics, (number,), warn_unused)).get(number)
    if fold is not None and not any(point.is_behind(fold) for point in points):
        travelled = await _travel(reader, events, Travel(fold, points))
        if travelled.fold.damage is None:
            return travelled
        # Snapshot and log disagree, or the log is damaged: a fold from the first record shows which.
        warn_unused(number, travelled.fold.damage.detail)
    travelled = await _travel(reader, events, Travel(ShardFold(number, shards), points))
    if travelled.fold.damage is not None:
        _log.warning(
            "shard %d is shown up to the damage, see docs/recovery.md: %s", number, travelled.fold.damage.detail
        )
    return travelled


async def _travel(reader: Following, topic: str, travelling: Travel) -> Travel:
    """Fold until every point is reached, or the log ends."""
    async with aclosing(reader.read(topic, {travelling.fold.shard: travelling.fold.position})) as reading:
        async for records in reading:
            for record in records:
                travelling.come_to(record.offset, record.payload)
                if travelling.is_over:
                    break
                travelling.take(record.offset, record.payload)
            if travelling.is_over:
                break
    travelling.end()
    return travelling


def _shard_number(shard: int | str, shards: int) -> int:
    if isinstance(shard, str):
        return shard_of(shard, shards)
    if shard >= shards:
        raise ConfigurationError(f"the log has shards 0 to {shards - 1}, not {shard}")
    return shard
