"""The async client: submitting commands and waiting for their outcomes."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError

from drover.client import client as client_module
from drover.client.answers import Ownership, Sent
from drover.client.client import Client
from drover.client.history import FoldedLog
from drover.client.live_view import Heard, View
from drover.client.transfers import Transfers
from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.clusters import ClusterOutOfReach
from drover.events.commands import Freeze
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import LogRecord
from drover.state.identity import Outage
from tests.client.log import CLUSTER, OneShard, Writer, outcome


class _Reader(OneShard):
    """A log of one shard to which nothing is added."""

    def __init__(self, records: list[bytes]) -> None:
        self._records = records

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

    async def end_offsets(self, _: str, shards: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(shards, len(self._records))


def sent(id_: str, offset: int) -> Sent:
    return Sent(Freeze(id=id_, cluster=CLUSTER, by="me", reason="why"), "drover.cancel", 0, offset)


def serve(monkeypatch: pytest.MonkeyPatch, writer: Writer, snapshot: ShardFold) -> None:
    async def snapshots(*_: object) -> dict[int, ShardFold]:
        return {0: snapshot}

    monkeypatch.setattr(client_module, "LogReader", lambda _: _Reader(writer.records))
    monkeypatch.setattr(client_module, "load_snapshots", snapshots)


async def test_who_waits_for_an_outcome_hears_once_who_owns_the_shard_and_whether_the_cluster_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = Writer()
    writer.begin("w1")
    writer.say(ClusterOutOfReach(cluster=CLUSTER, since_ms=5, detail="no broker answers"))
    serve(monkeypatch, writer, writer.fold.copy())
    signs = View(FoldedLog({}), Transfers(), workers={0: Heard("w1", 1, 77)}, running={"w1": 77, "w2": 78})

    async def signs_of_life(_: LogConnection) -> View:
        return signs

    monkeypatch.setattr(client_module, "signs_of_life", signs_of_life)
    monkeypatch.setattr(client_module, "NOTICE_S", 0.5)
    told: asyncio.Queue[Ownership | None] = asyncio.Queue()
    waiting = asyncio.create_task(
        Client(LogConnection("nowhere:1")).outcomes([sent("f", 9)], on_waiting=told.put_nowait)
    )
    shard = await told.get()
    assert shard is not None
    assert (shard.owner, shard.heard_ms, dict(shard.running)) == ("w1", 77, {"w1": 77, "w2": 78})
    assert shard.outage == Outage(5, "no broker answers")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert told.empty()


async def test_nothing_is_said_of_the_owner_before_the_log_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer()
    writer.begin("w1")
    serve(monkeypatch, writer, writer.fold.copy())

    async def more(_: object, topic: str, shards: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(shards, 1000)

    monkeypatch.setattr(_Reader, "end_offsets", more)
    monkeypatch.setattr(client_module, "NOTICE_S", 0.1)
    told: asyncio.Queue[Ownership | None] = asyncio.Queue()
    waiting = asyncio.create_task(
        Client(LogConnection("nowhere:1")).outcomes([sent("f", 9)], on_waiting=told.put_nowait)
    )
    assert await told.get() is None
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_nothing_is_said_of_a_command_that_is_decided_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer()
    writer.begin()
    snapshot = writer.fold.copy()
    writer.say(outcomes=(outcome("f", 1),))
    serve(monkeypatch, writer, snapshot)
    told: list[Ownership | None] = []
    before = asyncio.all_tasks()
    await Client(LogConnection("nowhere:1")).outcomes([sent("f", 1)], on_waiting=told.append)
    assert told == []
    assert asyncio.all_tasks() == before


async def test_no_command_has_no_outcome_and_several_clusters_are_named_as_the_fault() -> None:
    client = Client(LogConnection("nowhere:1"))
    assert await client.outcomes([]) == ()
    elsewhere = dataclasses.replace(sent("f", 1), shard=1)
    with pytest.raises(ValueError, match="each cluster's outcomes separately"):
        await client.outcomes([sent("f", 1), elsewhere])


class _Producer:
    """Takes what is sent, until it was told to fail."""

    client: Any = None

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[None]] = []
        self.fails_after = 10

    async def send(self, *_: object, **__: object) -> asyncio.Future[None]:
        if len(self.sent) == self.fails_after:
            raise KafkaTimeoutError
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


def sending(producer: _Producer) -> Client:
    made = Client(LogConnection("nowhere:1"))
    made._producer = producer
    made._shards = dict.fromkeys(made.connection.topics.commands, 1)
    return made


async def test_where_nobody_would_read_one_of_several_commands_none_is_written() -> None:
    good = Freeze(id="f1", cluster=CLUSTER, by="me", reason="why")
    bad = Freeze(id="f2", cluster=CLUSTER, by="me", reason=" ")
    producer = _Producer()
    with pytest.raises(ConfigurationError, match="no worker would accept the command f2"):
        await sending(producer).submit_all([good, bad])
    assert not producer.sent


async def test_when_writing_fails_half_way_the_sender_is_told_that_some_may_be_written() -> None:
    producer = _Producer()
    producer.fails_after = 1
    commands = [Freeze(id=f"f{number}", cluster=CLUSTER, by="me", reason="why") for number in range(2)]
    with pytest.raises(LogUnavailableError, match="some commands may have been written"):
        await sending(producer).submit_all(commands)


async def test_a_client_sends_only_between_its_opening_and_its_closing() -> None:
    """One that was closed said that Kafka did not answer, or waited for it for ever."""
    client = Client(LogConnection("nowhere:1"))
    command = Freeze(id="f1", cluster=CLUSTER, by="me", reason="why")
    with pytest.raises(RuntimeError, match="not connected"):
        await client.submit(command)
    stopped: list[bool] = []
    client = sending(_Stopping(stopped))
    with pytest.raises(RuntimeError, match="already connected"):
        await client.__aenter__()
    for _ in range(2):
        await client.__aexit__(None, None, None)
    assert stopped == [True]
    with pytest.raises(RuntimeError, match="not connected"):
        await client.submit(command)


class _Stopping(_Producer):
    """Notes that it was stopped; has no connections."""

    def __init__(self, stopped: list[bool]) -> None:
        super().__init__()
        self._stopped = stopped
        self.client = self
        self._conns: dict[int, object] = {}

    async def stop(self) -> None:
        self._stopped.append(True)


async def test_a_client_that_is_cancelled_while_it_connects_leaves_no_connection() -> None:
    opened = asyncio.Event()
    closed = asyncio.Event()

    async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.set()
        while await reader.read(1000):
            pass
        closed.set()
        writer.close()

    async with await asyncio.start_server(never_answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        entering = asyncio.create_task(Client(LogConnection(f"127.0.0.1:{port}")).__aenter__())
        await asyncio.wait_for(opened.wait(), 20)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        await asyncio.wait_for(closed.wait(), 20)
