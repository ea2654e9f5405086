"""What the real driver sends when it looks, and from which moment on what it saw counts."""

import asyncio
import time
from typing import Any

import pytest
from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from drover.cluster.kafka import KafkaDriver
from drover.cluster.wire import Connection
from drover.events.partitions import TopicPartition
from drover.local import LocalCluster

LIST, DESCRIBE = ListPartitionReassignmentsRequest, MetadataRequest
SLOWNESS_S = 0.002
ABSENT = [TopicPartition("no-such-topic", 0)]

pytestmark = pytest.mark.cluster


async def test_an_observation_that_continues_from_a_listing_sends_one_list_less(
    local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[type[object]] = []
    send = Connection.send

    async def noted(connection: Connection, request: Any, *arguments: Any, **options: Any) -> Any:
        sent.append(type(request))
        return await send(connection, request, *arguments, **options)

    monkeypatch.setattr(Connection, "send", noted)
    driver = KafkaDriver("counted", local_cluster.bootstrap)
    listing = await driver.list_moves()
    await driver.observe(ABSENT, since=listing)
    assert sent == [LIST, DESCRIBE, LIST]
    sent.clear()
    await driver.observe(ABSENT)
    assert sent == [LIST, DESCRIBE, LIST]
    await driver.close()


async def test_a_listing_begins_before_it_was_asked_for_however_long_the_answer_takes(
    local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_ms: list[int] = []
    send = Connection.send

    async def slow(connection: Connection, *arguments: Any, **options: Any) -> Any:
        asked_ms.append(now_ms())
        await asyncio.sleep(SLOWNESS_S)
        return await send(connection, *arguments, **options)

    monkeypatch.setattr(Connection, "send", slow)
    driver = KafkaDriver("slow", local_cluster.bootstrap)
    listing = await driver.list_moves()
    assert listing.started_ms <= asked_ms[0]
    observation = await driver.observe(ABSENT)
    assert listing.started_ms < observation.started_ms <= asked_ms[1]
    await driver.close()


def now_ms() -> int:
    return int(time.monotonic() * 1000)
