"""The commands: what any client may ask for. This contract is public; fields may be added, never changed.

A command is a map in msgpack or JSON; its `type` says which. A field that is not listed here makes the command
malformed, so that a misspelt option is never silently ignored.
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert, field

from drover.events.clusters import HoldRole
from drover.events.fields import (
    BrokerId,
    ClusterName,
    GivenLimit,
    Identifier,
    Index,
    LimitName,
    Milliseconds,
    Rate,
    Replicas,
    TopicId,
    TopicName,
    Windows,
    Words,
)
from drover.events.leftover_throttles import LeftoverEntries, LeftoverRates
from drover.events.partitions import TopicPartition
from drover.events.plans import Priority, Stepping
from drover.events.python_calls import check_structs
from drover.events.refusals import RefusalCode


def _check_rise(rate: int | None, bound: int | None) -> None:
    if bound is not None and (rate is None or bound < rate):
        raise ValueError("the rate up to which a throttle may rise needs a throttle, and is not below it")


class PartitionName(Struct, frozen=True, forbid_unknown_fields=True):
    """A partition as commands write it: `{topic, partition}`."""

    topic: TopicName
    partition: Index

    @property
    def key(self) -> TopicPartition:
        """The partition as the key the rest of Drover uses."""
        return TopicPartition(self.topic, self.partition)


class PartitionTarget(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One partition of an alter command.

    `replicas` must be there: null stops that partition's move (KIP-455 page) and withdraws its entry in the queue.
    `original_replicas` is an assertion about the present list that is checked, never believed (R236-2). `topic_id` is
    one about the incarnation of the topic, in Kafka's own notation.
    """

    topic: TopicName
    partition: Index
    replicas: Replicas | None
    original_replicas: Replicas | None = None
    topic_id: TopicId | None = None

    @property
    def key(self) -> TopicPartition:
        """The partition as the key the rest of Drover uses."""
        return TopicPartition(self.topic, self.partition)


class Command(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every command says: which one it is, for which cluster, who asks, and why.

    `id` is chosen by the client and makes retries harmless: the same command under the same id has no effect for
    7 days.
    """

    id: Identifier
    cluster: ClusterName
    by: Words
    reason: Words
    version: Literal[1] = 1


class Alter(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="alter"):
    """Move partitions to new replica lists, as one plan (KIP-455).

    `plan` defaults to the id. Several commands may add to an open plan; `more` says that further ones will follow, so
    that the plan is not finished before they come. `throttle_bytes_per_second` is per broker; of it, of the bound
    `throttle_may_rise_to` up to which Drover may raise it, of `stepping`, `priority` and `windows` the plan's last
    accepted value holds. `windows` are maintenance windows of the plan, beside the cluster's; an empty text takes them
    away. `only_when_idle` refuses the whole command while Drover is moving anything on the cluster (R455-12).
    `empties` are the brokers that the plan is to take every replica off, `fills` those that have joined and are to get
    their share: other plans leave both alone while it is open. A target with a new replica on a broker that an open
    plan empties is refused, except with `allow_emptied_brokers`. With `drops_unregistered` a target that names brokers
    that are not registered with Kafka any more is taken without them, filled up with replicas that are there; otherwise
    it is refused.
    """

    partitions: tuple[PartitionTarget, ...]
    plan: Identifier | None = None
    more: bool = False
    throttle_bytes_per_second: Rate | None = None
    throttle_may_rise_to: Rate | None = None
    stepping: Stepping | None = None
    priority: Priority | None = None
    windows: Windows | None = None
    queue: bool = False
    allow_replication_factor_change: bool = True
    allow_drover_topics: bool = False
    only_when_idle: bool = False
    empties: tuple[BrokerId, ...] = ()
    fills: tuple[BrokerId, ...] = ()
    allow_emptied_brokers: bool = False
    drops_unregistered: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty list, a partition twice, and a bound that is below the throttle."""
        check_structs("partitions", self.partitions, PartitionTarget)
        if not self.partitions:
            raise ValueError("partitions is empty")
        keys = {target.key for target in self.partitions}
        if len(keys) != len(self.partitions):
            raise ValueError("partitions names a partition twice")
        _check_rise(self.throttle_bytes_per_second, self.throttle_may_rise_to)

    @property
    def plan_name(self) -> str:
        """The name the plan goes by."""
        return self.plan or self.id


class Cancel(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="cancel"):
    """End moves: roll back to the original replicas (KIP-236), or stop and keep what is in sync (KIP-455 draft).

    Exactly one scope; scopes are resolved when decided, include what is queued, and never touch unmanaged moves.
    `queued` is the id of an alter command with `queue`: what of it still waits in the queue is withdrawn (R236-12).
    """

    mode: Literal["rollback", "stop"]
    partitions: tuple[PartitionName, ...] | None = None
    topics: tuple[TopicName, ...] | None = None
    plan: Identifier | None = None
    all: bool = False
    queued: Identifier | None = None

    def __post_init__(self) -> None:
        """Refuse an empty, a missing and a double scope."""
        check_structs("partitions", self.partitions or (), PartitionName)
        names = (self.partitions, self.topics, self.plan, self.queued)
        if sum(name is not None for name in names) + self.all != 1:
            raise ValueError("exactly one of partitions, topics, plan, queued and all must be given")
        if self.partitions == () or self.topics == ():
            raise ValueError("the scope is empty")


class Throttle(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="throttle"):
    """Set the throttle of a plan that has not ended, or of the cluster; what is in flight follows at once.

    Without `plan` it is the cluster's, which holds for plans without one of their own. `clear` takes a throttle away: a
    plan goes by the cluster's again. Where a copy cannot keep up with what is written, Drover may raise a plan's up to
    `may_rise_to`.
    """

    plan: Identifier | None = None
    bytes_per_second: Rate | None = None
    clear: bool = False
    may_rise_to: Rate | None = None

    def __post_init__(self) -> None:
        """Refuse a missing rate, a rate beside `clear`, and a bound without a plan or below the rate."""
        if (self.bytes_per_second is None) != self.clear:
            raise ValueError("exactly one of bytes_per_second and clear must be given")
        if self.may_rise_to is not None and self.plan is None:
            raise ValueError("may_rise_to belongs to a plan")
        _check_rise(self.bytes_per_second, self.may_rise_to)


class RestoreThrottles(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="restore-throttles"):
    """Delete throttles that an interrupted run of any tool has left; what has changed since it was seen stays."""

    brokers: tuple[LeftoverRates, ...] = ()
    topics: tuple[LeftoverEntries, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an empty scope, and two entries for one broker or topic."""
        check_structs("brokers", self.brokers, LeftoverRates)
        check_structs("topics", self.topics, LeftoverEntries)
        if not self.brokers and not self.topics:
            raise ValueError("neither brokers nor topics is given")
        if len({rates.broker for rates in self.brokers}) != len(self.brokers):
            raise ValueError("brokers names a broker twice")
        if len({entries.topic for entries in self.topics}) != len(self.topics):
            raise ValueError("topics names a topic twice")


class ChangeLimits(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="limits"):
    """Change limits of the cluster, by their names or those of KIP-435 and Cruise Control (R435-1).

    Those in `values` hold whatever the settings file says. Those in `reset`, or all with `reset_all`, follow the file
    again. They hold from the next step on; what moves goes on. With `plan` the only value is `windows`: the maintenance
    windows of that plan, which hold beside the cluster's; null or an empty text takes them away.
    """

    values: dict[LimitName, GivenLimit] = field(default_factory=dict)
    reset: tuple[LimitName, ...] = ()
    reset_all: bool = False
    plan: Identifier | None = None

    def __post_init__(self) -> None:
        """Refuse an empty change, and a reset of a plan's limits."""
        if not (self.values or self.reset or self.reset_all):
            raise ValueError("values, reset or reset_all must be given")
        if self.reset and self.reset_all:
            raise ValueError("reset and reset_all must not be given together")
        if self.plan is not None and (self.reset or self.reset_all):
            raise ValueError("a plan's windows are not reset: set them to null to take them away")


class PausePlan(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="pause"):
    """Let no further step of a plan begin until it is resumed; what runs goes on, and other plans too."""

    plan: Identifier


class ResumePlan(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="resume"):
    """Let steps of a paused plan begin again, whoever paused it."""

    plan: Identifier


class HoldBroker(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="hold-broker"):
    """Let no further copy into a broker begin, none out of it, or neither, until it is released; what runs goes on."""

    broker: BrokerId
    role: HoldRole = HoldRole.BOTH


class ReleaseBroker(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="release-broker"):
    """Let copies into and out of a held broker begin again, whoever holds it."""

    broker: BrokerId


class Freeze(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="freeze"):
    """Let nothing new start on the cluster until the same requester unfreezes it (R236-9)."""


class Unfreeze(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="unfreeze"):
    """End the requester's own freeze, or with `all` everyone's; work starts again when none remains."""

    all: bool = False


class Repair(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="repair"):
    """End moves that Kafka itself can never end: a broker is both being added and being removed.

    `partitions` names them; without it every one that is known is meant. They are cancelled, whoever began them.
    """

    partitions: tuple[PartitionName, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an empty scope."""
        check_structs("partitions", self.partitions or (), PartitionName)
        if self.partitions == ():
            raise ValueError("the scope is empty")


class BlacklistEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One broker of the list, and for which topics (None: all), until when (None: until a command ends it) and why.

    With `until_in_sync` it leaves the list as soon as it lives and all of its replicas of these topics are in sync.
    """

    broker: BrokerId
    topics: tuple[TopicName, ...] | None = None
    until_ms: Milliseconds | None = None
    reason: str = ""
    until_in_sync: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty scope."""
        if self.topics == ():
            raise ValueError("topics is empty")


class Blacklist(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="blacklist"):
    """Set the complete list of brokers that should not lead (R491-1); empty clears it.

    `entries` say more about some of them: for which topics, until when, why. A broker that only an entry names is
    listed as well, after the others.
    """

    brokers: tuple[BrokerId, ...]
    entries: tuple[BlacklistEntry, ...] = ()

    def __post_init__(self) -> None:
        """Refuse two entries for one broker."""
        check_structs("entries", self.entries, BlacklistEntry)
        if len({entry.broker for entry in self.entries}) != len(self.entries):
            raise ValueError("entries names a broker twice")


class Demote(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="demote-broker"):
    """Put one broker on the list of those that should not lead; the others stay on it.

    `topics` limits it to these, in addition to those it is listed for already; None means all. It ends `for_ms` after
    it was decided, with `until_in_sync` as soon as the broker lives and all of its replicas of these topics are in
    sync, or by command: whichever comes first. A broker has one end for all of its topics: a later one holds for all of
    them, an earlier one with further topics is refused, and one for some of its topics changes nothing.
    """

    broker: BrokerId
    topics: tuple[TopicName, ...] | None = None
    for_ms: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    until_in_sync: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty scope."""
        if self.topics == ():
            raise ValueError("topics is empty")


class Restore(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="restore-broker"):
    """Take one broker from the list of those that should not lead, for some topics or (None) altogether."""

    broker: BrokerId
    topics: tuple[TopicName, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an empty scope."""
        if self.topics == ():
            raise ValueError("topics is empty")


class BalanceLeaders(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="balance-leaders"):
    """Let the first unlisted replica of every list lead where it can, of some topics or (None) of all (R491-3)."""

    topics: tuple[TopicName, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an empty scope."""
        if self.topics == ():
            raise ValueError("topics is empty")


class BrokerFailed(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="broker-failed"):
    """Say that a broker failed at a moment (R46-1)."""

    broker: BrokerId
    at_ms: Milliseconds


class BrokerReturned(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="broker-returned"):
    """Say that a failed broker is back (R46-2)."""

    broker: BrokerId
    at_ms: Milliseconds


class HealCommand(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="heal"):
    """Decide about the healing of brokers that are away (KIP-46).

    `start` heals `broker` now, without waiting for its time; `skip` leaves it alone until it is back. `stop` begins no
    further chunk, of the heal under way or of `broker` alone, and skips its brokers; `rollback` takes the running chunk
    back as well.
    """

    action: Literal["start", "skip", "stop"]
    broker: BrokerId | None = None
    rollback: bool = False

    def __post_init__(self) -> None:
        """Refuse an action without its broker, and a rollback without `stop`."""
        if self.broker is None and self.action != "stop":
            raise ValueError(f"{self.action} needs a broker")
        if self.rollback and self.action != "stop":
            raise ValueError("rollback belongs to stop")


class RequestRefused(Command, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="request-refused"):
    """Record that what somebody wrote to a node in ZooKeeper cannot be carried out: the outcome is this refusal.

    Only the intake of ZooKeeper sends it, about requests that never become a command.
    """

    path: Annotated[str, Meta(min_length=1, max_length=1024)]
    code: RefusalCode
    detail: Words


# The types of each command topic; a new command is added here.
OnAlter = Alter | Throttle | ChangeLimits | RestoreThrottles | RequestRefused
Withholding = Freeze | Unfreeze | PausePlan | ResumePlan | HoldBroker | ReleaseBroker
OnCancel = Cancel | Repair | Withholding
OnBlacklist = Blacklist | Demote | Restore | BalanceLeaders
OnBrokerFailed = BrokerFailed | BrokerReturned | HealCommand

AnyCommand = OnAlter | OnCancel | OnBlacklist | OnBrokerFailed
# In the order of events.topics.COMMAND_KINDS; a union of one type is that type.
TYPES_BY_TOPIC: tuple[tuple[type[Command], ...], ...] = tuple(
    get_args(types) or (types,) for types in (OnAlter, OnCancel, OnBlacklist, OnBrokerFailed)
)


def is_cluster_name(name: str) -> bool:
    """Whether a command may name this cluster."""
    try:
        convert(name, ClusterName)
    except ValidationError:
        return False
    return True
