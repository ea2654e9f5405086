"""A model cluster whose copies end when the benchmark says so, and the commands that keep its owner busy."""

import gc

from bench.owner import Owner, Turn
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.reconcile.messages import Identified, Moment
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver

CLUSTER = "prod"
WALL_START_MS = 1_800_000_000_000
LOOK_MS = 150
REPLICAS = 3
PER_ALTER = 1_000


class Site:
    """A cluster of so many partitions, spread evenly over brokers and topics; each is to move one broker further.

    Of the first `hot` partitions every one is to get a copy on the last broker instead, and on no other.
    """

    def __init__(self, *, brokers: int, topics: int, partitions: int, hot: int = 0) -> None:
        self.model = ClusterModel({broker: f"r{broker % 3}" for broker in range(1, brokers + 1)}, joins_by_itself=False)
        self.driver = SimulatedDriver(self.model, CLUSTER)
        self.ended = 0
        self._brokers = brokers
        self._hot = hot
        self._moving: dict[TopicPartition, None] = {}
        self._targets: dict[TopicPartition, tuple[int, ...]] = {}
        self._free: set[TopicPartition] = set()
        for topic in range(topics):
            self._create(f"topic-{topic}", range(topic, partitions, topics))
        self._targets = dict(sorted(self._targets.items(), key=lambda item: (item[0].partition, item[0].topic)))
        # A worker has no cluster in its memory: the collector must not count this one.
        gc.collect()
        gc.freeze()

    def _create(self, topic: str, places: range) -> None:
        layout: dict[int, tuple[int, ...]] = {}
        for number, place in enumerate(places):
            ring = self._brokers - 1 if self._hot else self._brokers
            replicas = tuple(1 + (place + step) % ring for step in range(REPLICAS))
            layout[number] = replicas
            key = TopicPartition(topic, number)
            if place < self._hot:
                self._targets[key] = (*replicas[1:], self._brokers)
            else:
                self._targets[key] = tuple(1 + broker % ring for broker in replicas)
                self._free.add(key)
        self.model.create_topic(topic, layout)

    def now(self) -> Moment:
        return Moment(WALL_START_MS + self.model.now_ms, self.model.now_ms)

    def is_free(self, key: TopicPartition) -> bool:
        """Whether a partition needs no copy on the broker that nearly all wait for."""
        return key in self._free

    def leads(self, broker: int) -> int:
        """Count the partitions that a broker leads."""
        return sum(partition.leader == broker for _, partition in self.model.each_partition())

    def identified(self, cluster: str) -> Identified:
        """Say that a cluster was looked at and that nothing moves there."""
        live = self.model.live_brokers()
        return Identified(cluster, f"kafka-{cluster}", live, self.model.now_ms, {})

    async def alter_all(self, owner: Owner, throttle: int | None = None) -> None:
        """Ask for every move, in plans of 1,000."""
        targets = [
            PartitionTarget(topic=key.topic, partition=key.partition, replicas=replicas)
            for key, replicas in self._targets.items()
        ]
        for first in range(0, len(targets), PER_ALTER):
            alter = Alter(
                id=f"alter-{first}",
                cluster=CLUSTER,
                by="ana@example",
                reason="capacity",
                partitions=tuple(targets[first : first + PER_ALTER]),
                throttle_bytes_per_second=throttle,
            )
            await owner.decide(alter)

    async def step(self, owner: Owner, finishing: int) -> list[Turn]:
        """Let the oldest copies end, look at the cluster once, and decide what follows."""
        moves = self.model.moves()
        for key in moves:
            self._moving.setdefault(key)
        for key in tuple(self._moving)[:finishing]:
            del self._moving[key]
            self.ended += 1
            for broker in moves[key].adding:
                self.model.join_isr(key, broker)
        await owner.look(CLUSTER)
        turns = await owner.settle()
        self.model.advance(LOOK_MS)
        return turns
