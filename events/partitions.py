"""The one name of a partition, used as key everywhere."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic; orders by topic, then number, as every listing of Drover does."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The form operators type: `topic:partition`."""
        return f"{self.topic}:{self.partition}"
