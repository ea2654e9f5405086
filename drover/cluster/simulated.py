"""The simulated twin of the real driver: the same port on a `ClusterModel`, with a network's faults to switch on."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from msgspec.structs import replace

from drover.cluster.agreement import agreed_moves, agreed_partitions
from drover.cluster.controller_model import Election
from drover.cluster.model import ClusterModel
from drover.cluster.port import (
    MAX_PARTITIONS_PER_ALTER,
    MAX_PARTITIONS_PER_ELECTION,
    AlterRequest,
    ClusterIdentity,
    Listing,
    SetBrokerRates,
    ThrottleChange,
)
from drover.cluster.throttle_lists import list_operations, parse_rates, parse_throttled, rate_operations
from drover.errors import ClusterUnavailableError, OutcomeUnknownError
from drover.facts import (
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerRates,
    CallResult,
    Observation,
    PartitionFacts,
    Survey,
    ThrottledReplicas,
)
from drover.inventory import Inventory, LogDirectory, RegisteredBroker, named_brokers
from drover.traits import BrokerVersion, version_of
from events.partitions import TopicPartition

BROKER_NOT_AVAILABLE = 8
DISK_BYTES = 1 << 40
OUTCOME_UNKNOWN_CODES = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT})

Answer = TypeVar("Answer")


class Loss(Enum):
    """The half of the next call that gets lost."""

    REQUEST = "request"
    ANSWER = "answer"


class SimulatedDriver:
    """A `ClusterDriver` on a model; its monotonic clock is the model's.

    Faults, all off at first: `unreachable` makes every call fail before anything happened; `lose_next` loses the
    request or the answer of one call; `refuse_next` gives one partition of the next alter that names it a code of
    your choice instead of doing it, `refuse_next_alter` does so with a whole call, as NOT_CONTROLLER would;
    `freeze_metadata` makes describes show an old picture while lists stay true, `lag_metadata` one that is always
    a little old. A model without a controller answers only what brokers know by themselves.
    """

    def __init__(self, model: ClusterModel, cluster_name: str = "simulated") -> None:
        self.model = model
        self.cluster_name = cluster_name
        self.unreachable = False
        self._loss: Loss | None = None
        self._refusals: dict[TopicPartition, CallResult] = {}
        self._whole_refusal: CallResult | None = None
        self._metadata_lag_ms = 0
        self._frozen: dict[TopicPartition, PartitionFacts] | None = None

    # -- faults -------------------------------------------------------------------------------------------------------

    def lose_next(self, loss: Loss) -> None:
        """Lose the next call's request (nothing happens) or its answer (it happens, the answer is lost)."""
        self._loss = loss

    def refuse_next(self, partition: TopicPartition, result: CallResult) -> None:
        """Answer `result` for this partition in the next alter that names it, without doing anything."""
        self._refusals[partition] = result

    def refuse_next_alter(self, result: CallResult) -> None:
        """Answer `result` for the whole next alter, without doing anything.

        As with the real driver, an answer that leaves open what happened is an error, and so is NOT_CONTROLLER, with
        which nothing has happened.
        """
        self._whole_refusal = result

    def lag_metadata(self, lag_ms: int) -> None:
        """From now on describes are answered by a broker that is so far behind the controller; 0 is not at all."""
        self.model.remember_metadata(max(lag_ms, self._metadata_lag_ms))
        self._metadata_lag_ms = lag_ms

    def freeze_metadata(self) -> None:
        """From now on describes show the partitions as they are now."""
        self._frozen = {
            partition: facts
            for name, topic in self.model.topics.items()
            for partition in (TopicPartition(name, number) for number in topic.partitions)
            if (facts := self.model.facts(partition)) is not None
        }

    def thaw_metadata(self) -> None:
        """Describes are true again."""
        self._frozen = None

    # -- the port -----------------------------------------------------------------------------------------------------

    async def identify(self) -> ClusterIdentity:
        """See `ClusterDriver.identify`."""
        return await self._read(self._identity)

    async def list_moves(self) -> Listing:
        """See `ClusterDriver.list_moves`."""
        started_ms = self.model.now_ms
        return Listing(started_ms, await self._read(self.model.moves, of_controller=True))

    async def observe(
        self, partitions: Collection[TopicPartition], *, since: Listing | None = None, with_min_isr: bool = False
    ) -> Observation:
        """See `ClusterDriver.observe`; Describe and the second List happen at one moment."""
        before = await self.list_moves() if since is None else since
        return await self._read(
            lambda: self._observation(partitions, before, with_min_isr=with_min_isr), of_controller=True
        )

    async def partition_counts(self, topics: Collection[str]) -> Mapping[str, int | None]:
        """See `ClusterDriver.partition_counts`."""
        known = self.model.topics
        return await self._read(
            lambda: {name: len(known[name].partitions) if name in known else None for name in topics}
        )

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        """See `ClusterDriver.alter`."""
        assert len(requests) <= MAX_PARTITIONS_PER_ALTER, f"{len(requests)} partitions in one alter"
        assert len({request.partition for request in requests}) == len(requests), "a partition is named twice"
        return await self._change(lambda: self._alter(requests))

    async def survey(self) -> Survey:
        """See `ClusterDriver.survey`."""
        started_ms = self.model.now_ms
        return await self._read(lambda: self._survey(started_ms))

    async def elect_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        """See `ClusterDriver.elect_leaders`."""
        assert len(partitions) <= MAX_PARTITIONS_PER_ELECTION, f"{len(partitions)} partitions in one election"
        return await self._change(
            lambda: {one: CallResult(self.model.elect_leader(one, Election.PREFERRED)) for one in sorted(partitions)}
        )

    async def broker_versions(self) -> Mapping[int, BrokerVersion]:
        """See `ClusterDriver.broker_versions`; what the model mimics, as its brokers would say it."""
        return await self._read(lambda: dict.fromkeys(self.model.live_brokers(), version_of(self.model.traits)))

    async def replica_bytes(self, topics: Collection[str]) -> Mapping[TopicPartition, Mapping[int, int]]:
        """See `ClusterDriver.replica_bytes`."""
        return await self._read(lambda: self._replica_bytes(topics))

    async def inventory(self) -> Inventory:
        """See `ClusterDriver.inventory`; every live broker has one directory of `DISK_BYTES`."""
        return await self._read(self._inventory, of_controller=True)

    async def broker_rates(self, brokers: Collection[int]) -> Mapping[int, BrokerRates]:
        """See `ClusterDriver.broker_rates`."""
        live = self.model.live_brokers
        return await self._read(
            lambda: {broker: parse_rates(self.model.brokers[broker].configs) for broker in brokers if broker in live()}
        )

    async def throttled_replicas(self, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        """See `ClusterDriver.throttled_replicas`."""
        known = self.model.topics
        return await self._read(
            lambda: {name: parse_throttled(known[name].configs) for name in topics if name in known}
        )

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        """See `ClusterDriver.change_throttles`."""
        return await self._change(lambda: {change: self._change_throttle(change) for change in changes})

    async def close(self) -> None:
        """See `ClusterDriver.close`; there is nothing to close."""

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _read(self, answer: Callable[[], Answer], *, of_controller: bool = False) -> Answer:
        loss = await self._next_loss()
        if of_controller and not self.model.controller_alive:
            raise ClusterUnavailableError(f"cluster {self.cluster_name} has no controller (simulated)")
        if loss is not None:
            raise ClusterUnavailableError(f"cluster {self.cluster_name} did not answer (simulated)")
        return answer()

    async def _change(self, change: Callable[[], Answer]) -> Answer:
        loss = await self._next_loss()
        if loss is Loss.REQUEST:
            raise ClusterUnavailableError(f"cluster {self.cluster_name} was not reached (simulated)")
        if not self.model.controller_alive:
            raise OutcomeUnknownError(f"cluster {self.cluster_name} had no controller for the call (simulated)")
        answer = change()
        if loss is Loss.ANSWER:
            raise OutcomeUnknownError(f"cluster {self.cluster_name} took the call but its answer was lost (simulated)")
        return answer

    async def _next_loss(self) -> Loss | None:
        await asyncio.sleep(0)  # a driver's call is never atomic: others run in between
        loss, self._loss = self._loss, None
        return Loss.REQUEST if self.unreachable else loss

    def _identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.model.kafka_cluster_id, self._racks())

    def _racks(self) -> dict[int, str | None]:
        return {broker: self.model.brokers[broker].rack for broker in self.model.live_brokers()}

    def _facts(self, partition: TopicPartition) -> PartitionFacts | None:
        if self._frozen is not None:
            return self._frozen.get(partition)
        return self.model.facts(partition, self._metadata_lag_ms)

    def _observation(
        self, partitions: Collection[TopicPartition], before: Listing, *, with_min_isr: bool
    ) -> Observation:
        after = self.model.moves()
        described = {partition: self._facts(partition) for partition in partitions}
        topics = sorted({partition.topic for partition in partitions} & self.model.topics.keys())
        return Observation(
            cluster=self.cluster_name,
            kafka_cluster_id=self.model.kafka_cluster_id,
            started_ms=before.started_ms,
            ended_ms=self.model.now_ms,
            live_brokers=self.model.live_brokers(),
            racks=self._racks(),
            moves=agreed_moves(before.moves, after),
            partitions=agreed_partitions(partitions, before.moves, described, after),
            min_isr={name: self.model.min_isr(name) for name in topics} if with_min_isr else {},
        )

    def _inventory(self) -> Inventory:
        model, moves = self.model, self.model.moves()
        partitions = {
            partition: replace(facts, move=moves.get(partition))
            for partition, _ in model.each_partition()
            if (facts := self._facts(partition)) is not None
        }
        held = self._replica_bytes(model.topics)
        used: Counter[int] = Counter()
        for sizes in held.values():
            used.update(sizes)
        live = model.live_brokers()
        registered = {
            broker: RegisteredBroker(broker, state.rack, broker in live, self._directories(broker, used[broker]))
            for broker, state in model.brokers.items()
        }
        return Inventory(
            kafka_cluster_id=model.kafka_cluster_id,
            seen_ms=model.now_ms,
            brokers=named_brokers(registered, partitions),
            partitions=partitions,
            replica_bytes=held,
        )

    def _directories(self, broker: int, used_bytes: int) -> tuple[LogDirectory, ...] | None:
        if broker not in self.model.live_brokers():
            return None
        return (LogDirectory("/simulated", DISK_BYTES, DISK_BYTES - used_bytes),)

    def _survey(self, started_ms: int) -> Survey:
        return Survey(
            cluster=self.cluster_name,
            kafka_cluster_id=self.model.kafka_cluster_id,
            started_ms=started_ms,
            ended_ms=self.model.now_ms,
            live_brokers=self.model.live_brokers(),
            partitions={
                key: facts for key, _ in self.model.each_partition() if (facts := self._facts(key)) is not None
            },
            racks=self._racks(),
        )

    def _alter(self, requests: Sequence[AlterRequest]) -> dict[TopicPartition, CallResult]:
        if self._whole_refusal is not None:
            whole, self._whole_refusal = self._whole_refusal, None
            if whole.code == NOT_CONTROLLER:
                raise ClusterUnavailableError(f"no controller of cluster {self.cluster_name} took it (simulated)")
            if whole.code in OUTCOME_UNKNOWN_CODES:
                raise OutcomeUnknownError(
                    f"cluster {self.cluster_name} answered with Kafka error {whole.code} (simulated)"
                )
            return {request.partition: whole for request in requests}
        results: dict[TopicPartition, CallResult] = {}
        for request in requests:
            refusal = self._refusals.pop(request.partition, None)
            results |= self.model.alter([request]) if refusal is None else {request.partition: refusal}
        return results

    def _replica_bytes(self, topics: Collection[str]) -> dict[TopicPartition, dict[int, int]]:
        known = self.model.topics
        return {
            partition: self.model.held_bytes(partition)
            for name in sorted(set(topics) & known.keys())
            for partition in (TopicPartition(name, number) for number in known[name].partitions)
        }

    def _change_throttle(self, change: ThrottleChange) -> CallResult:
        if isinstance(change, SetBrokerRates):
            if change.broker not in self.model.live_brokers():
                return CallResult(BROKER_NOT_AVAILABLE, f"broker {change.broker} is not among the live brokers")
            return self.model.alter_broker_configs(change.broker, rate_operations(change.rates))
        topic = self.model.topics.get(change.topic)
        if topic is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"topic {change.topic} does not exist")
        operations = list_operations(change, parse_throttled(topic.configs))
        if isinstance(operations, CallResult):
            return operations
        return self.model.alter_topic_configs(change.topic, operations)
