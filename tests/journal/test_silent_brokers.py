"""Looking and commanding while a broker of the log hangs: the asking others, and it is named."""

import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError
from kafka.protocol.metadata import MetadataResponse

from drover.client.client import Client
from drover.errors import LogUnavailableError
from drover.journal import reader, silent_brokers
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.journal.silent_brokers import NOTICE_S, PATIENCE_S, saying_who_is_silent
from tests.scripted import METADATA, TOPIC, ScriptedKafka, serving

DEAF = 2


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """Listen and never answer, as a process that was stopped does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask brokers in a set order, with little patience, and remember nothing of other tests."""
    monkeypatch.setattr(random, "shuffle", lambda _: None)
    monkeypatch.setattr(silent_brokers, "PATIENCE_S", 0.3)
    monkeypatch.setattr(silent_brokers, "LEFT_OUT_S", 60.0)
    monkeypatch.setattr(silent_brokers, "_silent", {})


class WithDeaf(ScriptedKafka):
    """A broker beside one that hangs, and that is named first and leads the topic."""

    def __init__(self, deaf: socket.socket) -> None:
        super().__init__()
        self.deaf_port = deaf.getsockname()[1]
        self.leader = DEAF

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.deaf_port},{self.address}"

    def _answer(self, key: int) -> Any:
        if key == METADATA:
            return MetadataResponse(
                throttle_time_ms=0,
                brokers=[(DEAF, "127.0.0.1", self.deaf_port, None), (1, self.host, self.port, None)],
                cluster_id=self.cluster_id,
                controller_id=1,
                topics=[(0, TOPIC, False, [(0, 0, self.leader, [1, 2], [1, 2], [])])],
            )
        return super()._answer(key)


def connections_to(deaf: socket.socket) -> int:
    """Count the connections that were made to the broker that hangs."""
    deaf.setblocking(False)
    count = 0
    while True:
        try:
            deaf.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_nobody_waits_longer_than_five_seconds_for_a_broker_that_hangs() -> None:
    assert PATIENCE_S + 2 <= NOTICE_S + 1 <= 5


async def test_the_others_are_asked_and_the_silent_one_is_named_once_for_all_clients_of_a_process(
    deaf: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = WithDeaf(deaf)
    async with serving(kafka):
        connection = LogConnection(kafka.servers)
        for _ in range(2):
            async with LogReader(connection) as made:
                assert await made.partitions(TOPIC) == 1
        async with Client(connection):
            pass
    assert connections_to(deaf) == 1
    said = [record.message for record in caplog.records if record.name == silent_brokers.__name__]
    assert said == [f"127.0.0.1:{kafka.deaf_port} of the log's Kafka has not answered within 0 s: asking others"]


async def test_a_server_that_is_the_only_one_gets_all_the_time_of_a_request(
    deaf: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "REQUEST_TIMEOUT_MS", 700)
    patiences: list[float] = []
    within = silent_brokers._Patience._within

    async def watched(self: Any, patience_s: float, connecting: Any) -> Any:
        patiences.append(patience_s)
        return await within(self, patience_s, connecting)

    monkeypatch.setattr(silent_brokers._Patience, "_within", watched)
    with pytest.raises(LogUnavailableError):
        await LogReader(LogConnection(f"127.0.0.1:{deaf.getsockname()[1]}")).__aenter__()
    assert patiences == [0.7]


async def test_servers_that_are_all_silent_get_a_second_chance_with_all_the_time(
    deaf: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "REQUEST_TIMEOUT_MS", 600)
    patiences: list[float] = []
    within = silent_brokers._Patience._within

    async def watched(self: Any, patience_s: float, connecting: Any) -> Any:
        patiences.append(patience_s)
        return await within(self, patience_s, connecting)

    monkeypatch.setattr(silent_brokers._Patience, "_within", watched)
    with socket.create_server(("127.0.0.1", 0)) as other:
        servers = ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in (deaf, other))
        with pytest.raises(LogUnavailableError):
            await LogReader(LogConnection(servers)).__aenter__()
    assert patiences == [0.3, 0.3, 0.6, 0.6]


async def test_a_leader_that_is_silent_is_named_and_waited_for_until_another_one_is_elected(
    deaf: socket.socket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silent_brokers, "NOTICE_S", 0.5)
    kafka = WithDeaf(deaf)
    tries: list[int] = []
    async with serving(kafka), LogReader(LogConnection(kafka.servers)) as made:

        async def end_offsets(partitions: list[Any]) -> dict[Any, int]:
            tries.append(kafka.leader)
            client = made._consumer._client
            while not await client.ready(client.cluster.leader_for_partition(partitions[0])):
                await client.force_metadata_update()
                if kafka.leader == DEAF and "waiting until" in caplog.text:
                    kafka.leader = 1
                    raise KafkaTimeoutError
            return dict.fromkeys(partitions, 7)

        monkeypatch.setattr(made._consumer, "end_offsets", end_offsets)
        assert await made.end_offsets(TOPIC, [0]) == {0: 7}
    assert tries == [DEAF, 1], "a time-out is no reason to give up"
    assert (
        f"broker {DEAF}, which leads partition 0 of {TOPIC}, has not answered for 0.5 s: waiting until Kafka has "
        "elected another leader"
    ) in caplog.text


async def test_nothing_is_said_of_an_answer_that_comes_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async with saying_who_is_silent(None, TOPIC, [0]):
        pass
    assert caplog.text == ""
