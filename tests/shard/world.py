"""One shard core, an in-memory log and a model cluster, driven by hand in virtual time."""

import itertools
from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeVar

from drover.agents.calls import carry_out, has_answer, look
from drover.errors import ClusterError
from drover.events.codec import decode_command, decode_record, encode_command, encode_record
from drover.events.commands import (
    TYPES_BY_TOPIC,
    Alter,
    AnyCommand,
    Cancel,
    Command,
    Freeze,
    PartitionName,
    PartitionTarget,
    Unfreeze,
)
from drover.events.partitions import TopicPartition
from drover.events.records import SCHEMA_VERSION, Acquire, AnyEvent, Batch, Genesis, Outcome, Record
from drover.events.topics import TopicNames
from drover.fold.log import RecordVerdict, ShardFold, ShardState
from drover.reconcile.contract import Reconciler
from drover.reconcile.messages import BytesSampled, Effect, Timestamp
from drover.shard.core import ShardCore
from drover.shard.inbox import Inbox
from drover.shard.messages import Arrival
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment
from drover.state.scheduling import Limits
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver

KindT = TypeVar("KindT", bound=Reconciler)
CLUSTER = "local"
TOPIC_IDS = ("id-alter", "id-cancel", "id-blacklist", "id-broker-failed")
TOPIC_INDEX = {kind: index for index, kinds in enumerate(TYPES_BY_TOPIC) for kind in kinds}
WALL_START_MS = 1_700_000_000_000
STEP_MS = 100


class Death(Enum):
    """Where in its turn the owner dies; a successor takes over at once."""

    BEFORE_APPEND = "before-append"
    AFTER_APPEND = "after-append"
    AFTER_EFFECTS = "after-effects"


class World:
    """The owner of a shard with one cluster; `crash` replaces it by a successor that knows only the log."""

    def __init__(self, *, brokers: int = 4, limits: Limits | None = None, **model: Any) -> None:
        racks = {broker: f"r{broker % 3}" for broker in range(1, brokers + 1)}
        self.model = ClusterModel(racks, **model)
        self.driver = SimulatedDriver(self.model, CLUSTER)
        self.limits = limits or Limits()
        self.clock_ahead_ms = 0
        self.log: list[bytes] = [encode_record(Genesis(schema=SCHEMA_VERSION, shards=1, shard=0))]
        self._decoded: list[Record] = []
        self.inbox = Inbox()
        self.offsets = [0, 0, 0, 0]
        self.held: list[Effect] = []
        self.hold_effects = False
        self.tokens = itertools.count(1)
        self.core = self._new_core()
        self.acquire()

    # -- life of the owner

    def _new_core(self) -> ShardCore:
        fold = ShardFold(0, 1)
        for offset, payload in enumerate(self.log):
            fold.fold(offset, payload)
        return ShardCore(fold, topic_ids=TOPIC_IDS, clusters={CLUSTER: self.limits}, topics=TopicNames())

    def acquire(self) -> None:
        token = f"token-{next(self.tokens)}".encode()
        fold = self.core.fold
        self.append(
            encode_record(
                Acquire(
                    schema=SCHEMA_VERSION, epoch=fold.epoch + 1, token=token, owner="w", group="drover", generation=1
                )
            )
        )
        self.core.own(token, self.now)

    def crash(self) -> None:
        """The owner dies; its successor replays the log and takes over."""
        self.inbox.give_back()
        arrivals = list(self.inbox)
        before = full_hash(self.core.fold.state)
        self.core = self._new_core()
        assert full_hash(self.core.fold.state) == before, "a replay gives another state than the live fold"
        self.held.clear()
        self.acquire()
        self.inbox.reset([arrivals_from(arrivals, index, self.offsets[index]) for index in range(4)])
        for arrival in arrivals:
            self.inbox.add(arrival)

    @property
    def now(self) -> Timestamp:
        """The present by the brokers' clocks, which may be wrong; the worker's own is right."""
        own = Timestamp(WALL_START_MS + self.model.now_ms, self.model.now_ms)
        return own.by(own.wall_ms + self.clock_ahead_ms)

    def append(self, payload: bytes) -> RecordVerdict:
        self.log.append(payload)
        folded = self.core.fold.fold(len(self.log) - 1, payload)
        assert folded is not None
        return folded.verdict

    # -- commands

    def put(self, command: Command) -> None:
        """Write a command to its topic."""
        self.put_raw(TOPIC_INDEX[type(command)], encode_command(command))

    def put_raw(self, topic_index: int, payload: bytes) -> None:
        offset = self.offsets[topic_index]
        self.offsets[topic_index] = offset + 1
        command = decode_command(payload)
        self.inbox.add(Arrival(topic_index, offset, self.now.wall_ms, payload, command))

    async def send(self, command: AnyCommand) -> Outcome:
        """Write a command and return what was recorded of it."""
        self.put(command)
        await self.turn()
        return next(outcome for outcome in reversed(self.outcomes()) if outcome.id == command.id)

    async def freeze(self) -> None:
        """Let nothing new start."""
        await self.send(Freeze(id=f"freeze-{next(_numbers)}", cluster=CLUSTER, by="ana", reason="test"))

    async def unfreeze(self) -> None:
        """Let work start again."""
        await self.send(Unfreeze(id=f"unfreeze-{next(_numbers)}", cluster=CLUSTER, by="ana", reason="test"))

    # -- the loop

    async def turn(self, die: Death | None = None) -> bool:
        """One pass of the shard's loop; whether anything came of it."""
        arrivals = self.inbox.take(self.core.next_offsets)
        unavailable: dict[str, str] = {}
        for cluster, partitions in self.core.facts_needed(arrivals).items():
            try:
                self.core.deliver(await self.driver.observe(partitions, with_min_isr=True))
            except ClusterError as error:
                unavailable[cluster] = str(error)
        proposed = self.core.propose(self.now, arrivals, unavailable)
        if die is Death.BEFORE_APPEND:
            self.crash()
            return True
        if proposed is not None:
            assert self.append(proposed.payload) is RecordVerdict.VALID
            if die is Death.AFTER_APPEND:
                self.crash()
                return True
            self.core.commit(proposed)
            self.inbox.settle(len(proposed.taken))
            self._hash_agrees()
        else:
            self.inbox.settle(0)
        effects = self.core.effects(self.now)
        if self.hold_effects:
            self.held += effects
            return proposed is not None
        ends = [await carry_out(self.driver, effect, lambda: self.now) for effect in effects]
        if die is Death.AFTER_EFFECTS:
            self.crash()
            return True
        for end in ends:
            self.core.deliver(end)
        return proposed is not None or any(has_answer(end) for end in ends)

    async def release_effects(self) -> None:
        """Make the calls that were held back."""
        held, self.held = self.held, []
        for effect in held:
            self.core.deliver(await carry_out(self.driver, effect, lambda: self.now))

    def _hash_agrees(self) -> None:
        """What was speculated is what the fold made of the record, once all records of the batch are there."""
        if self.core._proposals.has_rest:
            return
        assert full_hash(self.core._clusters.speculative) == full_hash(self.core.fold.state)

    async def look(self) -> None:
        """Let the observer look once."""
        try:
            seen = await look(self.driver, self.core, CLUSTER, lambda: self.now)
        except ClusterError:
            return
        if seen is not None:
            self.core.deliver(seen)

    async def measure(self) -> None:
        """Read the bytes on disk of what is being copied, or waits for it."""
        topics = self.core.cluster(CLUSTER).topics_to_sample(self.now)
        seen = await self.driver.log_directories(topics)
        self.core.deliver(BytesSampled(CLUSTER, self.now.monotonic_ms, seen.sizes, seen.directories))
        await self.settle()

    async def driver_sees(self, partitions: set[TopicPartition]) -> None:
        """Let the core hear of these partitions only."""
        self.core.deliver(await self.driver.observe(partitions, with_min_isr=True))
        await self.settle()

    async def settle(self) -> None:
        """Turn until there is nothing to do at this moment."""
        for _ in range(50):
            if not await self.turn():
                return
        raise AssertionError("the core never comes to rest")

    async def run(self, duration_ms: int) -> None:
        """Let virtual time pass, looking and turning at every step."""
        for _ in range(duration_ms // STEP_MS):
            self.model.advance(STEP_MS)
            await self.look()
            await self.settle()

    async def finish(self, within_ms: int = 60_000) -> None:
        """Run until nothing is under way."""
        await self.settle()
        for _ in range(within_ms // STEP_MS):
            if self.is_idle:
                return
            await self.run(STEP_MS)
        raise AssertionError(
            f"still under way: {list(self.state.reassignments.values())} {self.state.broker_throttles}"
        )

    # -- what is there to see

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, nothing waits and no throttle is held."""
        state = self.state
        under_way = state.reassignments or state.queue
        return not (under_way or state.broker_throttles or state.topic_throttles)

    @property
    def state(self) -> ClusterState:
        return self.core.fold.state.cluster(CLUSTER)

    def reassignment(self, key: TopicPartition) -> Reassignment:
        return self.state.reassignments[key]

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        partition = self.model.partition(key)
        assert partition is not None
        return partition.replicas

    def batches(self) -> list[Batch]:
        self._decoded += [decode_record(payload) for payload in self.log[len(self._decoded) :]]
        return [record for record in self._decoded if isinstance(record, Batch)]

    def outcomes(self) -> list[Outcome]:
        return [outcome for batch in self.batches() for outcome in batch.outcomes]

    def events(self) -> list[AnyEvent]:
        return [event for batch in self.batches() for event in batch.events]

    def tags(self, key: TopicPartition) -> list[str]:
        """The story of one partition in event names."""
        return [
            str(event.__struct_config__.tag)
            for event in self.events()
            if getattr(event, "topic", None) == key.topic and getattr(event, "partition", None) == key.partition
        ]


def full_hash(state: ShardState) -> bytes:
    """Hash a state; one that does not name the cluster yet is as good as one that holds it empty."""
    twin = state.copy()
    twin.cluster(CLUSTER)
    return twin.hash()


def arrivals_from(arrivals: Sequence[Arrival], topic_index: int, otherwise: int) -> int:
    """The first offset that is still there of one topic."""
    return min((arrival.offset for arrival in arrivals if arrival.topic_index == topic_index), default=otherwise)


_numbers = itertools.count(1)


def alter(targets: dict[TopicPartition, Sequence[int] | None], **fields: Any) -> Alter:
    fields.setdefault("id", f"alter-{next(_numbers)}")
    partitions = tuple(
        PartitionTarget(
            topic=key.topic, partition=key.partition, replicas=None if replicas is None else tuple(replicas)
        )
        for key, replicas in targets.items()
    )
    return Alter(cluster=CLUSTER, by="ana", reason="test", partitions=partitions, **fields)


def rollback(*keys: TopicPartition, **fields: Any) -> Cancel:
    return cancel(*keys, mode="rollback", **fields)


def stop(*keys: TopicPartition, **fields: Any) -> Cancel:
    return cancel(*keys, mode="stop", **fields)


def cancel(*keys: TopicPartition, **fields: Any) -> Cancel:
    fields.setdefault("id", f"cancel-{next(_numbers)}")
    if keys:
        fields["partitions"] = tuple(PartitionName(key.topic, key.partition) for key in keys)
    return Cancel(cluster=CLUSTER, by="bob", reason="test", **fields)


def reconciler(made: World, kind: type[KindT]) -> KindT | None:
    """One reconciler of the cluster; None while the core knows nothing of it."""
    if CLUSTER not in made.core._clusters.names():
        return None
    return next(one for one in made.core._clusters.of(CLUSTER)._reconcilers if isinstance(one, kind))
