"""Makes event logs as a worker would, in memory: the real shard core beside a model of a cluster, in virtual time."""

import random
from collections.abc import Sequence
from typing import Any

from bench.owner import CLUSTER, LOOK_MS, WALL_START_MS, Owner
from bench.results import check
from drover.events.commands import Alter, AnyCommand, Blacklist, BrokerFailed, BrokerReturned, Cancel, PartitionTarget
from drover.fold.log import ShardFold
from drover.reconcile.messages import Timestamp
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver

TOPIC = "orders"
BROKERS = 20
REPLICAS = 3
MAX_STEPS = 10_000


class LogMaker:
    """One shard with one owner and one cluster; `log` grows with every decision."""

    def __init__(self, partitions: int, limits: Limits) -> None:
        self.model = ClusterModel({broker: f"r{broker % 3}" for broker in range(1, BROKERS + 1)})
        self.layout = {number: layout(number) for number in range(partitions)}
        self.model.create_topic(TOPIC, self.layout)
        self._owner = Owner({CLUSTER: limits}, {CLUSTER: SimulatedDriver(self.model, CLUSTER)}, self._now)
        self._ids = 0

    @property
    def log(self) -> list[bytes]:
        return self._owner.log

    @property
    def events(self) -> int:
        return self._owner.events

    @property
    def fold(self) -> ShardFold:
        return self._owner.fold

    @property
    def state(self) -> ClusterState:
        return self._owner.state(CLUSTER)

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
        await self._owner.decide(*commands)

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

    # -- time

    async def step(self) -> None:
        """Look at the cluster once, decide what follows, then let it copy."""
        await self._owner.look(CLUSTER)
        await self._owner.settle()
        self.model.advance(LOOK_MS)

    async def finish(self) -> None:
        """Go on until nothing is under way."""
        for _ in range(MAX_STEPS):
            state = self.state
            if not (state.reassignments or state.broker_throttles or state.topic_throttles):
                return
            await self.step()
        check(False, "the model's reassignments never end")

    def _now(self) -> Timestamp:
        return Timestamp(WALL_START_MS + self.model.now_ms, self.model.now_ms)


def layout(number: int) -> tuple[int, ...]:
    """Spread a partition's replicas over the ring of brokers."""
    return tuple(1 + (number + place) % BROKERS for place in range(REPLICAS))


async def varied_log(events: int, pause_ms: int = 0) -> LogMaker:
    """Make a log of at least that many events: large, middling and single moves, throttles, rollbacks, broker news.

    A thousand partitions move in each round, and the next round comes after a pause.
    """
    partitions = 2000
    maker = LogMaker(partitions, Limits(max_partitions_in_flight=1250, max_moves_per_broker=60))
    chance = random.Random(7)
    while maker.events < events:
        numbers = chance.sample(range(partitions), 1000)
        undone = maker.alter(numbers[500:550])
        await maker.decide(undone)
        await maker.decide(maker.alter(numbers[:500]))
        await maker.decide(maker.alter(numbers[550:800], throttle=50_000_000))
        await maker.roll_back(undone)
        for number in numbers[800:]:
            await maker.decide(maker.alter([number]))
            if number % 4 == 0:
                await maker.step()
        await maker.decide(*_broker_news(maker, chance))
        await maker.finish()
        maker.model.advance(pause_ms)
    return maker


def _broker_news(maker: LogMaker, chance: random.Random) -> tuple[AnyCommand, ...]:
    broker = chance.randrange(1, BROKERS + 1)
    common: dict[str, Any] = {"cluster": CLUSTER, "by": "watcher@example", "reason": "heartbeat"}
    return (
        BrokerFailed(id=maker.new_id(), broker=broker, at_ms=1, **common),
        Blacklist(id=maker.new_id(), brokers=(broker,), **common),
        BrokerReturned(id=maker.new_id(), broker=broker, at_ms=2, **common),
    )
