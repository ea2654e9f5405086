"""A whole Kafka 4.3.1 cluster as a value in memory: brokers, topics, moves, copying and throttles, with explicit time.

Deterministic: no clock, no randomness, no I/O. It mimics what a client can see of a real cluster, odd states included;
it leaves out follower lag of in-sync replicas and the automatic balance of leaders. Nothing in it asks whether a change
is wise: that is the work of Drover's own rules.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from drover.cluster import controller_model
from drover.cluster.controller_model import Election, Partition
from drover.cluster.copying import CopyWork, copied_bytes
from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import (
    EVERY_REPLICA,
    FOLLOWER_REPLICAS,
    INVALID_CONFIG,
    LEADER_REPLICAS,
    ConfigOperation,
    OperationKind,
    parse_entries,
    parse_rates,
    parse_throttled,
    well_formed,
)
from drover.reassignment.facts import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
    Move,
    PartitionFacts,
)
from events.partitions import TopicPartition

PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
DEFAULT_MIN_ISR = 1

ACCEPTED = CallResult(NONE)


@dataclass(slots=True)
class ModelBroker:
    """A registered broker. A dead one stays unfenced until its session has timed out."""

    rack: str | None = None
    alive: bool = True
    fenced: bool = False
    died_at_ms: int | None = None
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ModelTopic:
    """A topic: its id, its configs, its partitions by number, and the bytes written to each."""

    topic_id: str
    partitions: dict[int, Partition]
    written: dict[int, int]
    configs: dict[str, str] = field(default_factory=dict)


class ClusterModel:
    """A model cluster; change it with its methods only.

    `copy_bytes_per_second` is what one broker can fetch for replicas that are not in sync; None copies everything at
    the next `advance`. `session_timeout_ms` is how long a dead broker stays unfenced. With `joins_by_itself` off,
    replicas enter the ISR only through `join_isr`.
    """

    def __init__(
        self,
        racks: Mapping[int, str | None],
        *,
        kafka_cluster_id: str = "simulated-cluster",
        copy_bytes_per_second: int | None = None,
        session_timeout_ms: int = 0,
        joins_by_itself: bool = True,
    ) -> None:
        self.kafka_cluster_id = kafka_cluster_id
        self.copy_bytes_per_second = copy_bytes_per_second
        self.session_timeout_ms = session_timeout_ms
        self.joins_by_itself = joins_by_itself
        self.now_ms = 0
        self.brokers = {broker: ModelBroker(rack) for broker, rack in sorted(racks.items())}
        self.topics: dict[str, ModelTopic] = {}
        self._held: dict[tuple[TopicPartition, int], int] = {}
        self._topics_created = 0

    # -- topics -------------------------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        assignments: Mapping[int, Sequence[int]],
        *,
        configs: Mapping[str, str] | None = None,
        partition_bytes: int = 0,
    ) -> str:
        """Create a topic whose replicas are all in sync and full, and return its new topic id.

        Raises:
            ValueError: the topic exists, or an assignment is one that Kafka refuses.
        """
        if name in self.topics:
            raise ValueError(f"topic {name} exists already")
        for number, replicas in assignments.items():
            refusal = self._assignment_refusal(tuple(replicas))
            if refusal is not None:
                raise ValueError(f"{name}:{number}: {refusal.message}")
        if len({len(replicas) for replicas in assignments.values()}) > 1:
            raise ValueError(f"{name}: its partitions have different numbers of replicas")
        self._topics_created += 1
        topic_id = urlsafe_b64encode(self._topics_created.to_bytes(16, "big")).decode().rstrip("=")
        self.topics[name] = ModelTopic(
            topic_id=topic_id,
            partitions={number: self._new_partition(tuple(assignments[number])) for number in sorted(assignments)},
            written=dict.fromkeys(assignments, 0),
            configs=dict(configs or {}),
        )
        for number in sorted(assignments):
            self.write(TopicPartition(name, number), partition_bytes)
        return topic_id

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its moves, bytes and configs."""
        del self.topics[name]
        self._held = {key: held for key, held in self._held.items() if key[0].topic != name}

    def write(self, partition: TopicPartition, added_bytes: int) -> None:
        """Append bytes to a partition; every in-sync replica has them at once."""
        topic = self.topics[partition.topic]
        topic.written[partition.partition] += added_bytes
        for broker in topic.partitions[partition.partition].isr:
            self._held[partition, broker] = topic.written[partition.partition]

    def partition(self, partition: TopicPartition) -> Partition | None:
        """Return the controller's state of a partition, or None if there is no such partition."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def _new_partition(self, replicas: tuple[int, ...]) -> Partition:
        isr = tuple(broker for broker in replicas if self._electable(broker))
        return Partition(replicas=replicas, isr=isr, leader=isr[0] if isr else None)

    # -- brokers ------------------------------------------------------------------------------------------------------

    def stop_broker(self, broker: int) -> None:
        """Kill a broker; it is fenced once its session has timed out, and its leaderships move then."""
        state = self.brokers[broker]
        state.alive = False
        state.died_at_ms = self.now_ms
        self._fence_the_dead()

    def start_broker(self, broker: int) -> None:
        """Bring a broker back; partitions without a leader get one if they can, ISRs grow at the next `advance`."""
        state = self.brokers[broker]
        state.alive, state.fenced, state.died_at_ms = True, False, None
        for partition, before in self._each_partition():
            if before.leader is None and broker in before.replicas:
                self._store(partition, self._settle(partition, before, before))

    def live_brokers(self) -> tuple[int, ...]:
        """Return what Metadata lists: the brokers that are registered and not fenced, ascending."""
        return tuple(broker for broker, state in self.brokers.items() if not state.fenced)

    def _electable(self, broker: int) -> bool:
        state = self.brokers.get(broker)
        return state is not None and not state.fenced

    def _fence_the_dead(self) -> None:
        for broker, state in self.brokers.items():
            if state.died_at_ms is None or state.fenced:
                continue
            if self.now_ms - state.died_at_ms >= self.session_timeout_ms:
                state.fenced = True
                self._take_out_of_every_isr(broker)

    def _take_out_of_every_isr(self, broker: int) -> None:
        for partition, before in self._each_partition():
            if broker not in before.isr:
                continue
            wanted = replace(before, isr=controller_model.without(before.isr, [broker]))
            self._store(partition, self._settle(partition, before, wanted))

    # -- reassignments ------------------------------------------------------------------------------------------------

    def alter(self, requests: Sequence[AlterRequest]) -> dict[TopicPartition, CallResult]:
        """Carry out AlterPartitionReassignments, each partition for itself."""
        return {request.partition: self._alter_one(request) for request in requests}

    def _alter_one(self, request: AlterRequest) -> CallResult:
        before = self.partition(request.partition)
        if before is None:
            return self._unknown(request.partition)
        if request.replicas is None:
            return self._cancel(request.partition, before)
        refusal = self._assignment_refusal(request.replicas)
        if refusal is not None:
            return refusal
        min_isr = self.min_isr(request.partition.topic)
        after = controller_model.altered(before, request.replicas, self._electable, min_isr=min_isr)
        self._store(request.partition, after)
        return ACCEPTED

    def _unknown(self, partition: TopicPartition) -> CallResult:
        if partition.topic in self.topics:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {partition}.")
        return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {partition.topic}.")

    def _cancel(self, partition: TopicPartition, before: Partition) -> CallResult:
        if not before.moving:
            return CallResult(NO_REASSIGNMENT_IN_PROGRESS)
        allowed = self._unclean_allowed(partition.topic)
        min_isr = self.min_isr(partition.topic)
        after = controller_model.cancelled(before, self._electable, unclean_allowed=allowed, min_isr=min_isr)
        if after is None:
            return CallResult(
                INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {partition.topic}-{partition.partition} as it would"
                " require an unclean leader election.",
            )
        self._store(partition, after)
        return ACCEPTED

    def _assignment_refusal(self, replicas: tuple[int, ...]) -> CallResult | None:
        problem = None
        if not replicas:
            problem = "The manual partition assignment includes an empty replica list."
        elif len(set(replicas)) < len(replicas):
            problem = f"The manual partition assignment includes the broker {_first_repeated(replicas)} more than once."
        else:
            unknown = next((broker for broker in replicas if broker not in self.brokers), None)
            if unknown is not None:
                problem = (
                    f"The manual partition assignment includes broker {unknown}, but no such broker is registered."
                )
        return None if problem is None else CallResult(INVALID_REPLICA_ASSIGNMENT, problem)

    def moves(self) -> dict[TopicPartition, Move]:
        """Answer ListPartitionReassignments of everything."""
        return {
            partition: Move(state.replicas, state.adding, state.removing)
            for partition, state in self._each_partition()
            if state.moving
        }

    def facts(self, partition: TopicPartition) -> PartitionFacts | None:
        """Return one partition as Metadata shows it (the move is left out: only List shows that)."""
        state = self.partition(partition)
        if state is None:
            return None
        return PartitionFacts(self.topics[partition.topic].topic_id, state.leader, state.replicas, state.isr)

    def elect_leader(self, partition: TopicPartition, election: Election) -> int:
        """Carry out ElectLeaders for one partition and return Kafka's code."""
        before = self.partition(partition)
        if before is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        preferred = election is Election.PREFERRED
        if before.leader is not None and (not preferred or before.leader == before.replicas[0]):
            return ELECTION_NOT_NEEDED
        min_isr = self.min_isr(partition.topic)
        after = controller_model.settle(before, before, self._electable, election, min_isr=min_isr)
        if after == before:
            return PREFERRED_LEADER_NOT_AVAILABLE if preferred else ELIGIBLE_LEADERS_NOT_AVAILABLE
        self._store(partition, after)
        return NONE

    # -- copying ------------------------------------------------------------------------------------------------------

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass: sessions time out, replicas copy, and those that are full join the ISR."""
        started_ms, self.now_ms = self.now_ms, self.now_ms + elapsed_ms
        self._fence_the_dead()
        work = list(self._copy_work())
        for item, copied in copied_bytes(work, self.copy_bytes_per_second, started_ms, self.now_ms):
            key = (item.partition, item.follower)
            self._held[key] = self._held.get(key, 0) + copied
            if copied == item.missing_bytes and self.joins_by_itself:
                self.join_isr(item.partition, item.follower)

    def join_isr(self, partition: TopicPartition, broker: int) -> None:
        """Let the leader report that a replica is in sync; this is what completes moves."""
        before = self.topics[partition.topic].partitions[partition.partition]
        self._held[partition, broker] = self.topics[partition.topic].written[partition.partition]
        if broker in before.replicas and broker not in before.isr and self._electable(broker):
            self._store(partition, self._settle(partition, before, replace(before, isr=(*before.isr, broker))))

    def held_bytes(self, partition: TopicPartition) -> dict[int, int]:
        """Return the bytes on each live broker's disk, replicas that are still copying included."""
        state = self.partition(partition)
        brokers = () if state is None else sorted(state.replicas)
        return {broker: self._held.get((partition, broker), 0) for broker in brokers if self.brokers[broker].alive}

    def _copy_work(self) -> Iterator[CopyWork]:
        for partition, state in self._each_partition():
            leader = state.leader
            if leader is None or not self.brokers[leader].alive:
                continue
            topic = self.topics[partition.topic]
            for follower in state.replicas:
                if follower in state.isr or not self.brokers[follower].alive:
                    continue
                missing = topic.written[partition.partition] - self._held.get((partition, follower), 0)
                yield CopyWork(
                    partition=partition,
                    leader=leader,
                    follower=follower,
                    missing_bytes=missing,
                    leader_limit=self._limit(topic, partition, leader, leads=True),
                    follower_limit=self._limit(topic, partition, follower, leads=False),
                )

    def _limit(self, topic: ModelTopic, partition: TopicPartition, broker: int, *, leads: bool) -> int | None:
        lists, rates = parse_throttled(topic.configs), parse_rates(self.brokers[broker].configs)
        entries = lists.leader if leads else lists.follower
        if EVERY_REPLICA not in entries and f"{partition.partition}:{broker}" not in entries:
            return None
        return rates.leader_bytes_per_second if leads else rates.follower_bytes_per_second

    # -- configs ------------------------------------------------------------------------------------------------------

    def alter_topic_configs(self, topic: str, operations: Sequence[ConfigOperation]) -> CallResult:
        """Carry out IncrementalAlterConfigs on a topic; all operations or none."""
        state = self.topics.get(topic)
        if state is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        configs = _with_operations(state.configs, operations)
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
            value = configs.get(key, "")
            if not well_formed(value):
                return CallResult(INVALID_CONFIG, f"Invalid value {parse_entries(value)} for configuration {key}")
        state.configs = configs
        return ACCEPTED

    def alter_broker_configs(self, broker: int, operations: Sequence[ConfigOperation]) -> CallResult:
        """Carry out IncrementalAlterConfigs on one broker's own dynamic configs."""
        state = self.brokers[broker]
        state.configs = _with_operations(state.configs, operations)
        return ACCEPTED

    def min_isr(self, topic: str) -> int:
        """Return a topic's min.insync.replicas."""
        return int(self.topics[topic].configs.get("min.insync.replicas", DEFAULT_MIN_ISR))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _each_partition(self) -> Iterator[tuple[TopicPartition, Partition]]:
        for name in sorted(self.topics):
            for number, state in list(self.topics[name].partitions.items()):
                yield TopicPartition(name, number), state

    def _unclean_allowed(self, topic: str) -> bool:
        return self.topics[topic].configs.get("unclean.leader.election.enable") == "true"

    def _settle(self, partition: TopicPartition, before: Partition, wanted: Partition) -> Partition:
        election = Election.UNCLEAN if self._unclean_allowed(partition.topic) else Election.NORMAL
        min_isr = self.min_isr(partition.topic)
        return controller_model.settle(before, wanted, self._electable, election, min_isr=min_isr)

    def _store(self, partition: TopicPartition, state: Partition) -> None:
        before = self.topics[partition.topic].partitions[partition.partition]
        self.topics[partition.topic].partitions[partition.partition] = state
        for gone in controller_model.without(before.replicas, state.replicas):
            self._held.pop((partition, gone), None)


def _first_repeated(replicas: tuple[int, ...]) -> int:
    return next(broker for place, broker in enumerate(replicas) if broker in replicas[:place])


def _with_operations(configs: Mapping[str, str], operations: Sequence[ConfigOperation]) -> dict[str, str]:
    changed = dict(configs)
    for operation in operations:
        entries = parse_entries(changed.get(operation.key))
        given = parse_entries(operation.value)
        if operation.kind is OperationKind.DELETE:
            changed.pop(operation.key, None)
        elif operation.kind is OperationKind.SET:
            changed[operation.key] = operation.value or ""
        elif operation.kind is OperationKind.APPEND:
            changed[operation.key] = ",".join(dict.fromkeys(entries + given))
        else:
            changed[operation.key] = ",".join(entry for entry in entries if entry not in given)
    return changed
