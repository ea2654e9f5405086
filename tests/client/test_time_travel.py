"""The past of a shard: at every offset and at every moment it is what a fold of that prefix is."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from drover.client import time_travel
from drover.client.time_travel import Point, Travel, travel
from drover.events.clusters import ClusterFrozen, ClusterUnfrozen
from drover.events.codec import encode_record
from drover.events.partitions import TopicPartition
from drover.events.records import AnyEvent
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import LogRecord
from tests.client.log import CLUSTER, OneShard, Writer
from tests.shard.world import World, alter, rollback

FROZEN = ClusterFrozen(cluster=CLUSTER, by="me", reason="why")
THAWED = ClusterUnfrozen(cluster=CLUSTER, by="me", reason="why")


def prefix(log: list[bytes], until: int) -> ShardFold:
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(log[:until]):
        fold.fold(offset, payload)
    return fold


def travelled(log: list[bytes], *points: Point, start: ShardFold | None = None) -> Travel:
    found = Travel(start or ShardFold(0, 1), points)
    for offset in range(found.fold.position, len(log)):
        found.take(offset, log[offset])
    found.end()
    return found


def frozen_and_thawed() -> Writer:
    """Offsets 0 and 1 are no batches; those at 2, 3, 4 are at 1000, 2000 and 3000 ms."""
    writer = Writer()
    writer.begin()
    for event in (FROZEN, THAWED, FROZEN):
        writer.say(event)
    return writer


def say_at(writer: Writer, at_ms: int, *events: AnyEvent) -> None:
    writer.append(msgspec.structs.replace(writer.batch(*events), at_ms=at_ms))


@dataclass
class _Reader(OneShard):
    """Reads a log in memory, one record at a time; `begun` is where, `read_to` how far it was read the last time."""

    log: list[bytes]
    begun: list[int] = field(default_factory=list)
    read_to: int = 0

    async def end_offsets(self, _: str, shards: Sequence[int]) -> dict[int, int]:
        return dict.fromkeys(shards, len(self.log))

    async def read(self, _: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        self.begun.append(start[0])
        for offset in range(start[0], len(self.log)):
            self.read_to = offset + 1
            yield (LogRecord(0, offset, 0, self.log[offset], ()),)


async def travelled_by_reading(
    monkeypatch: pytest.MonkeyPatch, log: list[bytes], *points: Point, snapshot: ShardFold | None = None
) -> tuple[Travel, _Reader]:
    reader = _Reader(log)

    async def load_snapshots(*_: object) -> dict[int, ShardFold]:
        return {} if snapshot is None else {0: snapshot}

    monkeypatch.setattr(time_travel, "LogReader", lambda _: reader)
    monkeypatch.setattr(time_travel, "load_snapshots", load_snapshots)
    return await travel(LogConnection("nowhere"), 0, points), reader


def is_frozen(fold: ShardFold) -> bool:
    state = fold.state.clusters.get(CLUSTER)
    return state is not None and state.freeze is not None


def test_at_an_offset_is_right_after_its_record() -> None:
    log = frozen_and_thawed().records
    points = [Point(offset=offset) for offset in range(5)]
    found = travelled(log, *points)
    assert [found.reached[point].position for point in points] == [1, 2, 3, 4, 5]
    assert [is_frozen(found.reached[point]) for point in points] == [False, False, True, False, True]


def test_at_a_moment_is_after_the_last_batch_that_is_not_later() -> None:
    log = frozen_and_thawed().records
    moments = {0: 2, 999: 2, 1000: 3, 1500: 3, 2000: 4, 2999: 4, 3000: 5, 9999: 5}
    points = {at_ms: Point(at_ms=at_ms) for at_ms in moments}
    found = travelled(log, *points.values())
    assert {at_ms: found.reached[point].position for at_ms, point in points.items()} == moments


def test_what_a_fenced_owner_wrote_ends_no_journey() -> None:
    writer = frozen_and_thawed()
    late = replace_time(writer, 9_000_000)
    writer.acquire("w2")
    writer.records.append(late)
    writer.fold.fold(6, late)
    writer.say(THAWED)
    found = travelled(writer.records, Point(at_ms=4000))
    assert found.reached[Point(at_ms=4000)].position == 8


def replace_time(writer: Writer, at_ms: int) -> bytes:
    return encode_record(msgspec.structs.replace(writer.batch(), at_ms=at_ms))


def test_what_a_fenced_owner_says_earlier_takes_nothing_back() -> None:
    writer = frozen_and_thawed()
    late = replace_time(writer, 1)
    writer.acquire("w2")
    writer.records.append(late)
    writer.fold.fold(6, late)
    assert travelled(writer.records, Point(at_ms=1500)).reached[Point(at_ms=1500)].position == 3


async def test_what_lies_behind_the_last_point_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    log = frozen_and_thawed().records
    found, reader = await travelled_by_reading(monkeypatch, log, Point(offset=2))
    assert (found.fold.position, reader.begun, reader.read_to) == (3, [0], 4)
    found, reader = await travelled_by_reading(monkeypatch, log, Point(at_ms=1000))
    assert (found.fold.position, reader.begun, reader.read_to) == (3, [0], 4)


def test_without_a_place_it_is_the_present() -> None:
    log = frozen_and_thawed().records
    assert travelled(log, Point()).reached[Point()].position == 5
    assert travelled(log, Point(), start=prefix(log, 5)).reached[Point()].position == 5


@pytest.mark.parametrize("start", range(6))
def test_a_journey_may_begin_anywhere_that_is_not_behind_its_first_place(start: int) -> None:
    log = frozen_and_thawed().records
    points = [*(Point(offset=offset) for offset in range(5)), *(Point(at_ms=at_ms) for at_ms in (0, 1000, 2500, 3000))]
    for point in points:
        fold = prefix(log, start)
        whole = travelled(log, point).reached[point]
        if point.is_behind(fold):
            assert whole.position < start
        else:
            found = travelled(log, point, start=fold).reached[point]
            assert (found.position, found.state.hash()) == (whole.position, whole.state.hash())


async def test_what_ended_between_two_places_is_told() -> None:
    world = World(copy_bytes_per_second=300_000)
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=300_000)
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    await world.send(alter({first: [2, 3, 4], second: [2, 3, 4]}))
    await world.run(300)
    begun = len(world.log) - 1
    await world.send(rollback(second))
    await world.finish()
    found = travelled(world.log, Point(offset=begun), Point())
    assert {(one.partition, one.how) for one in found.ended} == {
        (first, "reassignment-completed"),
        (second, "reassignment-rolled-back"),
    }
    assert travelled(world.log, Point(offset=begun)).ended == []
    assert travelled(world.log, Point(offset=0), Point(offset=begun)).ended == []
    assert replace(found, points=(Point(),), reached={}).is_over is False


def test_places_before_damage_are_shown_and_later_ones_as_far_as_the_log_can_be_read() -> None:
    log = frozen_and_thawed().records
    damaged = [*log[:4], b"\x00\x01random", b"\xc1" + prefix(log, 4).token, log[4]]
    found = travelled(damaged, Point(offset=2), Point(offset=3), Point(at_ms=1500), Point())
    assert is_frozen(found.reached[Point(offset=2)])
    assert is_frozen(found.reached[Point(at_ms=1500)])
    assert not is_frozen(found.reached[Point(offset=3)])
    assert not is_frozen(found.reached[Point()])
    assert found.fold.damage is not None
    assert found.fold.damage.offset == 5
