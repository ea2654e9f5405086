"""What a program gets from the client that sends commands and awaits their outcomes."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Self

import msgspec
import pytest

from drover.client import client as client_module
from drover.client.answers import Sent
from drover.client.client import Client
from drover.journal.connection import LogConnection
from drover.journal.reader import LogRecord
from drover.shard.fold import ShardFold
from events.commands import Freeze
from events.records import Cursor
from tests.client.log import CLUSTER, Writer, outcome


class _Reader:
    """A log of one shard to which nothing is added."""

    def __init__(self, records: list[bytes]) -> None:
        self._records = records

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def partitions(self, _: str) -> int:
        return 1

    async def read(self, _: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        yield tuple(
            LogRecord(0, offset, 1000, payload, ())
            for offset, payload in enumerate(self._records)
            if offset >= start[0]
        )

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        async for records in self.read(topic, start):
            yield records
        await asyncio.Event().wait()


def sent(id_: str, offset: int) -> Sent:
    return Sent(Freeze(id=id_, cluster=CLUSTER, by="me", reason="why"), "drover.cancel", 0, offset)


def serve(monkeypatch: pytest.MonkeyPatch, writer: Writer, snapshot: ShardFold) -> None:
    async def snapshots(*_: object) -> dict[int, ShardFold]:
        return {0: snapshot}

    monkeypatch.setattr(client_module, "LogReader", lambda _: _Reader(writer.records))
    monkeypatch.setattr(client_module, "load_snapshots", snapshots)


async def test_a_repetition_of_a_command_that_was_held_before_the_snapshot_gets_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = Writer()
    writer.begin()
    writer.say(outcomes=(outcome("f", 1, verdict="held"),))
    writer.say(outcomes=(outcome("f", 1, verdict="refused"),))
    snapshot = writer.fold.copy()
    writer.say(outcomes=(outcome("f", 9, verdict="duplicate", first_offset=2),))
    serve(monkeypatch, writer, snapshot)
    (answer,) = await Client(LogConnection("nowhere:1")).outcomes([sent("f", 9)], timeout_s=2)
    assert (answer.outcome.verdict, answer.offset, answer.repeated) == ("refused", 3, True)


async def test_a_command_that_was_decided_ahead_of_the_snapshots_cursor_gets_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = Writer()
    writer.begin()
    cursors = (Cursor("id", 0), Cursor("id", 4, ahead=(9,)), Cursor("id", 0), Cursor("id", 0))
    writer.append(msgspec.structs.replace(writer.batch(outcomes=(outcome("f", 9),)), cursors=cursors))
    serve(monkeypatch, writer, writer.fold.copy())
    (answer,) = await Client(LogConnection("nowhere:1")).outcomes([sent("f", 9)], timeout_s=2)
    assert (answer.outcome.verdict, answer.offset) == ("accepted", 2)
