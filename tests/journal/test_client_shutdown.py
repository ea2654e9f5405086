"""Connections to the log are closed when a client stops early, also while brokers are down."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from drover.errors import LogAccessError, LogUnavailableError
from drover.events.topics import TopicNames
from drover.fold.log import ShardFold
from drover.journal import client_shutdown, reader, recovery, tail, topics
from drover.journal.client_shutdown import close_consumers, stop_client
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.producer import LogProducer
from drover.journal.reader import LogReader
from drover.journal.tail import LogTail

NOWHERE = LogConnection("127.0.0.1:1", TopicNames())


class Consumer:
    """One that never connects."""

    def __init__(self, **_: object) -> None:
        self.connecting, self.stopped = asyncio.Event(), False
        self._client: Any = self
        self._conns: dict[int, Any] = {}

    async def start(self) -> None:
        self.connecting.set()
        await asyncio.Event().wait()

    async def bootstrap(self) -> None:
        """It is not reached."""

    async def _get_conn(self, node_id: int) -> None:
        """It is not reached."""

    async def stop(self) -> None:
        self.stopped = True


async def test_a_reader_that_is_cancelled_while_it_connects_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer()
    monkeypatch.setattr(reader, "new_consumer", lambda **_: consumer)
    connecting = asyncio.create_task(LogReader(NOWHERE).__aenter__())
    await consumer.connecting.wait()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert consumer.stopped


class Busy(Consumer):
    """One that asks brokers that are away for something: as aiokafka does, it cancels that and waits for it."""

    def __init__(self, **_: object) -> None:
        super().__init__()
        self.closed = False

    async def stop(self) -> None:
        asking = asyncio.create_task(asyncio.Event().wait())
        asking.cancel()
        await asking

    async def close(self) -> None:
        self.closed = True


async def test_a_tail_is_closed_while_brokers_that_are_away_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers: list[Busy] = []

    def make(**_: object) -> Busy:
        consumers.append(Busy())
        return consumers[-1]

    monkeypatch.setattr(tail, "new_consumer", make)
    await LogTail(NOWHERE, 1, "me").close()
    assert [consumer.closed for consumer in consumers] == [True, True]


class Slow(Busy):
    """One that has to wait for something in the middle of its end."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping, self.go_on = asyncio.Event(), asyncio.Event()

    async def stop(self) -> None:
        self.stopping.set()
        await self.go_on.wait()
        await super().stop()


async def test_whoever_is_cancelled_while_a_consumer_is_closed_leaves_no_connection_open() -> None:
    consumer = Slow()
    waiting = asyncio.create_task(close_consumers(consumer))
    await consumer.stopping.wait()
    waiting.cancel()
    consumer.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert consumer.closed


class Broken(Busy):
    """One whose fetching has failed: as aiokafka does, it raises that when it is closed, half way."""

    async def start(self) -> None:
        """It is later that it fails."""

    async def stop(self) -> None:
        raise KafkaError("Unexpected error during data retrieval")


async def test_a_reader_whose_fetching_has_failed_is_closed_and_says_what_it_said_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """aiokafka's own error came instead, which nobody expects there, and the connections stayed open."""
    consumer = Broken()
    monkeypatch.setattr(reader, "new_consumer", lambda **_: consumer)
    with pytest.raises(LogUnavailableError, match="nothing came"):
        async with LogReader(NOWHERE):
            raise LogUnavailableError("nothing came")
    assert consumer.closed


async def test_a_fault_of_our_own_while_a_consumer_is_closed_is_raised_once_its_connections_are_closed() -> None:
    class Faulty(Busy):
        async def stop(self) -> None:
            raise RuntimeError("a bug")

    consumer = Faulty()
    with pytest.raises(RuntimeError, match="a bug"):
        await close_consumers(consumer)
    assert consumer.closed


class Transport:
    """A connection over TLS to a broker that hangs: it is open until somebody aborts it."""

    def __init__(self) -> None:
        self.transport = self._writer = self
        self.told, self.over = asyncio.Event(), asyncio.Event()

    def is_closing(self) -> bool:
        return self.told.is_set()

    def abort(self) -> None:
        self.over.set()


async def test_connections_that_a_broker_does_not_confirm_to_be_closed_are_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over TLS it took 30 s: a worker that was stopped while a broker of its log hung ended with 71."""
    monkeypatch.setattr(client_shutdown, "CLOSE_S", 0.01)
    connection, go_on = Transport(), asyncio.Event()

    async def stop() -> None:
        await go_on.wait()
        connection.told.set()
        await connection.over.wait()

    client = SimpleNamespace(_conns={1: connection})
    stopping = asyncio.create_task(stop_client(client, stop()))
    await asyncio.sleep(0.1)
    assert not connection.over.is_set(), "what is left is still being sent"
    go_on.set()
    async with asyncio.timeout(20):
        await stopping


class Journal(Consumer):
    """A journal that never connects."""

    async def close(self) -> None:
        await self.stop()


@pytest.mark.parametrize(
    ("module", "work"),
    [
        (recovery, lambda: recovery.resume_shard(NOWHERE, ShardFold(0, 1), 0, "me")),
        (topics, lambda: topics._begin_shards(NOWHERE, 1)),
    ],
    ids=["recover", "topics init"],
)
async def test_a_journal_is_closed_when_somebody_interrupts_its_start(
    module: object, work: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka told the user of clients that were not closed."""
    journal = Journal()
    monkeypatch.setattr(module, "KafkaJournal", lambda *_: journal)
    working = asyncio.ensure_future(work())
    await journal.connecting.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert journal.stopped


async def test_a_journal_whose_producer_cannot_connect_leaves_no_tail_that_still_connects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = asyncio.Event()

    async def refused(self: LogProducer) -> None:
        del self
        raise LogAccessError("the log gives this user no producer id")

    async def slow(self: LogTail) -> None:
        del self
        for _ in range(10):
            await asyncio.sleep(0)
        ended.set()

    monkeypatch.setattr(LogProducer, "start", refused)
    monkeypatch.setattr(LogTail, "start", slow)
    journal = KafkaJournal(NOWHERE, 1, "drover-test")
    with pytest.raises(LogAccessError):
        await journal.start()
    assert ended.is_set()
    await journal.close()
