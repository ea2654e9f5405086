"""A seeded random walk of the real shard core beside a model cluster, for the log that it leaves."""

import random
from typing import Any

from drover.cluster.port import AlterRequest
from drover.events.commands import Blacklist, BrokerFailed, BrokerReturned, Cancel, Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.state.plans import PlanStatus
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter, rollback

BROKERS = 6
TOPICS = ("orders", "payments")
PARTITIONS = tuple(TopicPartition(topic, number) for topic in TOPICS for number in range(3))


class Walk:
    """One world and one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(
            brokers=BROKERS,
            limits=Limits(
                max_partitions_in_flight=self.random.choice([2, 4, 1250]),
                max_moves_per_broker=self.random.choice([1, 2, 5]),
                max_replicas_per_step=self.random.choice([1, 1, 2]),
            ),
            copy_bytes_per_second=self.random.choice([None, 400_000]),
        )
        for topic in TOPICS:
            lists = {number: [(number + place) % BROKERS + 1 for place in range(3)] for number in range(3)}
            self.world.model.create_topic(topic, lists, partition_bytes=300_000)
        self._sent = 0

    async def step(self) -> None:
        """Let somebody do something, and some time pass."""
        self._sent += 1
        weighed = {self._alter: 20, self._cancel: 12, self._freeze: 3, self._news: 4, self._broker: 8, self._others: 3}
        self.random.choices(list(weighed), list(weighed.values()))[0]()
        for _ in range(self.random.choice([1, 1, 2, 4, 9])):
            await self._pass_time()
        if self.random.random() < 0.08:
            self.world.crash()

    async def heal(self) -> None:
        """Let everything end."""
        for broker, state in self.world.model.brokers.items():
            if not state.alive:
                self.world.model.start_broker(broker)
        self.world.put(Unfreeze(id="thaw", cluster=CLUSTER, by="ana", reason="r"))
        for _ in range(600):
            await self._pass_time()
            if self.world.is_idle:
                return

    async def _pass_time(self) -> None:
        self.world.model.advance(100)
        await self.world.look()
        await self.world.settle()

    def _alter(self) -> None:
        chosen = self.random.sample(PARTITIONS, self.random.choice([1, 1, 2, 3, 6]))
        targets = {key: self.random.sample(range(1, BROKERS + 1), self.random.choice([2, 3, 3, 4])) for key in chosen}
        fields: dict[str, object] = {"id": f"alter{self._sent}", "queue": self.random.random() < 0.3}
        if self.random.random() < 0.4:
            fields["throttle_bytes_per_second"] = self.random.choice([100_000, 250_000])
        plans = sorted(name for name, plan in self.world.state.plans.items() if plan.status is PlanStatus.OPEN)
        if plans and self.random.random() < 0.3:
            fields["plan"] = self.random.choice(plans)
        self.world.put(alter(dict(targets), **fields))

    def _cancel(self) -> None:
        command = rollback(*self.random.sample(PARTITIONS, 2), id=f"cancel{self._sent}")
        if self.random.random() < 0.3:
            command = Cancel(
                id=command.id,
                cluster=CLUSTER,
                by="bob",
                reason="test",
                mode="stop",
                topics=(self.random.choice(TOPICS),),
            )
        self.world.put(command)

    def _freeze(self) -> None:
        kind = self.random.choice([Freeze, Unfreeze])
        self.world.put(kind(id=f"freeze{self._sent}", cluster=CLUSTER, by="ana", reason="r"))

    def _news(self) -> None:
        broker = self.random.randrange(1, BROKERS + 1)
        common: dict[str, Any] = {"id": f"news{self._sent}", "cluster": CLUSTER, "by": "watch", "reason": "r"}
        self.world.put(
            self.random.choice(
                [
                    Blacklist(brokers=(broker,), **common),
                    Blacklist(brokers=(), **common),
                    BrokerFailed(broker=broker, at_ms=self._sent, **common),
                    BrokerReturned(broker=broker, at_ms=self._sent, **common),
                ]
            )
        )

    def _broker(self) -> None:
        brokers = self.world.model.brokers
        dead = [broker for broker, state in brokers.items() if not state.alive]
        if dead:
            self.world.model.start_broker(dead[0])
        else:
            self.world.model.stop_broker(self.random.choice(list(brokers)))

    def _others(self) -> None:
        key = self.random.choice(PARTITIONS)
        replicas = tuple(self.random.sample(range(1, BROKERS + 1), 3))
        self.world.model.alter([AlterRequest(key, replicas)])
