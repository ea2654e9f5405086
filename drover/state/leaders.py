"""The slice of the state with the brokers that should not lead, and the reorders and elections for their sake."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from drover.events.leadership import LeaderWaitReason
from drover.events.partitions import TopicPartition
from drover.state.declared import index, items_by_key, recorded
from drover.state.lists import ListsState

_NO_BROKERS: frozenset[int] = frozenset()


class Listing(Struct, frozen=True, gc=False, omit_defaults=True):
    """A broker on the list: its topics (None: all), end (ms of log time), author, reason and start.

    With `until_in_sync` it also ends once the broker's replicas of these topics are in sync.
    """

    by: str
    reason: str
    since_ms: int
    topics: tuple[str, ...] | None = None
    until_ms: int | None = None
    until_in_sync: bool = False

    @property
    def ends(self) -> tuple[int | None, bool]:
        """The conditions that end it without a command: a time, and whether being in sync ends it."""
        return self.until_ms, self.until_in_sync


class KeptOrder(Struct, frozen=True, gc=False, omit_defaults=True):
    """A list that Drover has reordered, or is about to.

    `canonical` is the order to restore, `replicas` the one that Drover left. With `left_alone` it is somebody else's
    order, which stays until the list of brokers for this topic changes. `unresolved` is the list of a call whose answer
    was lost and that has had no effect so far: if it appears later, it is Drover's own.
    """

    topic_id: str
    canonical: tuple[int, ...]
    replicas: tuple[int, ...]
    since_ms: int
    left_alone: bool = False
    unresolved: tuple[int, ...] = ()


class IntendedOrder(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call that only changes the order of a list, and whose outcome is still to come.

    The list is `expected` before and `replicas` after it. With `elects` its first replica is elected afterwards;
    `leader` led when the call was intended.
    """

    topic_id: str
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    since_ms: int
    elects: bool = False
    leader: int | None = None


class LeaderWait(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reason why a listed broker still leads a partition, and since when it holds."""

    why: LeaderWaitReason
    detail: str
    since_ms: int


class Election(Struct, frozen=True, gc=False, omit_defaults=True):
    """An election whose outcome is still to come: the first of `replicas` is to lead, `leader` led before."""

    topic_id: str
    replicas: tuple[int, ...]
    leader: int | None
    since_ms: int


class Balance(Struct, frozen=True, gc=False, omit_defaults=True):
    """A balance of leaders under way, of some topics or (None) of all; `elected` counts its elections."""

    by: str
    reason: str
    since_ms: int
    topics: tuple[str, ...] | None = None
    elected: int = 0


class LeaderTally(Struct, frozen=True, gc=False):
    """The number of partitions that a broker leads, the number that prefer it as leader, and the time of the count."""

    leaders: int
    preferred: int
    at_ms: int


def _limited(listings: Mapping[int, Listing]) -> object:
    """Return the hashed part of the listings: scopes and ends. Their authors are shown, not hashed."""
    return sorted(
        (broker, listing.topics, listing.until_ms, *((True,) if listing.until_in_sync else ()))
        for broker, listing in listings.items()
        if listing.topics is not None or listing.until_ms is not None or listing.until_in_sync
    )


@dataclass(eq=False)
class LeadershipState(ListsState):
    """The complete list of brokers that should not lead (R491-1), and the canonical order of every reordered list.

    `listings` describes the brokers of `blacklist`. `orders` are the lists that are not in their canonical order;
    `waiting` the partitions that a listed broker leads although it should not; `intended_orders` and `elections` the
    calls whose outcome is still to come. `listed_everywhere` are those listed for all topics, `listed_in_topics` those
    listed for some.
    """

    blacklist: tuple[int, ...] = recorded("blacklist", (), described_as=("blacklist",))
    listings: dict[int, Listing] = recorded(
        "listings", factory=dict, content=_limited, described_as=("listed broker", "listed", "restored")
    )
    orders: dict[TopicPartition, KeptOrder] = recorded(
        "leader_orders", factory=dict, content=items_by_key, described_as=("canonical order", "kept", "restored")
    )
    waiting: dict[TopicPartition, LeaderWait] = recorded(
        "leader_waits", factory=dict, content=items_by_key, described_as=("leader", "waits", "waits no more")
    )
    intended_orders: dict[TopicPartition, IntendedOrder] = recorded(
        "intended_orders", factory=dict, content=items_by_key, described_as=("change of order", "intended", "answered")
    )
    elections: dict[TopicPartition, Election] = recorded(
        "elections", factory=dict, content=items_by_key, described_as=("election", "intended", "ended")
    )
    balance: Balance | None = recorded("balance", described_as=("balance of leaders",))
    leader_counts: dict[int, LeaderTally] = recorded(
        "leader_counts",
        factory=dict,
        content=items_by_key,
        described_as=("leaders of broker", "counted", "not counted"),
    )
    listed_everywhere: frozenset[int] = index(frozenset)
    listed_in_topics: dict[str, frozenset[int]] = index(dict)

    def rebuild_indexes(self) -> None:
        """Rebuild the index of the list by topic."""
        super().rebuild_indexes()
        self.index_the_list()

    def index_the_list(self) -> None:
        """Index which brokers are listed for which topics."""
        scopes = {broker: self.listings[broker].topics for broker in self.blacklist if broker in self.listings}
        self.listed_everywhere = frozenset(broker for broker in self.blacklist if scopes.get(broker) is None)
        # A list may name a hundred thousand topics, so each entry is visited only once.
        brokers_of: dict[str, set[int]] = {}
        for broker, scope in scopes.items():
            for topic in scope or ():
                brokers_of.setdefault(topic, set()).add(broker)
        self.listed_in_topics = {topic: frozenset(brokers) for topic, brokers in brokers_of.items()}

    def kept_order(self, key: TopicPartition, topic_id: str) -> KeptOrder | None:
        """Return the order to restore of a list; None if there is none, or if it belongs to a deleted topic."""
        kept = self.orders.get(key)
        return None if kept is None or kept.left_alone or kept.topic_id != topic_id else kept

    def canonical_of(self, key: TopicPartition, topic_id: str, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Return the canonical order of a current list, which differs only if Drover has reordered it."""
        kept = self.kept_order(key, topic_id)
        if kept is None:
            return replicas
        intended = self.intended_orders.get(key)
        is_ours = replicas in {kept.replicas, kept.unresolved} or (intended and replicas == intended.replicas)
        return kept.canonical if is_ours else replicas

    @property
    def leaders_under_way(self) -> int:
        """Return the number of open calls that move leaders, or reorder lists for it."""
        return len(self.elections) + len(self.intended_orders)

    def listed_for(self, topic: str) -> frozenset[int]:
        """Return the brokers that should not lead partitions of a topic."""
        if not self.blacklist:
            return _NO_BROKERS
        some = self.listed_in_topics.get(topic)
        return self.listed_everywhere if some is None else self.listed_everywhere | some
