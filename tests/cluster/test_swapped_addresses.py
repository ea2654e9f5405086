"""Two brokers swap their addresses: each is asked at its own, although the client keeps the old ones for minutes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse, IncrementalAlterConfigsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from drover.cluster.configs import BROKER_NOT_AVAILABLE
from drover.cluster.kafka import KafkaDriver
from drover.cluster.messages import log_dirs_request, read_log_dirs
from drover.cluster.port import SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates
from tests.scripted import API_VERSIONS, METADATA, TOPIC, VERSIONS, ScriptedKafka, serving

CONFIGS, LOG_DIRS, ALTER_CONFIGS = 32, 35, 44
MORE_VERSIONS = VERSIONS | {CONFIGS: 1, LOG_DIRS: 0, ALTER_CONFIGS: 0}
KEY = TopicPartition(TOPIC, 0)
RATES = BrokerRates(1000, 1000)


class Broker(ScriptedKafka):
    """One of two brokers: it holds 100 bytes times its id, and knows the configs of no other broker.

    `named` holds the brokers at their addresses as the cluster's metadata names them.
    """

    def __init__(self, broker: int, named: dict[int, ScriptedKafka]) -> None:
        super().__init__()
        self.broker, self.named = broker, named

    def _answer(self, key: int) -> Any:
        if key == API_VERSIONS:
            known = [(one, 0, newest) for one, newest in MORE_VERSIONS.items()]
            return ApiVersionsResponse(error_code=0, api_keys=known, throttle_time_ms=0)
        if key == METADATA:
            return MetadataResponse(
                throttle_time_ms=0,
                brokers=[(broker, kafka.host, kafka.port, None) for broker, kafka in self.named.items()],
                cluster_id=self.cluster_id,
                controller_id=1,
                topics=[(0, TOPIC, False, [(0, 0, 1, [1, 2], [1, 2], [])])],
            )
        if key == LOG_DIRS:
            held = [(0, "/data", [(TOPIC, [(0, 100 * self.broker, 0, False)])])]
            return DescribeLogDirsResponse(throttle_time_ms=0, results=held)
        return super()._answer(key)


class Asked(Broker):
    """A broker that refuses questions about the configs of another one, as Kafka does; `about` are all questions."""

    about: list[int]

    def _answer(self, key: int) -> Any:
        if key not in {CONFIGS, ALTER_CONFIGS}:
            return super()._answer(key)
        # What is asked is not decoded: a test asks about one broker at a time.
        (asked,) = self.about
        is_own = asked == self.broker
        code = 0 if is_own else 42
        words = (
            None if is_own else f"Unexpected broker id, expected {self.broker} or empty string, but received {asked}"
        )
        if key == CONFIGS:
            rates: list[Any] = [
                (f"{side}.replication.throttled.rate", str(self.broker), False, 2, False, [])
                for side in ("leader", "follower")
            ]
            return DescribeConfigsResponse(throttle_time_ms=0, results=[(code, words, 4, str(asked), rates)])
        return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=[(code, words, 4, str(asked))])


@pytest_asyncio.fixture
async def brokers() -> AsyncIterator[tuple[Asked, Asked]]:
    named: dict[int, ScriptedKafka] = {}
    one, two = Asked(1, named), Asked(2, named)
    one.about = two.about = []
    async with serving(one, two):
        named.update({1: one, 2: two})
        yield one, two


def swap(one: Asked, two: Asked, *, is_known: bool = True) -> None:
    """Let each listen where the other did; `is_known` says whether the metadata names the new addresses already."""
    one.broker, two.broker = two.broker, one.broker
    if is_known:
        tell(one, two)


def tell(one: Asked, two: Asked) -> None:
    one.named.update({one.broker: one, two.broker: two})


async def test_bytes_are_those_of_the_broker_that_was_asked_after_two_have_swapped_their_addresses(
    brokers: tuple[Asked, Asked],
) -> None:
    driver = KafkaDriver("prod", brokers[0].address)
    assert (await driver.log_directories([TOPIC])).sizes == {KEY: {1: 100, 2: 200}}
    swap(*brokers)
    assert (await driver.log_directories([TOPIC])).sizes == {KEY: {1: 100, 2: 200}}
    await driver.close()


async def test_what_one_connection_learns_of_addresses_all_others_know(brokers: tuple[Asked, Asked]) -> None:
    """The looks read the metadata all the time; samples and calls go by it, without a request of their own."""
    one, two = brokers
    driver = KafkaDriver("prod", one.address)
    await driver.log_directories([TOPIC])
    swap(one, two)
    await driver.identify()
    for broker, size in ((1, 100), (2, 200)):
        answer = await driver._described_by(broker, log_dirs_request([KEY]), driver._deadline())
        assert read_log_dirs(answer) == {KEY: size}
    await driver.close()


@pytest.mark.parametrize("broker", [1, 2])
async def test_rates_are_read_and_written_at_the_brokers_new_address(brokers: tuple[Asked, Asked], broker: int) -> None:
    one, two = brokers
    one.about[:] = [broker]
    driver = KafkaDriver("prod", one.address)
    rates = BrokerRates(broker, broker)
    assert await driver.broker_rates([broker]) == {broker: rates}
    swap(one, two)
    assert await driver.broker_rates([broker]) == {broker: rates}
    change = SetBrokerRates(broker, rates)
    assert (await driver.change_throttles([change]))[change].accepted
    await driver.close()


async def test_a_broker_that_says_that_it_is_another_one_is_not_believed_and_the_addresses_are_asked_for_at_once(
    brokers: tuple[Asked, Asked],
) -> None:
    """The metadata may lag behind the swap."""
    one, two = brokers
    one.about[:] = [1]
    driver = KafkaDriver("prod", one.address)
    await driver.broker_rates([1])
    swap(one, two, is_known=False)
    change = SetBrokerRates(1, RATES)
    refused = (await driver.change_throttles([change]))[change]
    assert refused.code == BROKER_NOT_AVAILABLE, "it is no refusal of the rates"
    assert "another broker answers in its place" in str(refused.message)
    questions = one.asked.count(METADATA) + two.asked.count(METADATA)
    assert await driver.broker_rates([1]) == {}
    assert one.asked.count(METADATA) + two.asked.count(METADATA) == questions + 2, "once before, and once after"
    tell(one, two)
    assert await driver.broker_rates([1]) == {1: BrokerRates(1, 1)}
    await driver.close()


async def test_addresses_of_another_cluster_are_ignored(brokers: tuple[Asked, Asked]) -> None:
    one, two = brokers
    driver = KafkaDriver("prod", one.address)
    await driver.log_directories([TOPIC])
    one.cluster_id = two.cluster_id = "another"
    one.named.update({1: two, 2: one})
    await driver.log_directories([TOPIC])
    cluster = driver._samples._client._manager.cluster  # type: ignore[union-attr]
    assert [cluster.broker_metadata(broker).port for broker in (1, 2)] == [one.port, two.port]
    await driver.close()
