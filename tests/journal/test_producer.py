"""The idempotent producer recovers after a broker refuses a record; the stub counts sequence numbers as Kafka does."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, OutOfOrderSequenceNumber, TopicAuthorizationFailedError

from drover.cluster.topics import TopicSpec, create_topics
from drover.errors import AppendUnknownError, LogAccessError, LogUnavailableError
from drover.journal import client_shutdown, producer
from drover.journal.connection import LogConnection
from drover.journal.port import RecordTooLargeError
from drover.journal.producer import LogProducer
from drover.local import LocalCluster
from drover.local.deadline import wait_until
from tests.scripted import INIT_PRODUCER, PRODUCE, TOPIC, ScriptedKafka, serving

LOADING = 14  # COORDINATOR_LOAD_IN_PROGRESS: what a broker says that has no producer ids left, and no controller
NOT_ENOUGH_REPLICAS = 19
CONNECTION = LogConnection("kafka:9092", security={"sasl_plain_username": "worker"})


@dataclass
class Broker:
    """Takes a producer's records of a topic by their numbers only."""

    written: list[bytes] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    is_away: bool = False
    made: "list[Producer]" = field(default_factory=list)
    next_numbers: Counter[tuple[int, str]] = field(default_factory=Counter)


class Producer:
    """Counts each record as aiokafka does, whatever becomes of it."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._id, self._numbers = broker, len(broker.made), Counter[str]()
        self.stopped = False
        self.client = SimpleNamespace(_conns={})
        broker.made.append(self)

    async def start(self) -> None:
        if self._broker.is_away:
            raise KafkaConnectionError("away")

    async def stop(self) -> None:
        self.stopped = True

    async def send_and_wait(self, topic: str, value: bytes, **_: object) -> object:
        broker, place = self._broker, (self._id, topic)
        number, self._numbers[topic] = self._numbers[topic], self._numbers[topic] + 1
        if topic in broker.refused:
            raise TopicAuthorizationFailedError(topic)
        if number != broker.next_numbers[place]:
            raise OutOfOrderSequenceNumber
        broker.next_numbers[place] += 1
        broker.written.append(value)
        return SimpleNamespace(offset=len(broker.written) - 1, timestamp=0, timestamp_type=0)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()

    def new_producer(**_: Any) -> Producer:
        return Producer(made)

    monkeypatch.setattr(producer, "AIOKafkaProducer", new_producer)
    return made


async def refused_once(broker: Broker, log: LogProducer) -> None:
    """Write one record, and another one while an ACL is missing."""
    await log.start()
    await log.send("samples", b"first")
    broker.refused.add("samples")
    with pytest.raises(LogAccessError):
        await log.send("samples", b"without the ACL")
    broker.refused.clear()


async def replaced(log: LogProducer) -> None:
    """Wait until another producer has taken over, or could not."""
    assert log._renewing is not None
    await asyncio.wait((log._renewing,))


async def test_a_missing_acl_is_named_with_the_command_that_prints_it(broker: Broker) -> None:
    log = LogProducer(CONNECTION, "test")
    broker.refused.add("samples")
    with pytest.raises(LogAccessError, match=r"does not authorize worker .*samples.*`drover acls`"):
        await log.send("samples", b"any")


async def test_a_topic_is_written_again_after_a_record_of_it_was_refused(broker: Broker) -> None:
    log = LogProducer(CONNECTION, "test")
    await refused_once(broker, log)
    with pytest.raises(AppendUnknownError):
        await log.send("samples", b"out of order")
    await replaced(log)
    await log.send("samples", b"second")
    await log.send("events", b"an event")
    assert broker.written == [b"first", b"second", b"an event"]
    assert [one.stopped for one in broker.made] == [True, False]
    await log.close()
    assert [one.stopped for one in broker.made] == [True, True]


async def test_a_producer_that_cannot_be_replaced_now_is_replaced_later(broker: Broker) -> None:
    log = LogProducer(CONNECTION, "test")
    await refused_once(broker, log)
    broker.is_away = True
    with pytest.raises(AppendUnknownError):
        await log.send("samples", b"out of order")
    await replaced(log)
    await log.send("events", b"an event")
    broker.is_away = False
    with pytest.raises(AppendUnknownError):
        await log.send("samples", b"out of order")
    await replaced(log)
    await log.send("samples", b"second")
    assert broker.written == [b"first", b"an event", b"second"]
    await log.close()
    assert all(one.stopped for one in broker.made)


async def test_a_producer_that_is_given_no_id_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a controller brokers run out of producer ids; aiokafka asks again for ever."""
    monkeypatch.setattr(producer, "START_TIMEOUT_S", 1.0)
    kafka = ScriptedKafka()
    kafka.codes[INIT_PRODUCER] = LOADING
    async with serving(kafka):
        log = LogProducer(LogConnection(kafka.address), "test")
        async with asyncio.timeout(20):
            with pytest.raises(LogUnavailableError, match="did not answer"):
                await log.start()
            await log.close()
    assert INIT_PRODUCER in kafka.asked


async def test_what_brokers_refuse_for_now_does_not_keep_a_producer_from_being_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below min.insync.replicas `drover log init`, and a worker that was stopped, waited until the end of that."""
    monkeypatch.setattr(producer, "APPEND_TIMEOUT_S", 0.5)
    monkeypatch.setattr(client_shutdown, "SEND_REST_S", 0.5)
    kafka = ScriptedKafka()
    kafka.codes[PRODUCE] = NOT_ENOUGH_REPLICAS
    async with serving(kafka):
        log = LogProducer(LogConnection(kafka.address), "test")
        await log.start()
        with pytest.raises(AppendUnknownError):
            await log.send(TOPIC, b"any", partition=0)
        async with asyncio.timeout(20):
            await log.close()
            await log.close()


async def test_what_is_on_its_way_is_not_given_up_when_another_producer_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_shutdown, "SEND_REST_S", 0.1)
    kafka = ScriptedKafka()
    kafka.codes[PRODUCE] = NOT_ENOUGH_REPLICAS
    async with serving(kafka), asyncio.timeout(20):
        log = LogProducer(LogConnection(kafka.address), "test")
        await log.start()
        sending = asyncio.create_task(log.send(TOPIC, b"any", partition=0))
        await wait_until(lambda: PRODUCE in kafka.asked, what="the record to be refused")
        log._begin_anew()
        asked = kafka.asked.count(PRODUCE)
        await wait_until(lambda: kafka.asked.count(PRODUCE) > asked + 5, what="the record to be sent again and again")
        kafka.codes[PRODUCE] = 0
        assert await sending == 0
        await replaced(log)
        await log.close()


async def test_what_is_left_is_sent_before_a_producer_is_closed() -> None:
    kafka = ScriptedKafka()
    async with serving(kafka):
        log = LogProducer(LogConnection(kafka.address), "test")
        await log.start()
        sending = asyncio.create_task(log.send(TOPIC, b"any", partition=0))
        await asyncio.sleep(0)
        await asyncio.gather(sending, log.close())
    assert PRODUCE in kafka.asked


@pytest.mark.cluster
async def test_a_real_broker_refuses_what_follows_a_refused_record_until_another_producer_writes_it(
    local_cluster: LocalCluster,
) -> None:
    await create_topics(local_cluster.bootstrap, [TopicSpec("refusing", 1, 3, {"max.message.bytes": "300"})])
    log = LogProducer(LogConnection(local_cluster.bootstrap), "refused")
    await log.start()
    try:
        assert await log.send("refusing", b"first") == 0
        with pytest.raises(RecordTooLargeError):
            await log.send("refusing", b"x" * 1000)
        with pytest.raises(AppendUnknownError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            await log.send("refusing", b"out of order")
        await replaced(log)
        assert await log.send("refusing", b"second") == 1
    finally:
        await log.close()
