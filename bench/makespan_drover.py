"""The real shard core on the model of ports: it drives a model cluster whose copies the network carries."""

import math

from bench.makespan_model import Instance, Network
from bench.owner import CLUSTER, LOOK_MS, WALL_START_MS, Owner
from bench.results import check
from drover.agents.clusters import SAMPLE_MS
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.reconcile.messages import BytesSampled, Timestamp
from drover.state.scheduling import Limits
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver

LONGEST_S = 100_000
# From the decision to the first byte: the call, and the follower's first fetch.
CALL_S = 0.05


class Drive:
    """One instance as Drover moves it: one plan, throttled to the rate of a port."""

    def __init__(self, instance: Instance, limits: Limits) -> None:
        # The model copies nothing by itself: the network does.
        self.model = ClusterModel(instance.racks, copy_bytes_per_second=0, joins_by_itself=False)
        self.driver = SimulatedDriver(self.model, CLUSTER)
        self.network = Network(instance)
        self.instance = instance
        self.owner = Owner({CLUSTER: limits}, {CLUSTER: self.driver}, self.now)
        self._shifts = {shift.key: shift for shift in instance.shifts}
        self._copying: set[tuple[TopicPartition, int]] = set()
        self._sampled_ms = -SAMPLE_MS
        self.last_s = 0.0
        for topic in sorted({shift.key.topic for shift in instance.shifts}):
            layout = {key.partition: shift.before for key, shift in self._shifts.items() if key.topic == topic}
            self.model.create_topic(topic, layout)
        for key, shift in self._shifts.items():
            self.model.write(key, int(shift.bytes))

    def now(self) -> Timestamp:
        return Timestamp(WALL_START_MS + self.model.now_ms, self.model.now_ms)

    async def run(self) -> float:
        """Submit the plan and drive it to its end; returns the seconds that it took."""
        await self.owner.look(CLUSTER)
        await self.owner.settle()
        # A worker reads sizes all the time, from before a plan arrives.
        await self._sample()
        await self.owner.decide(self._alter())
        state = self.owner.state(CLUSTER)
        while state.reassignments:
            await self._sample()
            await self.owner.look(CLUSTER)
            await self.owner.settle()
            self._follow()
            self._pass_time()
            check(self.network.now_s < LONGEST_S, f"{self.instance.name} does not end")
        plan = state.plans["plan"]
        check(plan.completed == len(self._shifts), f"{self.instance.name}: not everything was moved")
        return self.last_s

    def _alter(self) -> Alter:
        partitions = tuple(
            PartitionTarget(topic=key.topic, partition=key.partition, replicas=shift.after)
            for key, shift in self._shifts.items()
        )
        return Alter(
            id="plan",
            cluster=CLUSTER,
            by="ana@example",
            reason="benchmark",
            plan="plan",
            partitions=partitions,
            throttle_bytes_per_second=int(self.instance.port),
        )

    async def _sample(self) -> None:
        """Read the sizes of partitions that wait or are copied, as often as a worker does."""
        now_ms = self.model.now_ms
        if now_ms - self._sampled_ms < SAMPLE_MS:
            return
        topics = self.owner.core.cluster(CLUSTER).topics_to_sample(self.now())
        if topics:
            self._sampled_ms = now_ms
            seen = await self.driver.log_directories(topics)
            self.owner.deliver(BytesSampled(CLUSTER, now_ms, seen.sizes, seen.directories))

    def _follow(self) -> None:
        """Begin the copies that Kafka was asked for since."""
        for key, move in self.model.moves().items():
            facts = self.model.facts(key)
            in_sync = () if facts is None else facts.isr
            begun = [broker for broker in move.adding if (key, broker) not in self._copying and broker not in in_sync]
            if begun:
                self._copying.update((key, broker) for broker in begun)
                self.network.start(self._shifts[key], begun, self.network.now_s + CALL_S)

    def _pass_time(self) -> None:
        """Go on to the next look.

        Looks before which nothing ends are left out, except the last one before it, and those that a start waits for.
        """
        wake_ms = self.owner.core.wake_at_ms(self.now())
        event_s = self.network.next_event_s
        state = self.owner.state(CLUSTER)
        wanted = self.owner.core.cluster(CLUSTER).attention(self.now(), {}).partitions
        is_asked = any(key in state.moves.pending or key in state.moves.before_step for key in wanted)
        looks = 1 if is_asked or math.isinf(event_s) else int((event_s - self.network.now_s) * 1000 // LOOK_MS)
        step_ms = max(1, looks) * LOOK_MS
        if wake_ms is not None:
            step_ms = min(step_ms, max(1, wake_ms - self.model.now_ms))
        self.model.advance(step_ms)
        until_s = self.model.now_ms / 1000
        while self.network.now_s < until_s:
            for key, broker in self.network.advance(min(until_s, self.network.next_event_s)):
                self._copying.remove((key, broker))
                self.model.join_isr(key, broker)
                self.last_s = self.network.now_s
