"""What the real driver says when brokers hang, die, return or were never there."""

import asyncio
import math
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
from kafka.protocol.metadata import MetadataRequest

from drover.cluster.kafka import KafkaDriver
from drover.cluster.messages import metadata_request
from drover.cluster.port import AlterRequest
from drover.cluster.topics import TOPIC_ALREADY_EXISTS, TopicSpec, create_topics, describe_topics
from drover.cluster.wire import MAX_CLIENTS_CLOSING, Connection, Deadline
from drover.errors import ClusterUnavailableError, ConfigurationError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.facts import NONE, NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION
from drover.local import LocalCluster
from tests.hanging import hanging

ANYTHING = [AlterRequest(TopicPartition("no-such-topic", 0), (1,))]
# Whose time limit ended a call: those of these tests are 0.3 to 1.5 s, and that of Kafka's client is 30 s.
AT_MOST_S = 28


@pytest.fixture
def deaf_server() -> Iterator[str]:
    """Listen on a port and never answer, as a broker that was stopped with SIGSTOP does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest_asyncio.fixture(loop_scope="session")
async def driver(local_cluster: LocalCluster) -> AsyncIterator[KafkaDriver]:
    made = KafkaDriver("faults", local_cluster.bootstrap)
    yield made
    await made.close()


async def test_a_cluster_that_is_not_there_is_unavailable_even_for_an_alter() -> None:
    driver = KafkaDriver("nowhere", "127.0.0.1:1", call_timeout_ms=300)
    with pytest.raises(ClusterUnavailableError, match=r"127\.0\.0\.1:1"):
        await driver.identify()
    with pytest.raises(ClusterUnavailableError):
        await driver.alter(ANYTHING)
    await driver.close()
    await driver.close()


async def test_an_option_that_does_not_exist_is_the_operators_to_mend() -> None:
    driver = KafkaDriver("typo", "127.0.0.1:1", {"sasl_mechanismus": "PLAIN"})
    with pytest.raises(ConfigurationError, match="sasl_mechanismus"):
        await driver.identify()
    await driver.close()


@pytest.mark.parametrize("security", [{}, {"security_protocol": "SSL", "ssl_context": ssl.create_default_context()}])
async def test_a_server_that_never_answers_costs_no_more_than_the_deadline_and_no_threads(
    deaf_server: str, security: dict[str, object]
) -> None:
    driver = KafkaDriver("deaf", deaf_server, security, call_timeout_ms=300)
    threads_before = threading.active_count()
    for _again in range(MAX_CLIENTS_CLOSING * 2):
        started = time.monotonic()
        with pytest.raises(ClusterUnavailableError):
            await driver.list_moves()
        assert time.monotonic() - started < AT_MOST_S
    await driver.close()
    deadline = time.monotonic() + 20
    while threading.active_count() > threads_before:
        assert time.monotonic() < deadline, threading.enumerate()
        await asyncio.sleep(0.02)


@pytest.mark.cluster
async def test_bootstrap_servers_that_hang_or_refuse_are_passed_over(
    local_cluster: LocalCluster, deaf_server: str
) -> None:
    driver = KafkaDriver("mixed", f"127.0.0.1:1,{deaf_server},{local_cluster.bootstrap}", call_timeout_ms=8000)
    assert len((await driver.identify()).racks) == 4
    await driver.close()


@pytest.mark.cluster
async def test_an_alter_that_a_hanging_cluster_swallowed_has_an_unknown_outcome(
    local_cluster: LocalCluster, driver: KafkaDriver
) -> None:
    impatient = KafkaDriver("impatient", local_cluster.bootstrap, call_timeout_ms=1000)
    # The first alter of a cluster that has just started may take longer than that.
    assert (await driver.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    await answers_again(impatient)
    assert (await impatient.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    async with hanging(local_cluster):
        started = time.monotonic()
        with pytest.raises(OutcomeUnknownError):
            await impatient.alter(ANYTHING)
        with pytest.raises(ClusterUnavailableError):
            await impatient.list_moves()
        assert time.monotonic() - started < AT_MOST_S
    await answers_again(impatient)
    assert (await impatient.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    await impatient.close()
    assert len((await driver.identify()).racks) > 0


class Deposed:
    """Answers alters as brokers do that are not the controller any more; counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: float) -> None:
        self.asked = 0
        self._times = times
        self._send = KafkaConnection.send_request

        def send_request(connection: KafkaConnection, request: Any, **options: Any) -> Any:
            return self.answer(connection, request, **options)

        monkeypatch.setattr(KafkaConnection, "send_request", send_request)

    def answer(self, connection: Any, request: Any, **options: Any) -> Any:
        if not isinstance(request, AlterPartitionReassignmentsRequest) or self.asked >= self._times:
            return self._send(connection, request, **options)
        self.asked += 1
        response = AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=NOT_CONTROLLER, error_message=None, responses=[]
        )
        return Future().success(response)


@pytest.mark.cluster
async def test_an_alter_goes_to_the_new_controller_when_the_old_one_says_that_it_is_not_it(
    driver: KafkaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposed = Deposed(monkeypatch, times=3)
    assert (await driver.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    assert deposed.asked == 3


@pytest.mark.cluster
async def test_an_alter_that_no_controller_takes_was_not_done(
    local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = KafkaDriver("impatient", local_cluster.bootstrap, call_timeout_ms=1500)
    Deposed(monkeypatch, times=math.inf)
    started = time.monotonic()
    with pytest.raises(
        ClusterUnavailableError, match=r"controller|the deadline passed while connecting|no answer in time"
    ):
        await impatient.alter(ANYTHING)
    assert time.monotonic() - started < AT_MOST_S
    monkeypatch.undo()
    assert (await impatient.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    await impatient.close()


@pytest.mark.cluster
async def test_calls_in_flight_when_an_impatient_one_replaces_the_client_end_with_a_fault_of_the_cluster(
    local_cluster: LocalCluster,
) -> None:
    connection = Connection("replaced", local_cluster.bootstrap, {}, call_timeout_ms=4000)
    await connection.send(MetadataRequest(topics=[]), Deadline.after_ms(4000))
    async with hanging(local_cluster):
        patient = [connection.send(MetadataRequest(topics=[]), Deadline.after_ms(4000)) for _each in range(3)]
        impatient = connection.send(MetadataRequest(topics=[]), Deadline.after_ms(500))
        ended = await asyncio.gather(*patient, impatient, return_exceptions=True)
    await connection.close()
    assert [type(fault) for fault in ended] == [ClusterUnavailableError] * 4


@pytest.mark.cluster
@pytest.mark.kills(3)
async def test_reads_go_round_a_broker_that_hangs(local_cluster: LocalCluster, driver: KafkaDriver) -> None:
    await driver.list_moves()
    broker = await not_the_controller(local_cluster)
    await local_cluster.pause(broker)
    try:
        for _again in range(5):
            await driver.list_moves()
            await driver.observe([TopicPartition("no-such-topic", 0)])
    finally:
        await local_cluster.resume(broker)
    await live(driver, 4)


@pytest.mark.cluster
@pytest.mark.kills(3)
async def test_the_same_driver_outlives_the_death_and_return_of_a_broker(
    local_cluster: LocalCluster, driver: KafkaDriver
) -> None:
    await driver.identify()
    broker = await not_the_controller(local_cluster)
    await local_cluster.kill(broker)
    await driver.list_moves()
    assert (await driver.alter(ANYTHING))[ANYTHING[0].partition].code == UNKNOWN_TOPIC_OR_PARTITION
    # In ZooKeeper mode a broker that returns while its last session lasts ends by itself.
    await live(driver, 3)
    await local_cluster.start(broker)
    await live(driver, 4)


@pytest.mark.cluster
async def test_topics_are_created_once_and_described(local_cluster: LocalCluster) -> None:
    spec = TopicSpec("made-by-drover", 6, 3, {"min.insync.replicas": "2"})
    impossible = TopicSpec("too-wide", 1, 9)
    first = await create_topics(local_cluster.bootstrap, [spec, impossible])
    assert (first[spec.name].code, first[impossible.name].accepted) == (NONE, False)
    again = await create_topics(local_cluster.bootstrap, [spec])
    assert again[spec.name].code == TOPIC_ALREADY_EXISTS
    deadline = time.monotonic() + 30
    while True:
        described = await describe_topics(local_cluster.bootstrap, [spec.name, "never-made"])
        made = described[spec.name]
        if made is not None and made.partitions == 6:
            break
        assert time.monotonic() < deadline, described
        await asyncio.sleep(0.05)
    assert (len(made.topic_id), made.replication_factor, made.configs["min.insync.replicas"]) == (22, 3, "2")
    assert described["never-made"] is None


async def not_the_controller(local: LocalCluster) -> int:
    """Choose a broker without which the cluster goes on: in ZooKeeper mode one of them is the controller."""
    if not local.spec.in_zookeeper_mode:
        return 3
    connection = Connection("who-leads", local.bootstrap, {}, call_timeout_ms=4000)
    response = await connection.send(metadata_request(()), Deadline.after_ms(4000))
    await connection.close()
    return next(broker.id for broker in local.spec.brokers if broker.id != response.controller_id)


async def answers_again(driver: KafkaDriver) -> None:
    """Wait until the cluster answers."""
    deadline = time.monotonic() + 60
    while True:
        try:
            await driver.list_moves()
        except ClusterUnavailableError:
            assert time.monotonic() < deadline, "the cluster does not answer any more"
            await asyncio.sleep(0.05)
        else:
            return


async def live(driver: KafkaDriver, count: int) -> None:
    """Wait until the cluster shows so many living brokers."""
    deadline = time.monotonic() + 60
    while len((await driver.identify()).racks) != count:
        assert time.monotonic() < deadline, f"the cluster does not have {count} living brokers"
        await asyncio.sleep(0.05)
