"""Five real brokers, and a client that knows Drover by its documents alone."""

import json
import time
from collections.abc import Collection

from aiokafka import AIOKafkaProducer

from drover.client.history import open_log, read_log
from drover.cluster.port import AlterRequest
from drover.events.healing import HealChunkBegun, HealChunkEnded
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCreated
from drover.events.records import Batch
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.journal.reader import LogReader
from tests.integration.support import MANAGED, Installation, wait_for

SHARD = shard_of(MANAGED, DEFAULT_SHARDS)


class OtherClient:
    """Writes JSON to the topic `drover.broker-failed`, as any Kafka client could."""

    def __init__(self, drover: Installation) -> None:
        self._drover = drover
        self._sent = 0

    async def send(self, kind: str, **fields: object) -> None:
        """Write one command and wait for its acknowledgement."""
        self._sent += 1
        said = {"type": kind, "id": f"watch-{self._sent}", "cluster": MANAGED, "by": "rack-watch", "reason": "no ping"}
        producer = AIOKafkaProducer(bootstrap_servers=self._drover.cluster.bootstrap, acks="all")
        await producer.start()
        try:
            payload = json.dumps({**said, **fields}).encode()
            await producer.send_and_wait(f"{self._drover.names.prefix}.broker-failed", payload, key=MANAGED.encode())
        finally:
            await producer.stop()

    async def reports(self, broker: int) -> None:
        """Report that a broker failed, by a clock that is an hour slow."""
        await self.send("broker-failed", broker=broker, at_ms=round(time.time() * 1000) - 3_600_000)


async def holders(drover: Installation, *brokers: int) -> list[TopicPartition]:
    """List the partitions of the whole cluster whose list names one of these brokers."""
    survey = await drover.driver.survey()
    return [key for key, facts in survey.partitions.items() if set(brokers) & set(facts.replicas)]


async def batches(drover: Installation) -> list[Batch]:
    """Read what the owners of the managed cluster have recorded."""
    async with LogReader(drover.connection) as reader:
        log = await open_log(reader, drover.connection)
        return [
            record.batch
            async for records in read_log(reader, drover.connection, log)
            for record in records
            if record.shard == SHARD
        ]


async def gather_on(drover: Installation, brokers: tuple[int, ...], besides: str) -> None:
    """Put every partition but those of one topic on these brokers, so that the log lives whoever else dies."""

    async def elsewhere() -> list[TopicPartition]:
        survey = await drover.driver.survey()
        return [
            key
            for key, facts in survey.partitions.items()
            if key.topic != besides and not set(facts.replicas) <= set(brokers)
        ]

    lists = [brokers[first:] + brokers[:first] for first in range(len(brokers))]
    await drover.driver.alter(
        [AlterRequest(key, lists[number % len(lists)]) for number, key in enumerate(await elsewhere())]
    )

    async def gathered() -> bool:
        return not await elsewhere() and not (await drover.driver.list_moves()).moves

    await wait_for(gathered, f"everything but {besides} to be on {brokers}", pause_s=0.5)


async def chunks_follow_each_other(drover: Installation) -> None:
    """R46-4, R46-7: no chunk begins twice, none before the one before has ended, and nobody is moved twice by one."""
    begun: list[tuple[str, int]] = []
    queued: list[tuple[str, TopicPartition]] = []
    is_open = False
    for batch in await batches(drover):
        for event in batch.events:
            match event:
                case HealChunkBegun():
                    begun.append((event.heal, event.chunk))
                    assert event.plan is None or not is_open, f"{event} begins while another one is under way"
                    is_open = is_open or event.plan is not None
                case HealChunkEnded():
                    is_open = False
                case ReassignmentCreated(plan=plan) if plan.startswith("drover-heal-"):
                    queued.append((plan.rpartition("-")[0], event.key))
                case _:
                    pass
    assert len(begun) == len(set(begun))
    assert len(queued) == len(set(queued))


async def is_whole(drover: Installation, topic: str, without: Collection[int]) -> bool:
    """Whether every partition of a topic has three replicas in sync, none of them on these brokers."""
    survey = await drover.driver.survey()
    found = [facts for key, facts in survey.partitions.items() if key.topic == topic]
    return bool(found) and all(
        len(facts.replicas) == 3 and set(facts.isr) == set(facts.replicas) and not set(without) & set(facts.replicas)
        for facts in found
    )
