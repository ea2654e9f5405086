"""The reasons for refusals: one closed list, with Kafka's own names where Kafka has one."""

from enum import StrEnum

from msgspec import Struct

from drover.events.partitions import TopicPartition


class RefusalCode(StrEnum):
    """The reasons: first those that refuse a command as a whole, then those that refuse one partition of it.

    One answer is given, for the first rule that applies; in which order they are looked at is no part of the contract.
    """

    MALFORMED = "malformed"
    UNKNOWN_CLUSTER = "unknown-cluster"
    ID_REUSED = "id-reused"
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    CLUSTER_CHANGED = "cluster-changed"
    CLUSTER_UNAVAILABLE = "cluster-unavailable"
    PLAN_CLOSED = "plan-closed"
    UNKNOWN_PLAN = "unknown-plan"
    DROVERS_OWN_THROTTLE = "drovers-own-throttle"
    HEALING_OFF = "healing-off"
    BROKER_NOT_AWAY = "broker-not-away"
    UNKNOWN_BROKER = "unknown-broker"
    NOTHING_TO_STOP = "nothing-to-stop"
    DENIED = "denied"
    FROZEN_BY_OTHERS = "frozen-by-others"
    INVALID_LIMIT = "invalid-limit"
    DROVER_TOPIC = "drover-topic"
    UNKNOWN_TOPIC_OR_PARTITION = "unknown-topic-or-partition"
    INVALID_REPLICA_ASSIGNMENT = "invalid-replica-assignment"
    INVALID_REPLICATION_FACTOR = "invalid-replication-factor"
    REASSIGNMENT_IN_PROGRESS = "reassignment-in-progress"
    UNMANAGED_MOVE = "unmanaged-move"
    ORIGINAL_REPLICAS_DIFFER = "original-replicas-differ"
    NO_REASSIGNMENT_IN_PROGRESS = "no-reassignment-in-progress"
    INCONSISTENT_TOPIC_ID = "inconsistent-topic-id"
    BROKER_EMPTIED = "broker-emptied"


class Refusal(Struct, frozen=True, omit_defaults=True):
    """One refusal: of a whole command, or of one partition of it when `topic` is set.

    `detail` names the thing and the remedy in one sentence for a person.
    """

    code: RefusalCode
    detail: str
    topic: str | None = None
    partition: int | None = None

    @property
    def key(self) -> TopicPartition | None:
        """The refused partition; None when the refusal is of the whole command."""
        if self.topic is None or self.partition is None:
            return None
        return TopicPartition(self.topic, self.partition)
