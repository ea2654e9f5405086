"""The simulated driver: the real driver's port on a `ClusterModel`, with faults of a network to switch on."""

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import cycle, repeat
from typing import TypeVar

from msgspec.structs import replace

from drover.cluster.agreement import agreed_moves, agreed_partitions, with_known_min_isr
from drover.cluster.port import (
    MAX_PARTITIONS_PER_ALTER,
    MAX_PARTITIONS_PER_ELECTION,
    AlterRequest,
    ClusterIdentity,
    Listing,
    SetBrokerRates,
    ThrottleChange,
)
from drover.cluster.throttle_lists import (
    left_out,
    list_operations,
    parse_rates,
    parse_throttled,
    rate_operations,
    resource_of,
    waves,
)
from drover.errors import ClusterUnavailableError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
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
from drover.inventory import Inventory, LogDirectories, LogDirectory, RegisteredBroker, named_brokers
from drover.testing.controller_model import Election
from drover.testing.metadata_image import MetadataImage
from drover.testing.model import ClusterModel
from drover.traits import BrokerVersion, version_of

BROKER_NOT_AVAILABLE = 8
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
    `freeze_metadata` makes brokers answer from an old metadata image while the controller stays up to date,
    `lag_metadata` makes every describe a little old. `config_refusals` are the answers to every change of the throttle
    settings of a resource, ("broker", "3") or ("topic", "orders"), until they are taken out. A model without a
    controller answers only what brokers know by themselves.
    """

    def __init__(self, model: ClusterModel, cluster_name: str = "simulated") -> None:
        self.model = model
        self.cluster_name = cluster_name
        self.unreachable = False
        self.config_refusals: dict[tuple[str, str], CallResult] = {}
        self._loss: Loss | None = None
        self._refusals: dict[TopicPartition, CallResult] = {}
        self._whole_refusal: CallResult | None = None
        self._metadata_lag_ms = 0
        self._frozen: MetadataImage | None = None
        self._stale_replies: Iterator[bool] = repeat(True)

    # -- faults -------------------------------------------------------------------------------------------------------

    def lose_next(self, loss: Loss) -> None:
        """Lose the next call's request (nothing happens) or its answer (it happens, the answer is lost)."""
        self._loss = loss

    def refuse_next(self, partition: TopicPartition, result: CallResult) -> None:
        """Answer `result` for this partition in the next alter that names it, without doing anything."""
        self._refusals[partition] = result

    def refuse_next_alter(self, result: CallResult) -> None:
        """Answer `result` for the whole next alter, without doing anything.

        As with the real driver, an answer with an unknown outcome is an error, and so is NOT_CONTROLLER, which had no
        effect.
        """
        self._whole_refusal = result

    def lag_metadata(self, lag_ms: int) -> None:
        """Let describes be answered by a broker that lags behind the controller by `lag_ms` from now on."""
        self.model.remember_metadata(max(lag_ms, self._metadata_lag_ms))
        self._metadata_lag_ms = lag_ms

    def freeze_metadata(self, stale: Sequence[bool] = (True,)) -> None:
        """Let brokers answer from their present metadata image from now on.

        `stale` says for which requests, and repeats; False is a request that an up-to-date broker answers.
        """
        self._frozen, self._stale_replies = MetadataImage.of(self.model), cycle(stale)

    def thaw_metadata(self) -> None:
        """Let all brokers be up to date again."""
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
        return await self._read(lambda: self._partition_counts(topics))

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
            lambda: {key: CallResult(self.model.elect_leader(key, Election.PREFERRED)) for key in sorted(partitions)}
        )

    async def broker_versions(self) -> Mapping[int, BrokerVersion]:
        """See `ClusterDriver.broker_versions`; the version that the model mimics."""
        return await self._read(lambda: dict.fromkeys(self.model.live_brokers(), version_of(self.model.traits)))

    async def log_directories(self, topics: Collection[str]) -> LogDirectories:
        """See `ClusterDriver.log_directories`; `ModelDirectories` says which there are."""
        return await self._read(lambda: LogDirectories(self._replica_bytes(topics), self._directories()))

    async def inventory(self) -> Inventory:
        """See `ClusterDriver.inventory`; `ModelDirectories` says which log directories there are."""
        return await self._read(self._inventory, of_controller=True)

    async def broker_rates(self, brokers: Collection[int]) -> Mapping[int, BrokerRates]:
        """See `ClusterDriver.broker_rates`."""
        return await self._read(lambda: self._broker_rates(brokers))

    async def throttled_replicas(self, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        """See `ClusterDriver.throttled_replicas`."""
        return await self._read(lambda: self._throttled_replicas(topics))

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        """See `ClusterDriver.change_throttles`."""
        results: dict[ThrottleChange, CallResult] = {}
        for wave in waves(changes):
            try:
                results |= await self._change(functools.partial(self._change_wave, wave, results))
            except ClusterUnavailableError as error:
                if any(answer.accepted for answer in results.values()):
                    raise OutcomeUnknownError(str(error)) from error
                raise
        return results

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
        await asyncio.sleep(0)  # a driver's call is not atomic: other tasks run in between
        loss, self._loss = self._loss, None
        return Loss.REQUEST if self.unreachable else loss

    def _identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.model.kafka_cluster_id, self._racks(self._stale_image()))

    def _live(self, image: MetadataImage | None) -> tuple[int, ...]:
        return self.model.live_brokers() if image is None else image.live_brokers

    def _racks(self, image: MetadataImage | None) -> dict[int, str | None]:
        return {broker: self.model.brokers[broker].rack for broker in self._live(image)}

    def _stale_image(self) -> MetadataImage | None:
        """Return the image from which the next request is answered; None if that broker is up to date."""
        return self._frozen if self._frozen is not None and next(self._stale_replies) else None

    def _facts(self, partition: TopicPartition, image: MetadataImage | None) -> PartitionFacts | None:
        if image is not None:
            return image.partitions.get(partition)
        return self.model.facts(partition, self._metadata_lag_ms)

    def _partition_counts(self, topics: Collection[str]) -> dict[str, int | None]:
        image = self._stale_image()
        model_topics = self.model.topics
        counts = {name: len(topic.partitions) for name, topic in model_topics.items()}
        if image is not None:
            counts = dict(Counter(partition.topic for partition in image.partitions))
        return {name: counts.get(name) for name in topics}

    def _broker_rates(self, brokers: Collection[int]) -> dict[int, BrokerRates]:
        image, live = self._stale_image(), self.model.live_brokers()
        return {
            broker: parse_rates(self.model.brokers[broker].configs) if image is None else image.rates[broker]
            for broker in brokers
            if broker in live
        }

    def _throttled_replicas(self, topics: Collection[str]) -> dict[str, ThrottledReplicas]:
        image = self._stale_image()
        if image is not None:
            return {name: image.throttled_replicas[name] for name in topics if name in image.throttled_replicas}
        model_topics = self.model.topics
        return {name: parse_throttled(model_topics[name].configs) for name in topics if name in model_topics}

    def _min_isrs(self, topics: Collection[str]) -> dict[str, int]:
        image = self._stale_image()
        if image is not None:
            return {name: image.min_isr[name] for name in topics if name in image.min_isr}
        return {name: self.model.min_isr(name) for name in topics if name in self.model.topics}

    def _observation(
        self, partitions: Collection[TopicPartition], before: Listing, *, with_min_isr: bool
    ) -> Observation:
        after = self.model.moves()
        image = self._stale_image()
        described = {partition: self._facts(partition, image) for partition in partitions}
        existing = sorted({partition.topic for partition, facts in described.items() if facts is not None})
        agreed = agreed_partitions(partitions, before.moves, described, after)
        min_isr = self._min_isrs(existing) if with_min_isr else {}
        return Observation(
            cluster=self.cluster_name,
            kafka_cluster_id=self.model.kafka_cluster_id,
            started_ms=before.started_ms,
            ended_ms=self.model.now_ms,
            live_brokers=self._live(image),
            racks=self._racks(image),
            moves=agreed_moves(before.moves, after),
            partitions=with_known_min_isr(agreed, min_isr) if with_min_isr else agreed,
            min_isr=min_isr,
        )

    def _inventory(self) -> Inventory:
        model, moves = self.model, self.model.moves()
        partitions = {
            key: replace(facts, move=moves.get(key)) for key, facts in self._everything(self._stale_image()).items()
        }
        live, directories = model.live_brokers(), self._directories()
        registered = {
            broker: RegisteredBroker(broker, state.rack, broker in live, directories.get(broker))
            for broker, state in model.brokers.items()
            if state.registered and not state.lacks_listener
        }
        return Inventory(
            kafka_cluster_id=model.kafka_cluster_id,
            seen_ms=model.now_ms,
            brokers=named_brokers(registered, partitions),
            partitions=partitions,
            replica_bytes=self._replica_bytes(model.topics),
            registered_brokers=model.registered_brokers(),
        )

    def _directories(self) -> dict[int, tuple[LogDirectory, ...]]:
        used: Counter[int] = Counter()
        for sizes in self._replica_bytes(self.model.topics).values():
            used.update(sizes)
        return {broker: self.model.directories.of(broker, used[broker]) for broker in self.model.live_brokers()}

    def _survey(self, started_ms: int) -> Survey:
        image = self._stale_image()
        return Survey(
            cluster=self.cluster_name,
            kafka_cluster_id=self.model.kafka_cluster_id,
            started_ms=started_ms,
            ended_ms=self.model.now_ms,
            live_brokers=self._live(image),
            partitions=self._everything(image),
            racks=self._racks(image),
            registered_brokers=self.model.registered_brokers(),
        )

    def _everything(self, image: MetadataImage | None) -> dict[TopicPartition, PartitionFacts]:
        keys = (key for key, _ in self.model.each_partition()) if image is None else image.partitions
        return {key: facts for key in keys if (facts := self._facts(key, image)) is not None}

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
        model_topics = self.model.topics
        return {
            partition: {
                broker: stored
                for broker, stored in self.model.stored_bytes(partition).items()
                if not self.model.brokers[broker].lacks_listener
            }
            for name in sorted(set(topics) & model_topics.keys())
            for partition in (TopicPartition(name, number) for number in model_topics[name].partitions)
        }

    def _change_wave(
        self, wave: Sequence[ThrottleChange], before: Mapping[ThrottleChange, CallResult]
    ) -> dict[ThrottleChange, CallResult]:
        unmade = left_out(wave, before)
        return {change: unmade.get(change) or self._change_throttle(change) for change in wave}

    def _change_throttle(self, change: ThrottleChange) -> CallResult:
        if (refusal := self.config_refusals.get(resource_of(change))) is not None:
            return refusal
        if isinstance(change, SetBrokerRates):
            if change.broker not in self.model.live_brokers():
                return CallResult(BROKER_NOT_AVAILABLE, f"broker {change.broker} is not among the live brokers")
            return self.model.alter_broker_configs(change.broker, rate_operations(change.rates))
        topic = self.model.topics.get(change.topic)
        if topic is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"topic {change.topic} does not exist")
        shown = self._throttled_replicas((change.topic,)).get(change.topic)
        if shown is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"topic {change.topic} does not exist")
        operations = list_operations(change, shown)
        if isinstance(operations, CallResult):
            return operations
        return self.model.alter_topic_configs(change.topic, operations)
