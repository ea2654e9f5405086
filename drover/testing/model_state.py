"""The parts of a model cluster: brokers, topics, partitions, and indexes of them; no behaviour."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from drover.cluster.throttle_lists import (
    FOLLOWER_REPLICAS,
    INVALID_CONFIG,
    LEADER_REPLICAS,
    ConfigOperation,
    OperationKind,
    parse_entries,
    well_formed,
)
from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.facts import NONE, CallResult
from drover.testing import controller_model
from drover.testing.controller_model import Election, Partition, Rules

DEFAULT_MIN_ISR = 1
MIN_ISR = "min.insync.replicas"
UNCLEAN_ALLOWED = "unclean.leader.election.enable"
ACCEPTED = CallResult(NONE)


@dataclass(slots=True)
class ModelBroker:
    """A broker that is registered, or was.

    A dead broker stays unfenced until its session has timed out. `returning` says that its process is back, but that
    the controller does not register it before that. `crashed` says that its last stop was not a clean one. A stalled
    broker is alive, but its replicas fetch nothing. A broker that `lacks_listener` is alive and replicates, but does
    not offer the clients' listener, so that clients do not see it.
    """

    rack: str | None = None
    alive: bool = True
    fenced: bool = False
    died_at_ms: int | None = None
    configs: dict[str, str] = field(default_factory=dict)
    returning: bool = False
    crashed: bool = False
    stalled_since_ms: int | None = None
    lacks_listener: bool = False
    registered: bool = True

    @property
    def fetches(self) -> bool:
        """Whether its replicas follow their leaders."""
        return self.alive and self.stalled_since_ms is None


@dataclass(slots=True)
class ModelTopic:
    """A topic: its id, its configs, its partitions by number, and the bytes written to each."""

    topic_id: str
    partitions: dict[int, Partition]
    written: dict[int, int]
    configs: dict[str, str] = field(default_factory=dict)


class SortedPartitions:
    """A set of partitions that is iterated in order, whatever the order of insertion."""

    def __init__(self) -> None:
        self._members: set[TopicPartition] = set()
        self._ordered: tuple[TopicPartition, ...] | None = ()

    def keep(self, partition: TopicPartition, *, belongs: bool) -> None:
        """Add or remove a partition."""
        if belongs == (partition in self._members):
            return
        self._ordered = None
        if belongs:
            self._members.add(partition)
        else:
            self._members.remove(partition)

    def __iter__(self) -> Iterator[TopicPartition]:
        if self._ordered is None:
            self._ordered = tuple(sorted(self._members))
        return iter(self._ordered)


class ModelState:
    """The controller's tables, with an index of the partitions that move, lack in-sync replicas or their first leader.

    `on_change` is called before each change of a partition with its name, its state before and its state after; None
    for a partition that does not exist.
    """

    def __init__(self, racks: Mapping[int, str | None], traits: Traits) -> None:
        self.now_ms = 0
        self.traits = traits
        self.brokers = {broker: ModelBroker(rack) for broker, rack in sorted(racks.items())}
        self.topics: dict[str, ModelTopic] = {}
        self.moving = SortedPartitions()
        self.incomplete = SortedPartitions()
        self.imbalanced = SortedPartitions()
        # Replicas in log directories that have failed, by partition and broker.
        self.offline: dict[tuple[TopicPartition, int], None] = {}
        self._effective_min_isr: dict[str, int] | None = None
        self.on_change: list[Callable[[TopicPartition, Partition | None, Partition | None], None]] = []

    def partition(self, partition: TopicPartition) -> Partition | None:
        """Return the controller's state of a partition, or None if there is no such partition."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def the_partition(self, partition: TopicPartition) -> Partition:
        """Return the state of a partition that exists."""
        return self.topics[partition.topic].partitions[partition.partition]

    def each_partition(self) -> Iterator[tuple[TopicPartition, Partition]]:
        """Iterate over every partition in the order of names; they may change meanwhile."""
        for name in sorted(self.topics):
            for number, state in sorted(self.topics[name].partitions.items()):
                yield TopicPartition(name, number), state

    def each_of(self, members: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, Partition]]:
        """Iterate over an index; partitions may change meanwhile."""
        for partition in tuple(members):
            yield partition, self.the_partition(partition)

    def store(self, partition: TopicPartition, state: Partition) -> None:
        """Make `state` the partition's state."""
        partitions = self.topics[partition.topic].partitions
        before = partitions.get(partition.partition)
        if state == before:
            return
        for listener in self.on_change:
            listener(partition, before, state)
        partitions[partition.partition] = state
        self.moving.keep(partition, belongs=state.moving)
        self.incomplete.keep(partition, belongs=not frozenset(state.isr).issuperset(state.replicas))
        self.imbalanced.keep(partition, belongs=state.leader != state.replicas[0])

    def forget(self, topic: str) -> None:
        """Remove a topic with all its partitions."""
        for number, state in sorted(self.topics[topic].partitions.items()):
            partition = TopicPartition(topic, number)
            for listener in self.on_change:
                listener(partition, state, None)
            for index in (self.moving, self.incomplete, self.imbalanced):
                index.keep(partition, belongs=False)
        del self.topics[topic]

    def live_brokers(self) -> tuple[int, ...]:
        """Return the brokers in Metadata, ascending: those that are not fenced and offer the clients' listener."""
        return tuple(broker for broker, state in self.brokers.items() if not (state.fenced or state.lacks_listener))

    def registered_brokers(self) -> frozenset[int] | None:
        """Return the brokers in DescribeCluster, fenced ones included; None before Kafka 4.0, which omits those."""
        if self.traits.zookeeper_mode or self.traits.kafka.startswith("3"):
            return None
        return frozenset(
            broker for broker, state in self.brokers.items() if state.registered and not state.lacks_listener
        )

    def is_registered(self, broker: int) -> bool:
        """Whether the controller has a registration for a broker, fenced or not."""
        state = self.brokers.get(broker)
        return state is not None and state.registered

    def hide_listener(self, broker: int) -> None:
        """Let a broker live and replicate without the clients' listener."""
        self.brokers[broker].lacks_listener = True

    def show_listener(self, broker: int) -> None:
        """Let a broker offer the clients' listener again."""
        self.brokers[broker].lacks_listener = False

    def unregister(self, broker: int) -> None:
        """Carry out UnregisterBroker for a fenced broker; when its process comes back, it registers again."""
        assert self.brokers[broker].fenced, f"broker {broker} is not fenced: stop it first"
        self.brokers[broker].registered = False

    def electable(self, broker: int) -> bool:
        """Whether a broker is active for the controller: registered and not fenced."""
        state = self.brokers.get(broker)
        return state is not None and not state.fenced

    def settle(
        self, partition: TopicPartition, wanted: Partition, election: Election | None = None, crashed: int | None = None
    ) -> Partition:
        """Store the controller's result of a wanted change, and return it; `election` defaults to the topic's."""
        if election is None:
            election = Election.UNCLEAN if self.unclean_allowed(partition.topic) else Election.NORMAL
        rules = self.rules(partition.topic, crashed)
        before = self.the_partition(partition)
        after = controller_model.settle(before, wanted, self.electable, election, rules)
        if controller_model.stumbles(before, after):
            return before  # the controller fails at this event and steps down
        self.store(partition, after)
        return after

    def rules(self, topic: str, crashed: int | None = None) -> Rules:
        """Return the controller's rules for a topic."""
        min_isrs = {} if self._effective_min_isr is None else self._effective_min_isr
        if topic not in min_isrs:
            min_isrs[topic] = min(self.min_isr(topic), len(self.topics[topic].partitions[0].replicas))
        return Rules(min_isrs[topic], crashed, self.traits)

    @contextmanager
    def one_request(self) -> Iterator[None]:
        """Decide all changes in this block by the partitions 0 before it, as in one request to the controller."""
        self._effective_min_isr = {}
        try:
            yield
        finally:
            self._effective_min_isr = None

    def min_isr(self, topic: str) -> int:
        """Return a topic's min.insync.replicas."""
        return int(self.topics[topic].configs.get(MIN_ISR, DEFAULT_MIN_ISR))

    def unclean_allowed(self, topic: str) -> bool:
        """Whether a topic may elect a leader that lacks records."""
        return self.traits.elects_unclean and self.topics[topic].configs.get(UNCLEAN_ALLOWED) == "true"


def altered_configs(
    configs: Mapping[str, str], operations: Sequence[ConfigOperation]
) -> tuple[dict[str, str], CallResult]:
    """Carry out IncrementalAlterConfigs: the new configs and its answer; all operations or none."""
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
    for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
        value = changed.get(key, "")
        if not well_formed(value):
            refusal = CallResult(INVALID_CONFIG, f"Invalid value {parse_entries(value)} for configuration {key}")
            return dict(configs), refusal
    return changed, ACCEPTED


@lru_cache(maxsize=1024)
def throttled_entries(value: str) -> frozenset[str]:
    """Parse a throttled replica list for quick look-ups."""
    return frozenset(parse_entries(value))
