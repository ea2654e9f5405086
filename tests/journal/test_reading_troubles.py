"""Reading the log while a bootstrap server hangs, or after the records were deleted."""

import asyncio
import random
import socket
from types import SimpleNamespace
from typing import NoReturn

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from drover.errors import LogUnavailableError
from drover.journal import reader, stale_leader
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from tests.scripted import ScriptedKafka, serving


async def test_a_server_that_hangs_costs_a_reader_no_longer_than_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka tries the servers in an order by chance, and waited 40 s for one whose machine was gone."""
    monkeypatch.setattr(reader, "REQUEST_TIMEOUT_MS", 500, raising=False)
    monkeypatch.setattr(random, "shuffle", lambda _: None)
    kafka = ScriptedKafka()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        async with serving(kafka), asyncio.timeout(20):
            servers = f"127.0.0.1:{deaf.getsockname()[1]},{kafka.address}"
            async with LogReader(LogConnection(servers)) as made:
                assert await made.partitions("scripted") == 1


async def test_who_reads_what_was_deleted_is_told_so_and_not_that_kafka_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stale_leader, "STALE_LEADER_S", 0.0)

    async def getmany(**_: object) -> NoReturn:
        raise OffsetOutOfRangeError({TopicPartition("drover.events", 3): 17})

    made = LogReader(LogConnection("kafka:9092"))
    made._consumer = SimpleNamespace(getmany=getmany)
    with pytest.raises(LogUnavailableError, match=r"does not have offset 17 of drover\.events/3") as told:
        await made._poll()
    assert "did not answer" not in str(told.value)
