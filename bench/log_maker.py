"""Makes event logs as a worker would, in memory: the real shard core beside a model of a cluster, in virtual time."""

import random
from collections.abc import Sequence
from typing import Any

from bench.results import check
from drover.capability.messages import Moment
from drover.client.client import topic_of
from drover.cluster.model import ClusterModel
from drover.cluster.simulated import SimulatedDriver
from drover.runtime.calls import carry_out, look
from drover.scheduling.state import Limits
from drover.shard.core import ShardCore
from drover.shard.fold import RecordVerdict, ShardFold
from drover.shard.messages import Arrival
from drover.state.cluster import ClusterState
from events.codec import encode_command, encode_record
from events.commands import Alter, AnyCommand, Blacklist, BrokerFailed, BrokerReturned, Cancel, PartitionTarget
from events.records import SCHEMA_VERSION, Acquire, Genesis
from events.topics import TopicNames

CLUSTER = "prod"
TOPIC = "orders"
TOPICS = TopicNames()
TOPIC_IDS = ("id-alter", "id-cancel", "id-blacklist", "id-broker-failed")
BROKERS = 20
REPLICAS = 3
WALL_START_MS = 1_700_000_000_000
STEP_MS = 150
MAX_STEPS = 10_000


class LogMaker:
    """One shard with one owner and one cluster; `log` grows with every decision."""

    def __init__(self, partitions: int, limits: Limits) -> None:
        self.model = ClusterModel({broker: f"r{broker % 3}" for broker in range(1, BROKERS + 1)})
        self.layout = {number: layout(number) for number in range(partitions)}
        self.model.create_topic(TOPIC, self.layout)
        self._driver = SimulatedDriver(self.model, CLUSTER)
        self.log = [encode_record(Genesis(schema=SCHEMA_VERSION, shards=1, shard=0))]
        self.events = 0
        fold = ShardFold(0, 1)
        fold.fold(0, self.log[0])
        self.core = ShardCore(fold, topic_ids=TOPIC_IDS, clusters={CLUSTER: limits}, topics=TOPICS)
        self._offsets = [0] * len(TOPIC_IDS)
        self._ids = 0
        token = b"0123456789abcdef"
        self._append(
            encode_record(
                Acquire(schema=SCHEMA_VERSION, epoch=1, token=token, owner="worker", group="drover", generation=1)
            )
        )
        self.core.own(token, self._now())

    @property
    def state(self) -> ClusterState:
        return self.core.fold.state.cluster(CLUSTER)

    # -- commands

    def new_id(self) -> str:
        self._ids += 1
        return f"command-{self._ids}"

    def alter(self, partitions: Sequence[int], throttle: int | None = None) -> Alter:
        """Move each partition one broker further; its list in `layout` becomes the new one."""
        for number in partitions:
            self.layout[number] = tuple(1 + broker % BROKERS for broker in self.layout[number])
        targets = tuple(
            PartitionTarget(topic=TOPIC, partition=number, replicas=self.layout[number]) for number in partitions
        )
        return Alter(
            id=self.new_id(),
            cluster=CLUSTER,
            by="ana@example",
            reason="capacity",
            partitions=targets,
            throttle_bytes_per_second=throttle,
        )

    async def decide(self, *commands: AnyCommand) -> None:
        """Let the owner decide commands that arrived together."""
        arrivals = tuple(self._arrival(command) for command in commands)
        while arrivals:
            arrivals = arrivals[await self._turn(arrivals) :]
        while await self._turn(()):
            pass

    async def roll_back(self, plan: Alter) -> None:
        """Undo a plan under way; partitions that were done already keep their new list."""
        command = Cancel(
            id=self.new_id(), cluster=CLUSTER, by="bob@example", reason="alarm", mode="rollback", plan=plan.plan_name
        )
        await self.decide(command)
        await self.finish()
        for target in plan.partitions:
            partition = self.model.partition(target.key)
            assert partition is not None, f"{target.key} was created with the topic"
            self.layout[target.partition] = partition.replicas

    def _arrival(self, command: AnyCommand) -> Arrival:
        index = TOPICS.commands.index(topic_of(command, TOPICS))
        self._offsets[index] += 1
        payload = encode_command(command)
        return Arrival(index, self._offsets[index] - 1, self._now().wall_ms, payload, command)

    # -- time

    async def step(self) -> None:
        """Look at the cluster once, decide what follows, then let it copy."""
        seen = await look(self._driver, self.core, CLUSTER, self._now)
        if seen is not None:
            self.core.deliver(seen)
        while await self._turn(()):
            pass
        self.model.advance(STEP_MS)

    async def finish(self) -> None:
        """Go on until nothing is under way."""
        for _ in range(MAX_STEPS):
            state = self.state
            if not (state.reassignments or state.broker_throttles or state.topic_throttles):
                return
            await self.step()
        check(False, "the model's reassignments never end")

    def _now(self) -> Moment:
        return Moment(WALL_START_MS + self.model.now_ms, self.model.now_ms)

    async def _turn(self, arrivals: tuple[Arrival, ...]) -> int:
        """Write one record and make its calls; returns how many arrivals it decided, or 1 for any other progress."""
        for partitions in self.core.facts_needed(arrivals).values():
            self.core.deliver(await self._driver.observe(partitions, with_min_isr=True))
        proposed = self.core.propose(self._now(), arrivals, {})
        if proposed is not None:
            self._append(proposed.payload)
            self.events += len(proposed.record.events)
            self.core.commit(proposed)
        effects = self.core.effects(self._now())
        for effect in effects:
            self.core.deliver(await carry_out(self._driver, effect, self._now))
        if arrivals:
            check(proposed is not None and proposed.taken, "the core decides nothing")
            return len(proposed.taken) if proposed is not None else 0
        return int(proposed is not None or bool(effects))

    def _append(self, payload: bytes) -> None:
        folded = self.core.fold.fold(len(self.log), payload)
        check(
            folded is not None and folded.verdict in {RecordVerdict.VALID, RecordVerdict.ACQUIRED},
            "a record did not count",
        )
        self.log.append(payload)


def layout(number: int) -> tuple[int, ...]:
    """Spread a partition's replicas over the ring of brokers."""
    return tuple(1 + (number + place) % BROKERS for place in range(REPLICAS))


async def varied_log(events: int, per_turn: int = 1000) -> LogMaker:
    """Make a log of at least that many events: large, middling and single moves, throttles, rollbacks, broker news.

    A longer log begins with the shorter one, of equal `per_turn`: so many partitions are moved before the next turn.
    """
    partitions = 2000
    maker = LogMaker(partitions, Limits(max_partitions_in_flight=1250, max_moves_per_broker=60))
    chance = random.Random(7)
    while maker.events < events:
        numbers = chance.sample(range(partitions), per_turn)
        first, second, third = per_turn // 2, per_turn * 55 // 100, per_turn * 8 // 10
        undone = maker.alter(numbers[first:second])
        await maker.decide(undone)
        await maker.decide(maker.alter(numbers[:first]))
        await maker.decide(maker.alter(numbers[second:third], throttle=50_000_000))
        await maker.roll_back(undone)
        for number in numbers[third:]:
            await maker.decide(maker.alter([number]))
            if number % 4 == 0:
                await maker.step()
        await maker.decide(*_broker_news(maker, chance))
        await maker.finish()
    return maker


def _broker_news(maker: LogMaker, chance: random.Random) -> tuple[AnyCommand, ...]:
    broker = chance.randrange(1, BROKERS + 1)
    common: dict[str, Any] = {"cluster": CLUSTER, "by": "watcher@example", "reason": "heartbeat"}
    return (
        BrokerFailed(id=maker.new_id(), broker=broker, at_ms=1, **common),
        Blacklist(id=maker.new_id(), brokers=(broker,), **common),
        BrokerReturned(id=maker.new_id(), broker=broker, at_ms=2, **common),
    )


async def queued_log(count: int) -> LogMaker:
    """Make a log at whose end that many reassignments are active, all but a few of them waiting for a slot."""
    maker = LogMaker(count, Limits())
    for first in range(0, count, 1000):
        await maker.decide(maker.alter(range(first, min(first + 1000, count))))
    check(len(maker.state.reassignments) == count, "not every reassignment is active")
    return maker
