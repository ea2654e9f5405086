"""What a script may do to a cluster, and what the model answers; partitions are (topic letter, number)."""

from collections.abc import Mapping
from dataclasses import dataclass

from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import FOLLOWER_REPLICAS, LEADER_REPLICAS, ConfigOperation, OperationKind
from drover.events.partitions import TopicPartition
from drover.facts import INVALID_REPLICA_ASSIGNMENT, NONE
from drover.testing.controller_model import Election
from drover.testing.model import ClusterModel

Replicas = tuple[int, ...]
Codes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Place:
    """One partition of a script; `topic` is a letter, the run adds what makes it unique."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Alter:
    """One AlterPartitionReassignments call; None cancels."""

    requests: tuple[tuple[Place, Replicas | None], ...]

    def __str__(self) -> str:
        return "alter " + ", ".join(
            f"{place} " + ("cancel" if replicas is None else str(list(replicas))) for place, replicas in self.requests
        )


@dataclass(frozen=True, slots=True)
class Elect:
    """One ElectLeaders call."""

    places: tuple[Place, ...]
    election: Election

    def __str__(self) -> str:
        return f"elect {self.election.value} {', '.join(map(str, self.places))}"


@dataclass(frozen=True, slots=True)
class Create:
    """One CreateTopics call for one topic, with the replicas of partition 0, 1, ... and its configs."""

    topic: str
    lists: tuple[Replicas, ...]
    configs: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"create {self.topic} {[list(replicas) for replicas in self.lists]} {dict(self.configs)}"


@dataclass(frozen=True, slots=True)
class Delete:
    """One DeleteTopics call."""

    topic: str

    def __str__(self) -> str:
        return f"delete {self.topic}"


@dataclass(frozen=True, slots=True)
class Grow:
    """One CreatePartitions call with the replicas of the new partitions."""

    topic: str
    lists: tuple[Replicas, ...]

    def __str__(self) -> str:
        return f"grow {self.topic} by {[list(replicas) for replicas in self.lists]}"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Append these entries to both throttled replica lists of a topic, or (`on` is False) take them away."""

    topic: str
    entries: tuple[str, ...]
    on: bool

    def __str__(self) -> str:
        return f"{'throttle' if self.on else 'unthrottle'} {self.topic} {','.join(self.entries)}"

    def config_operations(self) -> tuple[ConfigOperation, ...]:
        """Return the IncrementalAlterConfigs operations."""
        kind = OperationKind.APPEND if self.on else OperationKind.SUBTRACT
        return tuple(ConfigOperation(key, kind, ",".join(self.entries)) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))


Operation = Alter | Elect | Create | Delete | Grow | Throttle


def apply(model: ClusterModel, prefix: str, operation: Operation) -> Codes:
    """Carry an operation out on the model and return Kafka's code for each thing it names."""
    match operation:
        case Alter(requests):
            answers = model.alter([AlterRequest(full(prefix, place), replicas) for place, replicas in requests])
            return {str(place): answers[full(prefix, place)].code for place, _ in requests}
        case Elect(places, election):
            return {str(place): model.elect_leader(full(prefix, place), election) for place in places}
        case Create(topic, lists, configs):
            try:
                model.create_topic(prefix + topic, dict(enumerate(lists)), configs=dict(configs))
            except ValueError:
                return {topic: INVALID_REPLICA_ASSIGNMENT}
            return {topic: NONE}
        case Delete(topic):
            model.delete_topic(prefix + topic)
            return {topic: NONE}
        case Grow(topic, lists):
            return {topic: model.grow_topic(prefix + topic, lists).code}
        case Throttle(topic):
            return {topic: model.alter_topic_configs(prefix + topic, operation.config_operations()).code}


def full(prefix: str, place: Place) -> TopicPartition:
    """Return the partition that a place stands for in one run."""
    return TopicPartition(prefix + place.topic, place.partition)
