"""The base of every event: the cluster it is about, and an explicit string tag that never changes."""

from msgspec import Struct

from drover.events.partitions import TopicPartition


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Something that happened, in the past tense; readers ignore fields they do not know and stop at unknown tags."""

    cluster: str


class PartitionEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event about one reassignment, found by its partition."""

    topic: str
    partition: int

    @property
    def key(self) -> TopicPartition:
        """The partition whose reassignment this is about."""
        # `TopicPartition(...)` without its Python function, because this runs for every event of a log.
        return tuple.__new__(TopicPartition, (self.topic, self.partition))


class PartitionsEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event about many partitions of one topic to which the same has happened; each of them is named once."""

    topic: str
    partitions: tuple[int, ...]

    @property
    def keys(self) -> tuple[TopicPartition, ...]:
        """The partitions that this is about, in the order of `partitions`."""
        make, topic = tuple.__new__, self.topic  # see PartitionEvent.key
        return tuple([make(TopicPartition, (topic, number)) for number in self.partitions])
