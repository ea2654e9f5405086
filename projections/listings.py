"""PURE: what Kafka would list of a topic's partitions as far as the log knows, and the steps that run.

Both are kept as the encoded pieces of their documents: one partition that moves on does not have those of a thousand
others written anew.
"""

from functools import lru_cache

import msgspec

from drover.reassignment.phase import Phase
from drover.reassignment.values import Reassignment
from drover.unmanaged.state import UnmanagedMove
from projections.entries import Members

# Kafka lists the move of the running step in these: from the moment it may have been sent until it is gone for certain.
_LISTED = frozenset(
    {Phase.INTENDED, Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCEL_INTENDED, Phase.CANCELLING}
)  # fmt: skip
_RESTORED = frozenset({Phase.RESTORE_INTENDED, Phase.RESTORING})


class Listing(msgspec.Struct, frozen=True, gc=False):
    """A partition as Kafka's topic znode would show it: the target's order first, what leaves behind it (R455-10)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    topic_id: str = ""


class BatchEntry(msgspec.Struct, frozen=True, gc=False):
    """The step of one partition that runs: the replicas before it, and those it leads to (KIP-435)."""

    current: tuple[int, ...]
    target: tuple[int, ...]


class TopicListings:
    """The listings of one topic by partition, and the members of the objects that show them, by Kafka's names."""

    __slots__ = ("adding", "by_partition", "partitions", "removing")

    def __init__(self) -> None:
        self.by_partition: dict[int, Listing] = {}
        # An object's members are in the order of their names: those are strings, and "10" comes before "9".
        self.partitions: Members[str] = Members()
        self.adding: Members[str] = Members()
        self.removing: Members[str] = Members()

    @property
    def size(self) -> int:
        """How many bytes of members one document shows of them; it shows what comes and goes by two names (X15)."""
        return self.partitions.size + 2 * self.adding.size + 2 * self.removing.size

    def put(self, partition: int, listing: Listing) -> None:
        """List a partition, or list it anew."""
        self.by_partition[partition] = listing
        name = str(partition)
        self.partitions.put(name, _member(partition, listing.replicas))
        for members, brokers in ((self.adding, listing.adding), (self.removing, listing.removing)):
            if brokers:
                members.put(name, _member(partition, brokers))
            else:
                members.drop(name)

    def drop(self, partition: int) -> None:
        """Let a listed partition go."""
        del self.by_partition[partition]
        name = str(partition)
        for members in (self.partitions, self.adding, self.removing):
            members.drop(name)


class TopicBatch:
    """The steps that run in one topic by partition: what KIP-435 calls the current batch."""

    __slots__ = ("by_partition", "members")

    def __init__(self) -> None:
        self.by_partition: dict[int, BatchEntry] = {}
        self.members: Members[int] = Members()

    def put(self, partition: int, step: BatchEntry) -> None:
        """Take in the step of a partition, in place of the one before."""
        self.by_partition[partition] = step
        current, target = _encoded(step.current), _encoded(step.target)
        member = b'{"current_replicas":%b,"partition_index":%d,"target_replicas":%b}' % (current, partition, target)
        self.members.put(partition, member)

    def drop(self, partition: int) -> None:
        """Let the step of a partition go."""
        del self.by_partition[partition]
        self.members.drop(partition)


def listing_of(reassignment: Reassignment | None, unmanaged: UnmanagedMove | None) -> Listing | None:
    """Tell what Kafka's topic znode would show of a partition, as far as the log knows; Drover's own move first."""
    if reassignment is None:
        return None if unmanaged is None else Listing(unmanaged.replicas, unmanaged.adding, unmanaged.removing)
    topic_id, step = reassignment.topic_id, reassignment.step
    if reassignment.phase in _RESTORED:
        return Listing(reassignment.restoring or reassignment.destination, topic_id=topic_id)
    if step is None or reassignment.phase not in _LISTED or reassignment.current == step.replicas:
        return Listing(reassignment.current, topic_id=topic_id)
    return _moving(step.expected, step.replicas, topic_id)


def step_of(reassignment: Reassignment) -> BatchEntry | None:
    """Tell which step of a reassignment Kafka may be carrying out; None between two steps and while it waits."""
    step = reassignment.step
    if reassignment.phase in _RESTORED:
        return BatchEntry(reassignment.current, reassignment.restoring or reassignment.destination)
    if step is None or reassignment.phase not in _LISTED or reassignment.current == step.replicas:
        return None
    return BatchEntry(step.expected, step.replicas)


def is_shown_alike(before: Reassignment, after: Reassignment) -> bool:
    """Tell whether listing and running step are certainly the same: most events of a step change its phase only."""
    return (
        before.step is after.step
        and before.current is after.current
        and before.topic_id is after.topic_id
        and before.phase in _LISTED
        and after.phase in _LISTED
    )


# A cluster has few different pairs of lists, and this is asked at every event of a partition.
@lru_cache(maxsize=4096)
def _moving(expected: tuple[int, ...], replicas: tuple[int, ...], topic_id: str) -> Listing:
    removing = tuple(broker for broker in expected if broker not in replicas)
    adding = tuple(broker for broker in replicas if broker not in expected)
    return Listing((*replicas, *removing), adding, removing, topic_id)


def _member(partition: int, brokers: tuple[int, ...]) -> bytes:
    return b'"%d":%b' % (partition, _encoded(brokers))


@lru_cache(maxsize=4096)
def _encoded(brokers: tuple[int, ...]) -> bytes:
    return msgspec.json.encode(brokers)
