"""Entries of moves that still wait: a topic's lists get them together with those of a move that begins.

Each change of a topic's lists makes every broker configure every log of the topic anew. So the lists are changed for
many moves at once: an entry has no effect before its partition has a replica out of sync.
"""

from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.state.reassignment import Reassignment

# Kafka keeps a topic's throttled replicas in one string of at most 32,767 bytes; an entry takes up to 15.
MAX_ENTRIES_PER_TOPIC = 2000
# At most so many leader-side entries are of waiting moves.
MAX_ENTRIES_AHEAD = 1000
# Where moves end together, others follow at once: their entries stay this long after the topic's last move has ended.
KEPT_IDLE_MS = 5000
# At most so many moves of a topic are examined in one batch.
MAX_EXAMINED = 1000

Sides = tuple[frozenset[str], frozenset[str]]
NO_SIDES: Sides = (frozenset(), frozenset())


@dataclass(slots=True)
class Ahead:
    """The moves of one topic whose entries were asked for before they began; each stays until it ends.

    `entries` are those of the leader side and of the follower side. `waiting` counts the leader-side entries of moves
    that do not need them yet.
    """

    entries: dict[TopicPartition, Sides] = field(default_factory=dict)
    waiting: int = 0

    def of(self, key: TopicPartition) -> Sides:
        """Return the entries of one move; none if none were asked for."""
        return self.entries.get(key, NO_SIDES)


def entries_ahead(reassignment: Reassignment) -> Sides:
    """Return the entries of its next step, and on the follower side also those of later steps."""
    partition, current = reassignment.key.partition, reassignment.current
    return (
        frozenset(f"{partition}:{broker}" for broker in current),
        frozenset(f"{partition}:{broker}" for broker in reassignment.target if broker not in current),
    )
