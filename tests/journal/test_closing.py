"""What becomes of the connections to the log when they end early."""

import asyncio

import pytest

from drover.journal import reader
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from events.topics import TopicNames

NOWHERE = LogConnection("127.0.0.1:1", TopicNames())


class Consumer:
    """One that never connects."""

    def __init__(self, **_: object) -> None:
        self.connecting, self.stopped = asyncio.Event(), False

    async def start(self) -> None:
        self.connecting.set()
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self.stopped = True


async def test_a_reader_that_is_cancelled_while_it_connects_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer()
    monkeypatch.setattr(reader, "AIOKafkaConsumer", lambda **_: consumer)
    connecting = asyncio.create_task(LogReader(NOWHERE).__aenter__())
    await consumer.connecting.wait()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert consumer.stopped
