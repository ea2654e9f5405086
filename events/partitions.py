"""The name of a partition, the key for it everywhere."""

from typing import NamedTuple

from msgspec import Struct


class TopicPartition(NamedTuple):
    """A partition of a topic; orders by topic, then number, as every listing of Drover does."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The form operators type: `topic:partition`."""
        return f"{self.topic}:{self.partition}"


class PartitionReference(Struct, frozen=True):
    """A partition as outcomes and events name it: `{topic, partition}`."""

    topic: str
    partition: int

    @property
    def key(self) -> TopicPartition:
        """The partition as the key the rest of Drover uses."""
        return TopicPartition(self.topic, self.partition)
