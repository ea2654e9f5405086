"""The scope of a shard: its clusters and topics."""

from dataclasses import dataclass

from drover.decide.decision import OwnTopics
from drover.events.topics import TopicNames


@dataclass(frozen=True, slots=True)
class ShardScope:
    """The shard's number, how many there are, the configured clusters, and the names of the topics."""

    shard: int
    shards: int
    clusters: frozenset[str]
    topics: TopicNames
    moves_own_topics: bool = False

    @property
    def own_topics(self) -> OwnTopics:
        """Drover's own topics, which are moved only if both the workers' settings and a command say so."""
        return OwnTopics(self.topics.own, self.moves_own_topics)
