"""A whole Kafka cluster as a value in memory: brokers, topics, moves, copying and throttles, with explicit time.

Deterministic: no clock, no randomness, no I/O. It mimics what a client can see of a real cluster, odd states included;
docs/simulation.md says what is modelled, how it is compared with real clusters, and what is left out. It carries out
any change that Kafka would carry out; Drover's own rules are not part of it.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import ConfigOperation
from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.facts import (
    ELECTION_NOT_NEEDED,
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
    Move,
    PartitionFacts,
)
from drover.testing import controller_model
from drover.testing.controller_model import Election, Partition
from drover.testing.model_directories import ModelDirectories
from drover.testing.model_history import MetadataHistory
from drover.testing.model_refusals import (
    dead_refusal,
    fenced_refusal,
    list_refusal,
    new_replicas_refusal,
    unknown_in_zookeeper_mode,
)
from drover.testing.model_state import ACCEPTED, ModelState, ModelTopic, altered_configs
from drover.testing.replication import Replication
from drover.traits import LATEST

ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
INVALID_PARTITIONS = 37
REASSIGNMENT_IN_PROGRESS = 60


class ClusterModel(ModelState):
    """A model cluster; change it with its methods only.

    `copy_bytes_per_second` bounds the fetches of one broker for replicas that are not in sync; None copies everything
    at the next `advance`. `session_timeout_ms` is how long a dead broker stays unfenced, `replica_lag_ms` how long a
    replica that fetches nothing stays in the ISR of a partition that is written to. With `joins_by_itself` off,
    replicas enter the ISR only through `join_isr`. `traits` are those of the version that it mimics. Every
    `leader_rebalance_ms` the controller elects preferred leaders (Kafka's default is 300,000); None: never.
    """

    def __init__(
        self,
        racks: Mapping[int, str | None],
        *,
        kafka_cluster_id: str = "simulated-cluster",
        copy_bytes_per_second: int | None = None,
        session_timeout_ms: int = 0,
        replica_lag_ms: int = 30_000,
        joins_by_itself: bool = True,
        traits: Traits = LATEST,
        leader_rebalance_ms: int | None = None,
    ) -> None:
        super().__init__(racks, traits)
        self.kafka_cluster_id = kafka_cluster_id
        self.session_timeout_ms = session_timeout_ms
        self.leader_rebalance_ms = leader_rebalance_ms
        self.controller_alive = True
        self._topics_created = 0
        self.replication = Replication(self, copy_bytes_per_second, replica_lag_ms, joins_by_itself=joins_by_itself)
        self.directories = ModelDirectories(self)
        self._history = MetadataHistory(self)

    # -- topics -------------------------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        assignments: Mapping[int, Sequence[int]],
        *,
        configs: Mapping[str, str] | None = None,
        partition_bytes: int = 0,
    ) -> str:
        """Create a topic whose replicas on unfenced brokers are all in sync and full, and return its new topic id.

        Raises:
            ValueError: the topic exists, or an assignment is one that Kafka refuses.
        """
        if name in self.topics:
            raise ValueError(f"topic {name} exists already")
        for number, replicas in assignments.items():
            refusal = list_refusal(self, replicas) or fenced_refusal(self, number, replicas)
            if refusal is not None:
                raise ValueError(f"{name}:{number}: {refusal.message}")
        if len({len(replicas) for replicas in assignments.values()}) > 1:
            raise ValueError(f"{name}: its partitions have different numbers of replicas")
        self._topics_created += 1
        topic_id = urlsafe_b64encode(self._topics_created.to_bytes(16, "big")).decode().rstrip("=")
        self.topics[name] = ModelTopic(topic_id, partitions={}, written={}, configs=dict(configs or {}))
        for number in sorted(assignments):
            self._create_partition(TopicPartition(name, number), tuple(assignments[number]), partition_bytes)
        return topic_id

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its moves, bytes and configs."""
        self.forget(name)

    def grow_topic(self, name: str, assignments: Sequence[Sequence[int]]) -> CallResult:
        """Carry out CreatePartitions with these lists for the new partitions; all or none.

        Each needs as many replicas as partition 0 has now, counted in the merged list while it moves. Kafka compares
        with one of the partitions, but not always with this one.
        """
        topic = self.topics.get(name)
        if topic is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if not assignments:
            return CallResult(INVALID_PARTITIONS, f"Topic already has {len(topic.partitions)} partition(s).")
        if self.traits.zookeeper_mode and any(state.moving for state in topic.partitions.values()):
            return CallResult(
                REASSIGNMENT_IN_PROGRESS, f"A partition reassignment is in progress for the topic '{name}'."
            )
        first = len(topic.partitions)
        factor = len(topic.partitions[0].replicas)
        for number, replicas in enumerate(assignments, first):
            refusal = list_refusal(self, replicas)
            if refusal is None and len(replicas) != factor:
                refusal = CallResult(
                    INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this"
                    f" is not consistent with previous partitions, which have {factor} replica(s).",
                )
            refusal = refusal or new_replicas_refusal(self, number, replicas)
            if refusal is not None:
                return refusal
        for number, replicas in enumerate(assignments, first):
            self._create_partition(TopicPartition(name, number), tuple(replicas), 0)
        return ACCEPTED

    def write(self, partition: TopicPartition, added_bytes: int) -> bool:
        """Append bytes to a partition if a live leader takes them; followers in sync that fetch have them at once."""
        return self.replication.write(partition, added_bytes)

    def _create_partition(self, partition: TopicPartition, replicas: tuple[int, ...], partition_bytes: int) -> None:
        isr = tuple(broker for broker in replicas if self.electable(broker))
        self.topics[partition.topic].written[partition.partition] = 0
        self.store(partition, Partition(replicas=replicas, isr=isr, leader=isr[0]))
        self.replication.write(partition, partition_bytes)

    # -- brokers ------------------------------------------------------------------------------------------------------

    def stop_broker(self, broker: int, *, clean: bool = False) -> None:
        """Kill a broker; it is fenced once its session has timed out, and its leaderships move then.

        On a `clean` stop the broker first asks the controller to move its leaderships. When it comes
        back it is trusted to have all its records; a killed one is not.
        """
        state = self.brokers[broker]
        state.alive, state.returning, state.crashed = False, False, not clean
        if state.died_at_ms is None:
            state.died_at_ms = self.now_ms
        if clean and self.controller_alive and not state.fenced:
            self._fence(broker)
        self._fence_the_dead()

    def start_broker(self, broker: int) -> None:
        """Bring a broker back; partitions without a leader get one if they can, ISRs grow at the next `advance`.

        The controller registers no broker twice: a killed broker that is back before its session has timed out is
        registered after that.
        """
        state = self.brokers[broker]
        if state.alive:
            return
        state.returning = True
        self._register_the_returned()

    def stall_broker(self, broker: int) -> None:
        """Stop the fetches of a live broker's replicas; they leave the ISRs of partitions that are written to."""
        self.brokers[broker].stalled_since_ms = self.now_ms

    def unstall_broker(self, broker: int) -> None:
        """Let a stalled broker's replicas fetch again."""
        self.brokers[broker].stalled_since_ms = None

    def stop_controller(self) -> None:
        """Stop the controller: nothing is fenced, elected or completed, and no ISR changes."""
        self.controller_alive = False

    def start_controller(self) -> None:
        """Start a controller: it has the state of the last one, and gives every unfenced broker a new session."""
        self.controller_alive = True
        for state in self.brokers.values():
            if state.died_at_ms is not None and not state.fenced:
                state.died_at_ms = self.now_ms
        self._fence_the_dead()
        self._register_the_returned()
        if self.traits.zookeeper_mode:
            self._elect_missing_leaders()

    def _fence_the_dead(self) -> None:
        for broker, state in self.brokers.items():
            if state.died_at_ms is None or state.fenced or not self.controller_alive:
                continue
            if self.now_ms - state.died_at_ms >= self.session_timeout_ms:
                self._fence(broker)

    def _fence(self, broker: int) -> None:
        self.brokers[broker].fenced = True
        with self.one_request():
            for partition, before in self.each_partition():
                if broker in before.isr:
                    self.settle(partition, replace(before, isr=controller_model.without(before.isr, [broker])))
        if self.traits.zookeeper_mode:
            # The controller then elects for every partition without a leader, not only for those of this broker.
            self._elect_missing_leaders()

    def _register_the_returned(self) -> None:
        for broker, state in self.brokers.items():
            if state.returning and state.fenced and self.controller_alive and not self._faults_at(broker):
                self._register(broker)

    def _faults_at(self, broker: int) -> bool:
        """Whether a poisoned partition keeps a broker from being registered."""
        for _, state in self.each_of(self.imbalanced):
            last = state.last_known_leader
            if last is None or not controller_model.is_poisoned(state):
                continue
            others = controller_model.without(state.isr + state.elr, [broker])
            if not others and (last == broker or self.electable(last)):
                return True
        return False

    def _register(self, broker: int) -> None:
        """Register a fenced broker; after an unclean shutdown it may lack records, so its replicas are not eligible."""
        state = self.brokers[broker]
        crashed = broker if state.crashed else None
        # In ZooKeeper mode a returning broker keeps its places in ISRs.
        returned = () if self.traits.zookeeper_mode else self.each_partition()
        with self.one_request():
            for partition, before in returned:
                if broker in before.isr or (crashed is not None and broker in before.elr):
                    remaining = controller_model.without(before.isr, [broker])
                    self.settle(partition, replace(before, isr=remaining), crashed=crashed)
        state.alive, state.fenced, state.registered = True, False, True
        state.returning, state.crashed, state.died_at_ms = False, False, None
        self._elect_missing_leaders()

    def _elect_missing_leaders(self) -> None:
        with self.one_request():
            for partition, before in self.each_of(self.imbalanced):
                if before.leader is None:
                    self.settle(partition, before)

    # -- reassignments ------------------------------------------------------------------------------------------------

    def alter(self, requests: Sequence[AlterRequest]) -> dict[TopicPartition, CallResult]:
        """Carry out AlterPartitionReassignments, each partition by itself."""
        with self.one_request():
            return {request.partition: self._alter_partition(request) for request in requests}

    def _alter_partition(self, request: AlterRequest) -> CallResult:
        partition = request.partition
        before = self.partition(partition)
        if before is None and self.traits.zookeeper_mode:
            return unknown_in_zookeeper_mode(self, request.replicas)
        if before is None:
            missing = f"partition {partition}" if partition.topic in self.topics else f"a topic named {partition.topic}"
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {missing}.")
        if request.replicas is None:
            return self._cancel(partition, before)
        refusal = list_refusal(self, request.replicas) or dead_refusal(self, before, request.replicas)
        if refusal is not None:
            return refusal
        after = controller_model.altered(before, request.replicas, self.electable, self.rules(partition.topic))
        if controller_model.stumbles(before, after):
            return CallResult(UNKNOWN_SERVER_ERROR, "The server experienced an unexpected error.")
        self.store(partition, after)
        return ACCEPTED

    def _cancel(self, partition: TopicPartition, before: Partition) -> CallResult:
        if not before.moving:
            return CallResult(NO_REASSIGNMENT_IN_PROGRESS)
        after = controller_model.cancelled(
            before,
            self.electable,
            self.rules(partition.topic),
            unclean_allowed=self.unclean_allowed(partition.topic),
        )
        if after is None:
            return CallResult(
                INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {partition.topic}-{partition.partition} as it would"
                " require an unclean leader election.",
            )
        self.store(partition, after)
        return ACCEPTED

    def moves(self) -> dict[TopicPartition, Move]:
        """Answer ListPartitionReassignments of everything."""
        return {
            partition: Move(state.replicas, state.adding, state.removing)
            for partition, state in self.each_of(self.moving)
        }

    def facts(self, partition: TopicPartition, lag_ms: int = 0) -> PartitionFacts | None:
        """Return one partition as Metadata shows it (the move is left out: only List shows that).

        `lag_ms` is the lag of the broker that answers; `remember_metadata` must have been called with at least this
        lag.
        """
        if lag_ms:
            return self._history.facts(partition, self.now_ms - lag_ms)
        return self._history.current(partition)

    def remember_metadata(self, max_lag_ms: int) -> None:
        """Keep the history of Metadata for this long, for brokers that lag."""
        self._history.keep_ms = max_lag_ms

    def elect_leader(self, partition: TopicPartition, election: Election) -> int:
        """Carry out ElectLeaders for one partition and return Kafka's code."""
        before = self.partition(partition)
        if before is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        preferred = election is Election.PREFERRED
        if before.leader is not None and (not preferred or before.leader == before.replicas[0]):
            return ELECTION_NOT_NEEDED
        if self.settle(partition, before, election) == before:
            return PREFERRED_LEADER_NOT_AVAILABLE if preferred else ELIGIBLE_LEADERS_NOT_AVAILABLE
        return NONE

    def balance_leaders(self, brokers: Collection[int] | None = None) -> None:
        """Elect the preferred leader of every partition with another leader, as Kafka does, also of moving partitions.

        In ZooKeeper mode this is done only for `brokers` that lead too few of the partitions that prefer them.
        """
        for partition, before in self.each_of(self.imbalanced):
            if brokers is None or before.replicas[0] in brokers:
                self.settle(partition, before, Election.PREFERRED)

    # -- time ---------------------------------------------------------------------------------------------------------

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass: sessions time out, replicas copy, join and leave ISRs, and leaders are balanced."""
        started_ms, self.now_ms = self.now_ms, self.now_ms + elapsed_ms
        self._fence_the_dead()
        self._register_the_returned()
        self.replication.advance(started_ms, with_controller=self.controller_alive)
        every_ms = self.leader_rebalance_ms
        if every_ms is not None and self.controller_alive and self.now_ms // every_ms > started_ms // every_ms:
            self.balance_leaders()

    def join_isr(self, partition: TopicPartition, broker: int) -> None:
        """Let the leader report that a replica is in sync; this is what completes moves."""
        self.replication.join(partition, broker)

    def stored_bytes(self, partition: TopicPartition) -> dict[int, int]:
        """Return the bytes on each live broker's disk, replicas that are still copying included."""
        return self.replication.stored_bytes(partition)

    @property
    def joins_by_itself(self) -> bool:
        """Whether replicas that lack nothing join the ISR at the next `advance`."""
        return self.replication.joins_by_itself

    @joins_by_itself.setter
    def joins_by_itself(self, joins: bool) -> None:
        self.replication.joins_by_itself = joins

    # -- configs ------------------------------------------------------------------------------------------------------

    def alter_topic_configs(self, topic: str, operations: Sequence[ConfigOperation]) -> CallResult:
        """Carry out IncrementalAlterConfigs on a topic; all operations or none."""
        state = self.topics.get(topic)
        if state is None:
            return CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        state.configs, result = altered_configs(state.configs, operations)
        return result

    def alter_broker_configs(self, broker: int, operations: Sequence[ConfigOperation]) -> CallResult:
        """Carry out IncrementalAlterConfigs on one broker's own dynamic configs."""
        state = self.brokers[broker]
        state.configs, result = altered_configs(state.configs, operations)
        return result
