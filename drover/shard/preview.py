"""What of the unread part of `drover.cancel` may be decided before the rest: places for it, and who must wait."""

from array import array
from zlib import crc32

from drover.events.commands import AnyCommand, Cancel, Unfreeze
from drover.shard.messages import Arrival
from drover.shard.queues import weight_of

# Decided before their turn, they are named in every record until the cursor has passed them: drover/shard/inbox.py.
MOST_PREVIEWED = 128
MOST_PREVIEWED_BYTES = 64 * 1024
# A requester of whom so many commands wait has no use for a place.
MOST_OF_ONE = 8
_BUCKETS = 4096


class Preview:
    """How far the unread commands were looked at, which of them were taken in, and whose were passed over.

    The places are shared evenly by the clusters of the shard, and cancels take at most half of a cluster's share, so
    that a freeze finds one. What was passed over is remembered by hashes: bounded, and a collision makes somebody wait.
    """

    def __init__(self, clusters: frozenset[str]) -> None:
        self._clusters = clusters
        self._share = max(2, MOST_PREVIEWED // max(1, len(clusters)))
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.next_offset = 0
        # By offset: the cluster, and whether it is a cancel; until the offset is read.
        self._places: dict[int, tuple[str, bool]] = {}
        # The last offset that was passed over, by requester and by cluster.
        self._passed = array("q", [-1]) * _BUCKETS

    def __contains__(self, offset: int) -> bool:
        return offset in self._places

    def concerns(self, command: AnyCommand) -> bool:
        """Whether it is about a cluster of this shard."""
        return command.cluster in self._clusters

    def has_place(self, arrival: Arrival, command: AnyCommand) -> bool:
        """Whether one more of its kind may be taken in."""
        if weight_of(arrival) > MOST_PREVIEWED_BYTES or len(self._places) >= MOST_PREVIEWED:
            return False
        cancels = [is_cancel for cluster, is_cancel in self._places.values() if cluster == command.cluster]
        is_full = isinstance(command, Cancel) and sum(cancels) >= self._share // 2
        return len(cancels) < self._share and not is_full

    def is_behind(self, command: AnyCommand, next_read: int) -> bool:
        """Whether it must not overtake something that was passed over; what lies before `next_read` is read by now."""
        return any(self._passed[bucket] >= next_read for bucket in (_by(command), _everyone(command)))

    def take_in(self, offset: int, command: AnyCommand) -> None:
        """Give it a place."""
        self._places[offset] = (command.cluster, isinstance(command, Cancel))

    def pass_over(self, offset: int, command: AnyCommand) -> None:
        """Leave it where it is; what must not overtake it stays behind it."""
        self._passed[_by(command)] = offset
        if isinstance(command, Unfreeze) and command.all:
            self._passed[_everyone(command)] = offset

    def read(self, offset: int) -> bool:
        """Note that this offset is read now; return whether it was taken in before."""
        return self._places.pop(offset, None) is not None


def _by(command: AnyCommand) -> int:
    return crc32(f"{command.cluster}\0{command.by}".encode()) % _BUCKETS


def _everyone(command: AnyCommand) -> int:
    return crc32(command.cluster.encode()) % _BUCKETS
