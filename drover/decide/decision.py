"""The inputs and the result of a decision."""

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from drover.brokers import Brokers
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled
from drover.events.records import AnyEvent, DeferredCancel
from drover.events.refusals import Refusal, RefusalCode
from drover.facts import Move, PartitionFacts
from drover.inventory import LogDirectory


def _never_seen(_key: TopicPartition) -> PartitionFacts | None:
    return None


class OwnTopics(Struct, frozen=True):
    """The topics of Drover itself, and whether the workers' settings let commands move them."""

    names: frozenset[str] = frozenset()
    may_move: bool = False


class Facts(Struct, frozen=True):
    """The cluster as it was observed just before the decision, and Drover's own topics.

    `partitions` has an entry for every partition the command names (None: it does not exist). `unavailable` says why
    the cluster could not be observed. `recent` returns the last observation of any other partition, None if that is too
    long ago. `appended_ms` is the broker's time of the command's record, which
    bounds the times that clients write; `decided_ms` is the log's time of the decision. `unreachable` and `registered`
    are as in `Brokers`. `directories` are the log directories of each broker that has described them.
    """

    partitions: Mapping[TopicPartition, PartitionFacts | None] = field(default_factory=dict)
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    live_brokers: frozenset[int] = frozenset()
    min_isr: Mapping[str, int] = field(default_factory=dict)
    unavailable: str | None = None
    own_topics: OwnTopics = OwnTopics()
    recent: Callable[[TopicPartition], PartitionFacts | None] = _never_seen
    appended_ms: int | None = None
    decided_ms: int = 0
    unreachable: frozenset[int] = frozenset()
    registered: frozenset[int] | None = None
    directories: Mapping[int, tuple[LogDirectory, ...]] = field(default_factory=dict)

    @property
    def brokers(self) -> Brokers:
        """The brokers by what is known of them: alive, unreachable, registered."""
        return Brokers(self.live_brokers, self.unreachable, self.registered)


class NeededObservations(Struct, frozen=True):
    """Which partitions to look at before a command is decided, as the state is now.

    `worth` are worth a look, for example because the brokers of a new target must be alive. `required` cannot be
    decided without one, because Drover is not moving them.
    """

    worth: tuple[TopicPartition, ...] = ()
    required: tuple[TopicPartition, ...] = ()


NONE_NEEDED = NeededObservations()


class PartitionDecision(Struct, frozen=True):
    """The decision about one partition: accepted if there are events, refused, or already as asked.

    `joins` says that it gives its plan something to do.
    """

    events: tuple[AnyEvent, ...] = ()
    refusal: Refusal | None = None
    unchanged: bool = False
    joins: bool = False


class Decision(Struct, frozen=True):
    """The decision about one command: events to record, and which partitions were accepted, unchanged or refused.

    `deferred` are the accepted partitions whose rollback or stop a guard holds off for now. `remarks` are for the
    author of the command.
    """

    events: tuple[AnyEvent, ...] = ()
    accepted: tuple[TopicPartition, ...] = ()
    unchanged: tuple[TopicPartition, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    plan: str | None = None
    deferred: tuple[DeferredCancel, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether nothing of the command was accepted."""
        if not self.refusals or self.accepted or self.unchanged:
            return False
        return not any(isinstance(event, PlanCancelled) for event in self.events)


def refuse(code: RefusalCode, detail: str, *, plan: str | None = None) -> Decision:
    """Refuse a command as a whole."""
    return Decision(refusals=(Refusal(code, detail),), plan=plan)


def refuse_partition(key: TopicPartition, code: RefusalCode, detail: str) -> Refusal:
    """Refuse one partition of a command."""
    return Refusal(code, detail, topic=key.topic, partition=key.partition)
