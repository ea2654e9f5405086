"""Events about who leads (KIP-491): canonical orders that are kept, elections, balances, and counts of leaders."""

from enum import StrEnum

from msgspec import Struct

from drover.events.base import Event, PartitionEvent, PartitionsEvent


class ListedBroker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One broker on the list, with its optional scope, end and reason.

    `topics` limits it to these, None means all. It ends at `until_ms` (ms since epoch, in log time), or `for_ms` after
    the event, where `until_ms` is None; with `until_in_sync` also as soon as the broker lives and all of its replicas
    of these topics are in sync. Without any of them it ends by command only.
    """

    broker: int
    topics: tuple[str, ...] | None = None
    until_ms: int | None = None
    for_ms: int | None = None
    reason: str = ""
    until_in_sync: bool = False


class OrderEnd(StrEnum):
    """The reason why the canonical order of a list is no longer kept."""

    RESTORED = "restored"
    MOVED = "moved"
    GONE = "gone"


class LeaderWaitReason(StrEnum):
    """The reason why a listed broker still leads a partition."""

    NO_IN_SYNC_REPLICA = "no-in-sync-replica"
    MOVED_BY_OTHERS = "moved-by-others"
    BEING_MOVED = "being-moved"
    REFUSED = "refused"
    UNREGISTERED_REPLICA = "unregistered-replica"


class ElectionOutcome(StrEnum):
    """The outcome of an election; `not-needed` says that the right broker led already."""

    ELECTED = "elected"
    NOT_NEEDED = "not-needed"
    REFUSED = "refused"
    NOT_SENT = "not-sent"
    UNKNOWN = "unknown"


class OrderOutcome(StrEnum):
    """The outcome of a call that puts a list into another order.

    With `reordered` the order is there. With `electing` it is too, and the election of its first is intended: the
    intent, durable before that call. `no-effect` says that the answer was lost, and that looks found nothing changed.
    """

    REORDERED = "reordered"
    ELECTING = "electing"
    REFUSED = "refused"
    NOT_SENT = "not-sent"
    NO_EFFECT = "no-effect"


class OrderChange(Struct, frozen=True, gc=False, omit_defaults=True):
    """One list that will be put into another order: `expected` is there, `replicas` is sent, `canonical` is kept.

    With `elects` its first is to be elected afterwards; `leader` leads now.
    """

    canonical: tuple[int, ...]
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    elects: bool = False
    leader: int | None = None


class LeaderOrdersIntended(
    PartitionsEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-orders-intended"
):
    """Alter calls will be made that only change the order of lists: the intent, durable before the calls.

    `changes` has one entry for each of `partitions`, in their order. The canonical orders are kept from now on.
    """

    topic_id: str
    changes: tuple[OrderChange, ...]


class LeaderOrdersAnswered(
    PartitionsEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-orders-answered"
):
    """Calls that change the order of lists have ended, all of these in the same way.

    `restored` are those of `partitions` that are in their canonical order again, which is no longer kept. `code` and
    `detail` are Kafka's own where it refused.
    """

    outcome: OrderOutcome
    restored: tuple[int, ...] = ()
    code: int = 0
    detail: str = ""


class LeaderElectionsEnded(
    PartitionsEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-elections-ended"
):
    """Elections have ended as they should: `elected` or `not-needed`, all of these alike.

    `restored` are those of `partitions` that are in their canonical order again, which is no longer kept.
    """

    outcome: ElectionOutcome
    restored: tuple[int, ...] = ()


class LeaderOrderKept(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-order-kept"):
    """A list is, or will be, in another order than its canonical one, which is kept so that it can be restored.

    `canonical` is that order, `replicas` the list that is there now.
    """

    topic_id: str
    canonical: tuple[int, ...]
    replicas: tuple[int, ...]


class LeaderOrderChanged(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-order-changed"):
    """Drover has put a list whose canonical order it keeps into the order `replicas`."""

    replicas: tuple[int, ...]


class LeaderOrderLeft(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-order-left"):
    """Somebody else has changed the order of a list that Drover had reordered: it is left as it is.

    `replicas` is their order, `expected` the one that Drover had left.
    """

    replicas: tuple[int, ...]
    expected: tuple[int, ...]


class LeaderOrderEnded(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-order-ended"):
    """The canonical order of a list is no longer kept: it is back, or the list is another one now, `replicas`."""

    why: OrderEnd
    replicas: tuple[int, ...]


class LeaderWaiting(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-waiting"):
    """A listed broker leads a partition and nobody else can for now; `detail` says why. It is tried again."""

    why: LeaderWaitReason
    detail: str


class LeaderWaitEnded(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-wait-ended"):
    """A partition does not wait for another leader any more."""


class LeaderElectionIntended(
    PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-election-intended"
):
    """An ElectLeaders call will be made: the intent, durable before the call.

    The first of `replicas` is to lead; `leader` leads now, None if that is not known.
    """

    topic_id: str
    replicas: tuple[int, ...]
    leader: int | None = None


class LeaderElectionEnded(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="leader-election-ended"):
    """An election has ended; `code` and `detail` are Kafka's own where it refused."""

    outcome: ElectionOutcome
    code: int = 0
    detail: str = ""


class LeaderBalanceBegun(Event, frozen=True, kw_only=True, omit_defaults=True, tag="leader-balance-begun"):
    """The first unlisted replica of every list is to lead where it can; of these topics, or of all (None)."""

    by: str
    reason: str
    topics: tuple[str, ...] | None = None


class LeaderBalanceEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="leader-balance-ended"):
    """The right broker leads wherever that was possible: `elected` elections, `left` partitions where it was not.

    It ends as well if it has moved no leader for ten minutes.
    """

    elected: int
    left: int


class LeaderCount(Struct, frozen=True):
    """How many partitions a broker leads, and of how many it is the first replica."""

    broker: int
    leaders: int
    preferred: int


class LeadersCounted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="leaders-counted"):
    """How many partitions each broker leads, where that has changed; counted while there is a list or a balance.

    `brokers` are all that live or are in a list, ascending.
    """

    brokers: tuple[LeaderCount, ...]


LeadershipEvent = (
    LeaderOrderKept
    | LeaderOrderChanged
    | LeaderOrderLeft
    | LeaderOrderEnded
    | LeaderOrdersIntended
    | LeaderOrdersAnswered
    | LeaderWaiting
    | LeaderWaitEnded
    | LeaderElectionIntended
    | LeaderElectionEnded
    | LeaderElectionsEnded
    | LeaderBalanceBegun
    | LeaderBalanceEnded
    | LeadersCounted
)
