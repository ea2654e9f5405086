"""The intakes of several clusters share one connection, and send at the same time."""

import asyncio
from dataclasses import dataclass, field
from typing import Self

import pytest

from drover.errors import LogUnavailableError
from drover.events.commands import Command
from drover.journal.connection import LogConnection
from drover.service import command_sender
from drover.service.command_sender import CommandSender
from tests.runtime.world import freeze


@dataclass
class Log:
    """The log's Kafka: it keeps every connection that was made, and answers or not."""

    connections: list["Connection"] = field(default_factory=list)
    answers: bool = True
    sent: list[str] = field(default_factory=list)

    def connect(self, _: LogConnection) -> "Connection":
        self.connections.append(Connection(self))
        return self.connections[-1]


class Connection:
    """A client; others run while it opens, sends and closes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.is_open = False
        self.closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        self.is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_open = False
        self.closing.set()
        for _step in range(5):
            await asyncio.sleep(0)

    async def submit(self, command: Command) -> None:
        await asyncio.sleep(0)
        if not (self.is_open and self._log.answers):
            raise LogUnavailableError("nobody answers")
        self._log.sent.append(command.id)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    monkeypatch.setattr(command_sender, "Client", made.connect)
    return made


async def test_two_that_send_at_once_open_one_connection(log: Log) -> None:
    sender = CommandSender(LogConnection("nowhere:1"))
    await asyncio.gather(sender.send(freeze("f1")), sender.send(freeze("f2")))
    assert sorted(log.sent) == ["f1", "f2"]
    assert len(log.connections) == 1
    await sender.close()
    assert not log.connections[0].is_open


async def test_one_that_fails_does_not_close_the_connection_that_another_one_opens_meanwhile(log: Log) -> None:
    sender = CommandSender(LogConnection("nowhere:1"))
    log.answers = False
    failing = asyncio.create_task(sender.send(freeze("f1")))
    await asyncio.sleep(0)
    await log.connections[0].closing.wait()
    # Kafka answers again before the first connection is closed.
    log.answers = True
    await sender.send(freeze("f2"))
    with pytest.raises(LogUnavailableError):
        await failing
    await sender.send(freeze("f3"))
    assert log.sent == ["f2", "f3"]
    assert [connection.is_open for connection in log.connections] == [False, True]
