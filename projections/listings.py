"""PURE: the partitions of a topic as Kafka would list them, according to the log, and their running steps.

Both are kept as encoded pieces of their documents, so that a change of one partition does not encode the others again.
"""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from drover.projections.entries import Members
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment
from drover.state.unmanaged import UnmanagedMove

# The phases in which Kafka may list the running step: from the intent of its call until it is gone for certain.
_LISTED = frozenset(
    {Phase.INTENDED, Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCEL_INTENDED, Phase.CANCELLING}
)  # fmt: skip
_RESTORED = frozenset({Phase.RESTORE_INTENDED, Phase.RESTORING})


class Listing(msgspec.Struct, frozen=True, gc=False):
    """A partition as Kafka's topic znode would show it: the target's order, then the removed replicas (R455-10)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    topic_id: str = ""


class BatchEntry(msgspec.Struct, frozen=True, gc=False):
    """The running step of one partition: the replicas before and after it (KIP-435)."""

    current: tuple[int, ...]
    target: tuple[int, ...]


Shown = TypeVar("Shown", Listing, BatchEntry)
Pieces = TypeVar("Pieces", bound="TopicPieces[Any]")


class TopicPieces(ABC, Generic[Shown]):
    """The entries of one topic's documents, keyed by partition; subclasses define the encoding."""

    __slots__ = ("by_partition",)

    def __init__(self) -> None:
        self.by_partition: dict[int, Shown] = {}

    def show(self, partition: int, shown: Shown | None) -> bool:
        """Set the entry of a partition, or remove it with None; return whether that is a change."""
        if self.by_partition.get(partition) == shown:
            return False
        if shown is None:
            del self.by_partition[partition]
            self._drop(partition)
        else:
            self.by_partition[partition] = shown
            self._put(partition, shown)
        return True

    @abstractmethod
    def _put(self, partition: int, shown: Shown) -> None: ...

    @abstractmethod
    def _drop(self, partition: int) -> None: ...


def keep(by_topic: dict[str, Pieces], topic: str, pieces: Pieces) -> None:
    """Keep the pieces of a topic while there are any."""
    if pieces.by_partition:
        by_topic[topic] = pieces
    else:
        by_topic.pop(topic, None)


class TopicListings(TopicPieces[Listing]):
    """The listings of one topic, and the members of the objects that show them, by Kafka's names."""

    __slots__ = ("adding", "partitions", "removing")

    def __init__(self) -> None:
        super().__init__()
        # An object's members are sorted by name, as strings: "10" comes before "9".
        self.partitions: Members[str] = Members()
        self.adding: Members[str] = Members()
        self.removing: Members[str] = Members()

    @property
    def size(self) -> int:
        """The bytes of members in a document, which has added and removed replicas under two names (X15)."""
        return self.partitions.size + 2 * self.adding.size + 2 * self.removing.size

    def _put(self, partition: int, shown: Listing) -> None:
        name = str(partition)
        self.partitions.put(name, _member(partition, shown.replicas))
        for members, brokers in ((self.adding, shown.adding), (self.removing, shown.removing)):
            if brokers:
                members.put(name, _member(partition, brokers))
            else:
                members.drop(name)

    def _drop(self, partition: int) -> None:
        name = str(partition)
        for members in (self.partitions, self.adding, self.removing):
            members.drop(name)


class TopicBatch(TopicPieces[BatchEntry]):
    """The running steps of one topic: KIP-435's current batch."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        super().__init__()
        self.members: Members[int] = Members()

    def _put(self, partition: int, shown: BatchEntry) -> None:
        current, target = _encoded(shown.current), _encoded(shown.target)
        member = b'{"current_replicas":%b,"partition_index":%d,"target_replicas":%b}' % (current, partition, target)
        self.members.put(partition, member)

    def _drop(self, partition: int) -> None:
        self.members.drop(partition)


def listing_of(reassignment: Reassignment | None, unmanaged: UnmanagedMove | None) -> Listing | None:
    """Return a partition as Kafka's topic znode would show it, according to the log; Drover's own move comes first."""
    if reassignment is None:
        return None if unmanaged is None else Listing(unmanaged.replicas, unmanaged.adding, unmanaged.removing)
    topic_id, step = reassignment.topic_id, reassignment.step
    if reassignment.phase in _RESTORED:
        return Listing(reassignment.restoring or reassignment.destination, topic_id=topic_id)
    if step is None or reassignment.phase not in _LISTED or reassignment.current == step.replicas:
        return Listing(reassignment.current, topic_id=topic_id)
    return _moving(step.expected, step.replicas, topic_id)


def step_of(reassignment: Reassignment) -> BatchEntry | None:
    """Return the step of a reassignment that Kafka may be carrying out; None between steps and while it waits."""
    step = reassignment.step
    if reassignment.phase in _RESTORED:
        return BatchEntry(reassignment.current, reassignment.restoring or reassignment.destination)
    if step is None or reassignment.phase not in _LISTED or reassignment.current == step.replicas:
        return None
    return BatchEntry(step.expected, step.replicas)


def is_shown_alike(before: Reassignment, after: Reassignment) -> bool:
    """Whether listing and running step are certainly the same, as after most events of a step."""
    return (
        before.step is after.step
        and before.current is after.current
        and before.topic_id is after.topic_id
        and before.phase in _LISTED
        and after.phase in _LISTED
    )


# Cached, because it is needed at every event of a partition, and a cluster has few different pairs of lists.
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
