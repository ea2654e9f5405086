"""The driver of real clusters: observes and changes a managed cluster with Kafka's Admin RPCs; it decides nothing."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from drover.cluster import configs, inventory_requests, messages, position_requests
from drover.cluster.agreement import Described, agreed_moves, agreed_partitions, with_known_min_isr
from drover.cluster.messages import Metadata
from drover.cluster.port import (
    MAX_PARTITIONS_PER_ALTER,
    MAX_PARTITIONS_PER_ELECTION,
    AlterRequest,
    ClusterIdentity,
    Listing,
    ThrottleChange,
)
from drover.cluster.throttle_lists import parse_throttled
from drover.cluster.wire import Connection, Deadline
from drover.errors import ClusterAccessError, ClusterUnavailableError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.facts import (
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerRates,
    CallResult,
    Observation,
    PartitionFacts,
    Survey,
    ThrottledReplicas,
)
from drover.inventory import Inventory, LogDirectories, LogDirectory, Positions, named_brokers
from drover.traits import BrokerVersion

MIN_ISR_MAX_AGE_S = 30.0
"""How long a topic's min.insync.replicas is cached."""

MIN_ISR = "min.insync.replicas"
NO_SUCH_TOPIC = frozenset(
    {UNKNOWN_TOPIC_OR_PARTITION, 17}
)  # 17 is INVALID_TOPIC_EXCEPTION, for a name that no topic can have


class KafkaDriver:
    """A `ClusterDriver` on a real cluster, over PLAINTEXT unless `client_options` says otherwise.

    `bootstrap` is `host:port,host:port`; `client_options` are kafka-python's own (`security_protocol`, `ssl_cafile`,
    `sasl_mechanism`, ...). Calls, observations and byte samples have connections of their own, so that a slow or
    hanging request does not delay the others. Requests only go to the cluster that was observed last. It reconnects to
    brokers that die and return. Use it from one event loop.
    """

    def __init__(
        self,
        cluster_name: str,
        bootstrap: str,
        client_options: Mapping[str, object] | None = None,
        call_timeout_ms: int = 4000,
    ) -> None:
        options = dict(client_options or {})
        self.cluster_name = cluster_name
        self._bootstrap = bootstrap
        self._call_timeout_ms = call_timeout_ms
        self._calls = Connection("calls", bootstrap, options, call_timeout_ms)
        self._observations = Connection("observations", bootstrap, options, call_timeout_ms)
        self._samples = Connection("samples", bootstrap, options, call_timeout_ms)
        self._min_isr: dict[str, tuple[float, int]] = {}

    async def identify(self) -> ClusterIdentity:
        """See `ClusterDriver.identify`."""
        metadata = await self._metadata(self._observations, (), self._deadline())
        return ClusterIdentity(metadata.kafka_cluster_id, metadata.racks)

    async def list_moves(self) -> Listing:
        """See `ClusterDriver.list_moves`."""
        return await self._list(self._deadline())

    async def observe(
        self, partitions: Collection[TopicPartition], *, since: Listing | None = None, with_min_isr: bool = False
    ) -> Observation:
        """See `ClusterDriver.observe`; min ISR may be up to 30 s old."""
        deadline = self._deadline()
        before = await self._list(deadline) if since is None else since
        metadata = await self._metadata(self._observations, {partition.topic for partition in partitions}, deadline)
        after = await self._list(deadline)
        ended_ms = _now_ms()
        agreed = agreed_partitions(partitions, before.moves, _described(partitions, metadata), after.moves)
        min_isr: dict[str, int] = {}
        if with_min_isr:
            existing = [name for name, topic in metadata.topics.items() if topic.code == NONE]
            min_isr = await self._min_isrs(existing, deadline)
            agreed = with_known_min_isr(agreed, min_isr)
        return Observation(
            cluster=self.cluster_name,
            kafka_cluster_id=metadata.kafka_cluster_id,
            started_ms=before.started_ms,
            ended_ms=ended_ms,
            live_brokers=tuple(metadata.racks),
            racks=metadata.racks,
            moves=agreed_moves(before.moves, after.moves),
            partitions=agreed,
            min_isr=min_isr,
        )

    async def partition_counts(self, topics: Collection[str]) -> Mapping[str, int | None]:
        """See `ClusterDriver.partition_counts`."""
        metadata = await self._metadata(self._observations, topics, self._deadline())
        counts: dict[str, int | None] = {}
        for name, topic in metadata.topics.items():
            if topic.code != NONE and topic.code not in NO_SUCH_TOPIC:
                raise ClusterUnavailableError(
                    f"topic {name} of cluster {self.cluster_name} cannot be described: Kafka error {topic.code}"
                )
            counts[name] = len(topic.partitions) if topic.code == NONE else None
        return counts

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        """See `ClusterDriver.alter`."""
        assert len(requests) <= MAX_PARTITIONS_PER_ALTER, f"{len(requests)} partitions in one alter"
        assert len({request.partition for request in requests}) == len(requests), "a partition is named twice"
        response = await self._calls.send(messages.alter_request(requests), self._deadline(), changes=True)
        if response.error_code in configs.OUTCOME_UNKNOWN_CODES:
            raise OutcomeUnknownError(
                f"cluster {self.cluster_name} answered an alter of {len(requests)} partitions with Kafka error"
                f" {response.error_code} ({response.error_message}): observe the cluster before repeating it"
            )
        return messages.read_alter(response, requests)

    async def survey(self) -> Survey:
        """See `ClusterDriver.survey`."""
        started_ms, deadline = _now_ms(), self._deadline()
        registered, metadata = await asyncio.gather(
            self._observations.send(inventory_requests.brokers_request(), deadline),
            self._metadata(self._observations, None, deadline),
        )
        return Survey(
            cluster=self.cluster_name,
            kafka_cluster_id=metadata.kafka_cluster_id,
            started_ms=started_ms,
            ended_ms=_now_ms(),
            live_brokers=tuple(metadata.racks),
            partitions=metadata.partitions(),
            racks=metadata.racks,
            registered_brokers=inventory_requests.read_registered(registered, metadata),
        )

    async def elect_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        """See `ClusterDriver.elect_leaders`."""
        assert len(partitions) <= MAX_PARTITIONS_PER_ELECTION, f"{len(partitions)} partitions in one election"
        response = await self._calls.send(messages.elect_request(partitions), self._deadline(), changes=True)
        if response.error_code in configs.OUTCOME_UNKNOWN_CODES:
            raise OutcomeUnknownError(
                f"cluster {self.cluster_name} answered an election of {len(partitions)} leaders with Kafka error"
                f" {response.error_code}: observe the cluster before repeating it"
            )
        return messages.read_elect(response, partitions)

    async def broker_versions(self) -> Mapping[int, BrokerVersion]:
        """See `ClusterDriver.broker_versions`."""
        deadline = self._deadline()
        live = list((await self._metadata(self._samples, (), deadline)).racks)
        versions = await asyncio.gather(*(self._version_of(broker, deadline) for broker in live))
        return {broker: version for broker, version in zip(live, versions, strict=True) if version is not None}

    async def log_directories(self, topics: Collection[str]) -> LogDirectories:
        """See `ClusterDriver.log_directories`."""
        deadline = self._deadline()
        metadata = await self._metadata(self._samples, topics, deadline)
        asked = sorted(
            TopicPartition(name, number) for name, topic in metadata.topics.items() for number in topic.partitions
        )
        brokers = list(metadata.racks)
        request = messages.log_dirs_request(asked)
        answers = await asyncio.gather(*(self._described_by(broker, request, deadline) for broker in brokers))
        return inventory_requests.read_log_directories(dict(zip(brokers, answers, strict=True)), asked)

    async def inventory(self) -> Inventory:
        """See `ClusterDriver.inventory`."""
        deadline = self._deadline()
        registered = await self._observations.send(inventory_requests.brokers_request(), deadline)
        before = await self._list(deadline)
        metadata = await self._metadata(self._observations, None, deadline)
        moves = {**before.moves, **(await self._list(deadline)).moves}
        partitions = {
            partition: structs.replace(facts, move=moves.get(partition))
            for partition, facts in metadata.partitions().items()
        }
        brokers = named_brokers(inventory_requests.read_brokers(registered, metadata), partitions)
        live = list(metadata.racks)
        on_disk = dict(
            zip(live, await asyncio.gather(*(self._disks_of(broker, deadline) for broker in live)), strict=True)
        )
        return Inventory(
            kafka_cluster_id=metadata.kafka_cluster_id,
            seen_ms=_now_ms(),
            brokers={
                broker: replace(broker_facts, directories=on_disk.get(broker, (None, {}))[0])
                for broker, broker_facts in brokers.items()
            },
            partitions=partitions,
            replica_bytes=inventory_requests.by_partition({broker: held for broker, (_, held) in on_disk.items()}),
            internal_topics=frozenset(name for name, topic in metadata.topics.items() if topic.is_internal),
            registered_brokers=inventory_requests.read_registered(registered, metadata),
        )

    async def positions(self, leaders: Mapping[TopicPartition, int]) -> Positions:
        """Read the offsets of these partitions from their leaders, and the committed offsets of every group.

        A broker that does not answer is left out as far as partitions are concerned, and named in `Positions.unread`.
        Raises `ClusterUnavailableError` if no broker answers.
        """
        deadline = self._deadline()
        live = list((await self._metadata(self._observations, (), deadline)).racks)
        led: dict[int, list[TopicPartition]] = {broker: [] for broker in live}
        for partition, leader in leaders.items():
            if leader in led:
                led[leader].append(partition)
        first, last = position_requests.EARLIEST_LOCAL, position_requests.LATEST
        began = await asyncio.gather(*(self._offsets_of(broker, led[broker], first, deadline) for broker in live))
        ended = await asyncio.gather(*(self._offsets_of(broker, led[broker], last, deadline) for broker in live))
        committed: dict[str, Mapping[TopicPartition, int]] = {}
        unread: list[str] = []
        for answer in await asyncio.gather(*(self._committed_at(broker, deadline) for broker in live)):
            committed.update(answer[0])
            unread += answer[1]
        return Positions(_now_ms(), _joined(began), _joined(ended), committed, tuple(unread))

    async def broker_rates(self, brokers: Collection[int]) -> Mapping[int, BrokerRates]:
        """See `ClusterDriver.broker_rates`; live brokers that do not answer in time are left out, too."""
        deadline = self._deadline()
        live = (await self._metadata(self._calls, (), deadline)).racks
        return await configs.broker_rates(self._calls, brokers & live.keys(), deadline)

    async def throttled_replicas(self, topics: Collection[str]) -> Mapping[str, ThrottledReplicas]:
        """See `ClusterDriver.throttled_replicas`."""
        described = await configs.topic_configs(self._calls, topics, configs.LIST_KEYS, self._deadline())
        return {name: parse_throttled(topic_configs.own) for name, topic_configs in described.items()}

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        """See `ClusterDriver.change_throttles`."""
        deadline = self._deadline()
        live = (await self._metadata(self._calls, (), deadline)).racks
        return await configs.change_throttles(self._calls, changes, live, deadline)

    async def close(self) -> None:
        """See `ClusterDriver.close`."""
        await asyncio.gather(self._calls.close(), self._observations.close(), self._samples.close())

    # -- inside -------------------------------------------------------------------------------------------------------

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._call_timeout_ms)

    async def _metadata(self, connection: Connection, topics: Collection[str] | None, deadline: Deadline) -> Metadata:
        response = await connection.send(messages.metadata_request(topics), deadline)
        for each in (self._calls, self._observations, self._samples):
            each.learn_addresses(response)
        metadata = messages.read_metadata(response)
        if connection is self._observations:
            for other in (self._calls, self._samples):
                other.must_be(metadata.kafka_cluster_id)
        return metadata

    async def _list(self, deadline: Deadline) -> Listing:
        started_ms = _now_ms()
        # Use the rest of the time to find out whether only the controller is missing.
        asking = Deadline.after_ms(deadline.left_ms() * 3 // 4)
        try:
            response = await self._observations.send(messages.list_request(), asking)
        except ClusterAccessError:
            raise
        except ClusterUnavailableError as problem:
            raise await self._without_controller(problem, deadline) from problem
        if response.error_code != NONE:
            fault = ClusterAccessError if response.error_code in configs.NOT_AUTHORIZED else ClusterUnavailableError
            raise fault(
                f"cluster {self.cluster_name} does not list its reassignments: Kafka error {response.error_code}"
                f" ({response.error_message})"
            )
        return Listing(started_ms, messages.read_list(response))

    async def _without_controller(
        self, problem: ClusterUnavailableError, deadline: Deadline
    ) -> ClusterUnavailableError:
        """Return the error for an unanswered request to the controller; it says whether the brokers answer."""
        try:
            brokers = (await self._metadata(self._observations, (), deadline)).racks
        except ClusterUnavailableError:
            return problem
        return ClusterUnavailableError(
            f"the controller of cluster {self.cluster_name} does not answer, its brokers "
            f"{', '.join(map(str, brokers))} do: no move begins or ends until the controllers are back; {problem}"
        )

    async def _min_isrs(self, topics: Collection[str], deadline: Deadline) -> dict[str, int]:
        now_s = time.monotonic()
        fresh = {name: entry for name, entry in self._min_isr.items() if now_s - entry[0] < MIN_ISR_MAX_AGE_S}
        missing = [name for name in topics if name not in fresh]
        described = await configs.topic_configs(self._observations, missing, (MIN_ISR,), deadline)
        # Another call may have dropped entries that were fresh when this one began.
        min_isrs = fresh | {
            name: (now_s, int(topic_configs.effective[MIN_ISR])) for name, topic_configs in described.items()
        }
        self._min_isr = min_isrs
        return {name: min_isrs[name][1] for name in topics if name in min_isrs}

    async def _version_of(self, broker: int, deadline: Deadline) -> BrokerVersion | None:
        try:
            response = await self._samples.send(messages.versions_request(), deadline, broker=broker)
        except ClusterUnavailableError:
            return None  # the broker has just died, or hangs
        return messages.read_versions(response) if response.error_code == NONE else None

    async def _described_by(self, broker: int, request: Any, deadline: Deadline) -> Any | None:
        """Return a broker's answer to a request that only reads; None if it has just died, or hangs."""
        try:
            return await self._samples.send(request, deadline, broker=broker)
        except ClusterUnavailableError:
            return None

    async def _offsets_of(
        self, broker: int, partitions: Collection[TopicPartition], which: int, deadline: Deadline
    ) -> dict[TopicPartition, int]:
        request = position_requests.offsets_request(partitions, which)
        response = await self._described_by(broker, request, deadline) if partitions else None
        return {} if response is None else position_requests.read_offsets(response)

    async def _committed_at(
        self, broker: int, deadline: Deadline
    ) -> tuple[Mapping[str, Mapping[TopicPartition, int]], list[str]]:
        """Return the committed offsets of the groups that a broker coordinates, and why there may be more."""
        listed = await self._described_by(broker, position_requests.groups_request(), deadline)
        groups = None if listed is None else position_requests.read_groups(listed)
        if not groups:
            return {}, [] if groups is not None else [f"broker {broker} does not list its consumer groups"]
        response = await self._described_by(broker, position_requests.committed_request(groups), deadline)
        if response is None:
            return {}, [f"broker {broker} does not return the offsets of its consumer groups"]
        read = position_requests.read_committed(response)
        if not read.unread:
            return read.offsets, []
        some = ", ".join(sorted(read.unread)[:3]) + (", ..." if len(read.unread) > 3 else "")
        denied = f"consumer group {some} cannot be read: the user needs the ACL Describe on groups"
        return read.offsets, [denied]

    async def _disks_of(
        self, broker: int, deadline: Deadline
    ) -> tuple[tuple[LogDirectory, ...] | None, dict[TopicPartition, int]]:
        response = await self._described_by(broker, inventory_requests.every_directory_request(), deadline)
        if response is None:
            return None, {}
        if response.error_code in configs.NOT_AUTHORIZED:
            raise ClusterAccessError(
                f"cluster {self.cluster_name} does not return its log directories: the user needs the ACL Describe on "
                "the cluster (`drover acls`)"
            )
        return inventory_requests.read_directories(response), messages.read_log_dirs(response)


def _described(partitions: Collection[TopicPartition], metadata: Metadata) -> Described:
    """Return the asked partitions from Metadata; topics with an error other than absence are left out."""
    described: dict[TopicPartition, PartitionFacts | None] = {}
    for partition in partitions:
        topic = metadata.topics.get(partition.topic)
        if topic is not None and (topic.code == NONE or topic.code in NO_SUCH_TOPIC):
            described[partition] = topic.partitions.get(partition.partition)
    return described


def _joined(answers: Collection[Mapping[TopicPartition, int]]) -> dict[TopicPartition, int]:
    return {partition: offset for answer in answers for partition, offset in answer.items()}


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
