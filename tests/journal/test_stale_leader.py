"""A leader that does not know of its end says that offsets are out of range: doubted for a while, then believed.

Such a broker says so for a moment only, which no test can wait for; offsets that are not there yet, on a real Kafka,
are answered the same way for as long as wanted.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.errors import CorruptLogError, LogUnavailableError
from drover.events.topics import TopicNames
from drover.journal import stale_leader, topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.reader import LogReader
from drover.journal.stale_leader import FORGOTTEN_S, STALE_LEADER_S, Suspicion
from drover.local import LocalCluster

_prefixes = (f"stale-{number}" for number in itertools.count())
# The genesis record stands at 0: three more must come before this one is there.
AHEAD = 3


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_leader, "STALE_LEADER_S", 0.5)


@pytest_asyncio.fixture
async def connection(local_cluster: LocalCluster) -> LogConnection:
    connection = LogConnection(local_cluster.bootstrap, TopicNames(next(_prefixes)))
    await topics.init(connection, 1)
    return connection


@pytest_asyncio.fixture
async def journal(connection: LogConnection) -> AsyncIterator[KafkaJournal]:
    journal = KafkaJournal(connection, 1, "stale")
    await journal.start()
    yield journal
    await journal.close()


async def append_later(journal: KafkaJournal) -> None:
    await asyncio.sleep(0.5)
    for number in range(1, AHEAD + 1):
        await journal.append(0, b"record %d" % number, ())


async def read_ahead(journal: KafkaJournal) -> int:
    """Read from an offset that is not there yet until a record comes, and return its offset."""
    journal.seek([AHEAD])
    async with asyncio.timeout(60):
        while not (records := await journal.next_records()):
            pass
    return records[0].offset


@pytest.mark.cluster
async def test_a_reader_that_is_ahead_of_a_leader_goes_on_when_the_leader_has_more(
    connection: LogConnection, journal: KafkaJournal
) -> None:
    topic = connection.topics.events
    async with LogReader(connection) as reader, asyncio.TaskGroup() as group:
        group.create_task(append_later(journal))
        tail = group.create_task(read_ahead(journal))
        direct = group.create_task(journal.first_offset(topic, 0, AHEAD))
        bounds = group.create_task(journal.bounds(topic, [AHEAD + 1]))
        followed = await anext(reader.follow(topic, {0: AHEAD}))
    assert (tail.result(), direct.result(), followed[0].offset) == (AHEAD, AHEAD, AHEAD)
    assert bounds.result() == ((0, AHEAD + 1),)


@pytest.mark.cluster
@pytest.mark.usefixtures("impatient")
async def test_what_is_out_of_range_for_long_was_lost(connection: LogConnection, journal: KafkaJournal) -> None:
    topic = connection.topics.events
    with pytest.raises(CorruptLogError, match="never lose any record"):
        await read_ahead(journal)
    with pytest.raises(CorruptLogError, match="no longer has offset 3"):
        await journal.first_offset(topic, 0, AHEAD)
    assert await journal.bounds(topic, [AHEAD]) == ((0, 1),)
    async with LogReader(connection) as reader:
        with pytest.raises(LogUnavailableError):
            await anext(reader.follow(topic, {0: AHEAD}))


def test_a_doubt_is_over_when_the_same_was_said_for_too_long_without_a_pause() -> None:
    suspicion, began_s = Suspicion(), time.monotonic()
    step_s = FORGOTTEN_S / 2
    said = [began_s + number * step_s for number in range(int(STALE_LEADER_S / step_s) + 2)]
    assert [suspicion.is_over(now_s) for now_s in said] == [now_s - began_s >= STALE_LEADER_S for now_s in said]
    assert suspicion.is_over(said[-1] + FORGOTTEN_S)
    assert not suspicion.is_over(said[-1] + 2 * FORGOTTEN_S + 0.1)
