"""Entries of moves that still wait: a topic's lists get them together with those of a move that begins.

Each change of a topic's lists reaches every broker, which then sets up every log of the topic anew. So the lists are
changed for many moves at once: an entry has no effect before its partition has a replica that is out of sync.
"""

from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.state.reassignment import Reassignment

# Kafka keeps a topic's throttled replicas in one string of at most 32,767 bytes; an entry takes up to 15.
MAX_ENTRIES_PER_TOPIC = 2000
# On the leader side, of moves that wait.
MAX_ENTRIES_AHEAD = 1000
# Where moves end together, others follow at once: so long their entries stay although nothing of the topic moves.
KEPT_IDLE_MS = 5000
# Beyond so many no others of the topic are tried in one batch.
MAX_EXAMINED = 1000

Sides = tuple[frozenset[str], frozenset[str]]
NO_SIDES: Sides = (frozenset(), frozenset())


@dataclass(slots=True)
class Ahead:
    """The moves of one topic whose entries were asked for before they began; each stays until it ends.

    `entries` are those of the leader side and of the follower side. `waiting` counts the entries on the leader side of
    those that need none at present.
    """

    entries: dict[TopicPartition, Sides] = field(default_factory=dict)
    waiting: int = 0

    def of(self, key: TopicPartition) -> Sides:
        """Return the entries of one move; none if none were asked for."""
        return self.entries.get(key, NO_SIDES)


def entries_ahead(reassignment: Reassignment) -> Sides:
    """List what its next step needs, and on the follower side also what later ones do."""
    partition, current = reassignment.key.partition, reassignment.current
    return (
        frozenset(f"{partition}:{broker}" for broker in current),
        frozenset(f"{partition}:{broker}" for broker in reassignment.target if broker not in current),
    )
