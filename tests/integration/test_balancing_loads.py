"""`drover plan balance` evens out what producers and consumers do, as these measure it themselves."""

import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from kafka import KafkaConsumer, KafkaProducer

from drover.cluster.sockets import DIRECT
from tests.integration.support import Installation, own_installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]
TOPIC = "busy"
PARTITIONS = 12
RECORD_BYTES = 20_000
# A round writes a record to each partition; between two rounds the consumer fetches what there is.
ROUND_S = 0.05
MEASURED_ROUNDS = 20


class Traffic:
    """A producer and a consumer, and the bytes that each has had acknowledged, or fetched, by partition."""

    def __init__(self, bootstrap: str) -> None:
        servers = bootstrap.split(",")
        self.written, self.read = Counter[int](), Counter[int]()
        self.rounds = 0
        self._stopped = threading.Event()
        self._producer = KafkaProducer(bootstrap_servers=servers, acks="all", proxy_url=DIRECT)
        self._consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id="readers",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
            metadata_max_age_ms=1000,
            proxy_url=DIRECT,
        )
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._producer.close()
        self._consumer.close()

    def _produce(self) -> None:
        while not self._stopped.wait(ROUND_S):
            sent = [
                (number, self._producer.send(TOPIC, bytes(RECORD_BYTES), partition=number))
                for number in range(PARTITIONS)
            ]
            for number, record in sent:
                record.get(timeout=60)
                self.written[number] += RECORD_BYTES
            self.rounds += 1

    def _consume(self) -> None:
        while not self._stopped.is_set():
            for partition, records in self._consumer.poll(timeout_ms=100).items():
                self.read[partition.partition] += RECORD_BYTES * len(records)


@contextmanager
def running(bootstrap: str) -> Iterator[Traffic]:
    traffic = Traffic(bootstrap)
    traffic.start()
    try:
        yield traffic
    finally:
        traffic.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy() -> AsyncIterator[Installation]:
    """A cluster of its own, on which broker 1 leads all that is written and read, and broker 4 has nothing of it."""
    async with own_installation("busy") as drover:
        await drover.create_topic(TOPIC, {number: [1, 2 + number % 2] for number in range(PARTITIONS)})
        yield drover


async def shares(drover: Installation, traffic: Traffic) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Return the share of each broker in what the clients write and read in the next rounds, by who leads."""
    written, read, begun = traffic.written.copy(), traffic.read.copy(), traffic.rounds

    async def measured() -> bool:
        # The producer stays a round ahead of the consumer at most by what one poll fetches.
        return traffic.rounds >= begun + MEASURED_ROUNDS and len(traffic.read - read) == PARTITIONS

    await wait_for(measured, "the clients to have written and read for a while")
    inventory = await drover.driver.inventory()
    leaders = {key.partition: facts.leader for key, facts in inventory.partitions.items() if key.topic == TOPIC}
    return _by_broker(traffic.written - written, leaders), _by_broker(traffic.read - read, leaders)


def _by_broker(moved: Mapping[int, int], leaders: Mapping[int, int | None]) -> dict[int, float]:
    total = sum(moved.values())
    brokers: dict[int, float] = dict.fromkeys((1, 2, 3, 4), 0.0)
    for number, count in moved.items():
        leader = leaders[number]
        assert leader is not None
        brokers[leader] += count / total
    return brokers


async def is_led_as_listed(drover: Installation) -> bool:
    inventory = await drover.driver.inventory()
    facts = [each for key, each in inventory.partitions.items() if key.topic == TOPIC]
    return all(each.leader == each.replicas[0] for each in facts)


async def test_balance_by_load_evens_out_what_the_clients_write_and_read(busy: Installation, tmp_path: Path) -> None:
    capacity = tmp_path / "capacityCores.json"
    figures = {"CPU": {"num.cores": "2"}, "NW_IN": "100000", "NW_OUT": "100000"}
    capacity.write_text(json.dumps({"brokerCapacities": [{"brokerId": "-1", "capacity": figures}]}))
    with running(busy.cluster.bootstrap) as traffic:
        for before in await shares(busy, traffic):
            assert before[1] == pytest.approx(1)
        # Drover's own topics stay where they are, so that not every number can be even.
        balanced = await busy.drover(
            *("plan", "balance", "--load", "3s", "--capacity", str(capacity), "--partial"),
            *("--apply", "--reason", "a story", "-o", "json"),
        )
        assert balanced.code == 0, balanced.output + balanced.errors
        loads = {each["load"]: each for each in balanced.document["proposal"]["loads"]}
        for load in ("network-in", "network-out", "leader-writes", "processor"):
            assert loads[load]["after"]["highest"] < loads[load]["before"]["highest"]
        await busy.wait_until_settled()
        # A new order alone leaves the leader until the next election.
        elected = await busy.drover("leaders", "balance", "--reason", "as the plan has it")
        assert elected.code == 0, elected.output + elected.errors
        await wait_for(lambda: is_led_as_listed(busy), "the first of each list to lead")
        for after in await shares(busy, traffic):
            assert max(after.values()) < 0.4, (after, balanced.document["proposal"]["moves"])
            assert min(after.values()) > 0.1, (after, balanced.document["proposal"]["moves"])
    described = await busy.drover("describe", "--load", "1s", "--topic", TOPIC, "-o", "jsonl")
    rows = [json.loads(line) for line in described.output.splitlines()]
    assert {row["write_bytes_per_s"] for row in rows} == {0.0}, "nobody writes any more"
