"""When DNS moves the bootstrap name to another cluster, that cluster gets no calls."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import AlterRequest
from drover.cluster.sockets import ClosingSocket
from drover.errors import ClusterUnavailableError
from drover.events.partitions import TopicPartition
from tests.scripted import ALTER, LIST, ScriptedKafka, serving

NAME = "kafka.example"
ANYTHING = [AlterRequest(TopicPartition("orders", 0), (1,))]


class Names:
    """A DNS whose entry for the bootstrap server can change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, leads_to: str) -> None:
        self.leads_to = leads_to

        def dns_lookup(_: object, host: str, port: int, **__: object) -> Any:
            return socket.getaddrinfo(self.leads_to if host == NAME else host, port, type=socket.SOCK_STREAM)

        monkeypatch.setattr(ClosingSocket, "dns_lookup", dns_lookup, raising=False)


@pytest_asyncio.fixture
async def kafkas() -> AsyncIterator[tuple[ScriptedKafka, ScriptedKafka]]:
    """Two clusters with brokers of the same number, and topics of the same name, as after a migration."""
    old, new = ScriptedKafka("old", "127.0.0.1"), ScriptedKafka("new", "127.0.0.2")
    async with serving(old):
        new.port = old.port
        async with serving(new):
            yield old, new


async def test_a_move_is_not_sent_to_another_cluster_than_the_one_that_was_observed(
    kafkas: tuple[ScriptedKafka, ScriptedKafka], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections for calls are opened by the first call, which may be long after the first look."""
    old, new = kafkas
    names = Names(monkeypatch, old.host)
    driver = KafkaDriver("prod", f"{NAME}:{old.port}")
    assert (await driver.identify()).kafka_cluster_id == "old"
    names.leads_to = new.host
    with pytest.raises(ClusterUnavailableError, match=r"Kafka cluster new answers instead of old"):
        await driver.alter(ANYTHING)
    assert ALTER not in new.asked
    await driver.list_moves()
    assert LIST in old.asked
    names.leads_to = old.host
    await driver.alter(ANYTHING)
    assert ALTER in old.asked
    await driver.close()


async def test_a_cluster_that_was_made_anew_takes_calls_once_it_was_observed(
    kafkas: tuple[ScriptedKafka, ScriptedKafka], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = kafkas
    names = Names(monkeypatch, new.host)
    driver = KafkaDriver("prod", f"{NAME}:{old.port}")
    await driver.alter(ANYTHING)
    assert ALTER in new.asked
    names.leads_to = old.host
    assert (await driver.identify()).kafka_cluster_id == "old"
    with pytest.raises(ClusterUnavailableError, match="which was observed before"):
        await driver.alter(ANYTHING)
    await driver.alter(ANYTHING)
    assert ALTER in old.asked
    await driver.close()
