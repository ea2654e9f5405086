"""Offsets at which no command is do not count as commands that wait."""

from collections.abc import Collection

import pytest

from drover.journal.command_lag import Waiting
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord

PLACE = ("drover.cancel", 0)


async def counted(waiting: Waiting, broker: MemoryBroker, cursor: int) -> int:
    """Count as status and the worker do."""
    count = waiting.count(PLACE, cursor, len(broker.partitions[PLACE]))
    if not waiting.may_be_less:
        return count
    async with MemoryJournal(broker, 1).reader(is_committed=True) as reader:
        return (await waiting.find_out(reader))[PLACE]


def put(broker: MemoryBroker, text: str) -> None:
    for one in text:
        broker.put(*PLACE, StoredRecord(b"a command") if one == "c" else None)


@pytest.mark.parametrize(
    ("records", "cursor", "waits"),
    [("", 0, 0), ("c", 1, 0), ("c", 0, 1), ("c-", 1, 0), ("c---", 1, 0), ("c--cc", 1, 2), ("c-cc", 3, 1)],
)
async def test_what_lies_before_the_first_command_does_not_wait(records: str, cursor: int, waits: int) -> None:
    broker = MemoryBroker()
    put(broker, records)
    assert await counted(Waiting(), broker, cursor) == waits


async def test_what_is_known_is_not_read_again() -> None:
    broker, waiting = MemoryBroker(), Waiting()
    put(broker, "c-")
    assert await counted(waiting, broker, 1) == 0
    assert waiting.count(PLACE, 1, 2) == 0
    put(broker, "-cc")
    assert await counted(waiting, broker, 1) == 2
    assert waiting.count(PLACE, 1, 5) == 2
    assert not waiting.may_be_less


async def test_a_topic_that_was_made_anew_is_counted_anew() -> None:
    broker, waiting = MemoryBroker(), Waiting()
    put(broker, "c---")
    assert await counted(waiting, broker, 1) == 0
    broker.partitions[PLACE].clear()
    put(broker, "cc")
    assert await counted(waiting, broker, 0) == 2


async def test_what_is_counted_again_while_another_place_is_read_ends_nothing() -> None:
    broker, waiting, other = MemoryBroker(), Waiting(), ("drover.alter", 0)
    put(broker, "c-")
    broker.put(*other, StoredRecord(b"a command"))
    waiting.count(PLACE, 1, 2)
    waiting.count(other, 0, 1)
    async with MemoryJournal(broker, 1).reader(is_committed=True) as reader:

        async def decided_meanwhile(topic: str, shards: Collection[int]) -> dict[int, int]:
            waiting.count(other, 1, 1)
            return await ends(topic, shards)

        ends, reader.end_offsets = reader.end_offsets, decided_meanwhile  # type: ignore[method-assign]
        assert await waiting.find_out(reader) == {PLACE: 0}
    assert not waiting.may_be_less
