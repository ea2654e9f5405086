"""The scope of a shard: its clusters and topics."""

from dataclasses import dataclass

from drover.events.topics import TopicNames


@dataclass(frozen=True, slots=True)
class ShardScope:
    """The shard's number, how many there are, the configured clusters, and the names of the topics."""

    shard: int
    shards: int
    clusters: frozenset[str]
    topics: TopicNames

    @property
    def own_topics(self) -> frozenset[str]:
        """Drover's own topics, which may be moved only if a command says so."""
        return self.topics.own
