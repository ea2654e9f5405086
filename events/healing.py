"""Events about brokers that stay away, and about replacing their replicas (KIP-46)."""

from enum import StrEnum

from msgspec import Struct

from drover.events.base import Event


class HealingLimits(Struct, frozen=True, omit_defaults=True):
    """Limits of healing; see `drover.reconcile.healing`.

    A broker that is away for `failure_interval_ms` is healed; -1: never by itself (R46-8). `alarm_ms` is when its
    absence is worth an alarm; -1: never. A chunk has `chunk_partitions`. Nothing begins while more brokers are away
    than `mass_failure_brokers` and than `mass_failure_percent` of all, or once `max_bytes_per_day` were begun (None: no
    bound). A broker that came back `flapping_returns` times within `flapping_window_ms` is left alone. With
    `rolls_back_on_return` a running chunk is rolled back when its broker returns, otherwise it goes on.
    `throttle_bytes_per_second` is per broker. A disk may be used up to `disk_limit_percent`, with copies that arrive.
    """

    failure_interval_ms: int = -1
    alarm_ms: int = 900_000
    chunk_partitions: int = 10
    mass_failure_brokers: int = 3
    mass_failure_percent: int = 20
    max_bytes_per_day: int | None = None
    flapping_returns: int = 3
    flapping_window_ms: int = 3_600_000
    rolls_back_on_return: bool = False
    throttle_bytes_per_second: int | None = None
    disk_limit_percent: int = 85


class OutageEnd(StrEnum):
    """The reason why a broker no longer counts as away."""

    RETURNED = "returned"  # it was seen alive
    STILL_ALIVE = "still-alive"  # it was reported as failed, and lives all the same
    REPORTED_BACK = "reported-back"  # somebody said so
    UNREACHABLE = "unreachable"  # it lives without the listener by which Drover connects
    NOT_ASSIGNED = "not-assigned"  # it is in no replica list any more
    NOT_WATCHED = "not-watched"  # healing was removed from the settings


class BrokerOutageNoted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-outage-noted"):
    """A broker is away; the time of the first such record counts (R46-1).

    `seen` says that the cluster showed it: in replica lists and not alive. Otherwise somebody reported it.
    """

    broker: int
    seen: bool = True


class BrokerOutageEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-outage-ended"):
    """A broker no longer counts as away: its timer stops, and starts anew should it be missed again."""

    broker: int
    why: OutageEnd


class BrokerOutageAlarmed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-outage-alarmed"):
    """A broker has been away for as long as the alarm asks for."""

    broker: int
    away_ms: int


class BrakeReason(StrEnum):
    """The reason why nothing is healed now."""

    MASS_FAILURE = "mass-failure"
    BYTES_PER_DAY = "bytes-per-day"
    FLAPPING = "flapping"


class HealingBraked(Event, frozen=True, kw_only=True, omit_defaults=True, tag="healing-braked"):
    """No chunk begins, and no heal is planned, until this is released; with `broker` that holds for it alone."""

    why: BrakeReason
    detail: str
    broker: int | None = None


class HealingReleased(Event, frozen=True, kw_only=True, omit_defaults=True, tag="healing-released"):
    """The reason for a brake is gone."""

    why: BrakeReason
    broker: int | None = None


class HealChoice(StrEnum):
    """An operator's choice for one absence of a broker."""

    START = "start"
    SKIP = "skip"


class HealChosen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-chosen"):
    """Somebody decided about one absence of a broker: it is healed now, or not at all; until it is back."""

    broker: int
    choice: HealChoice
    by: str
    reason: str


class HealAssignment(Struct, frozen=True, omit_defaults=True):
    """One partition of a chunk: its list as it was seen, and the one without the dead brokers.

    `size_bytes` is that of one copy, None if unknown.
    """

    topic: str
    partition: int
    topic_id: str
    original: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int | None = None

    @property
    def copied_bytes(self) -> int:
        """Return the bytes to copy; an unknown size counts as 0."""
        added = [broker for broker in self.target if broker not in self.original]
        return (self.size_bytes or 0) * len(added)


class LeftReason(StrEnum):
    """The reason why a partition is not healed."""

    NO_LEADER = "no-leader"
    NO_BROKER = "no-broker"
    MOVING = "moving"
    WHOLE = "whole"
    WAITS = "waits"
    CHANGED = "changed"
    GONE = "gone"
    DESTINATION_DIED = "destination-died"
    NOT_PLANNED = "not-planned"


class LeftPartition(Struct, frozen=True, omit_defaults=True):
    """A partition with a replica on a dead broker that is not healed, and why."""

    topic: str
    partition: int
    why: LeftReason
    detail: str = ""


class HealPlanned(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-planned"):
    """Replacements for the replicas on dead brokers were planned; `chunks` events with the assignments follow."""

    heal: str
    number: int
    brokers: tuple[int, ...]
    chunks: int
    partitions: int
    bytes: int = 0


class HealChunkPlanned(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-chunk-planned"):
    """One chunk, complete: a reader never plans again (R46-3)."""

    heal: str
    chunk: int
    assignments: tuple[HealAssignment, ...]


class HealPartitionsLeft(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-partitions-left"):
    """The partitions of dead brokers that cannot be healed now; it replaces what was said before.

    `count` is how many there are, of which the first ones are named.
    """

    count: int
    partitions: tuple[LeftPartition, ...] = ()


class HealChunkBegun(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-chunk-begun"):
    """A chunk begins: its partitions are accepted in the same record, as `plan`; those in `skipped` are not.

    Without a plan there was nothing to do any more.
    """

    heal: str
    chunk: int
    plan: str | None = None
    skipped: tuple[LeftPartition, ...] = ()
    bytes: int = 0


class HealChunkTakenBack(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-chunk-taken-back"):
    """Some or all of a running chunk are rolled back, because Drover itself has a reason."""

    heal: str
    chunk: int
    why: str


class HealChunkEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-chunk-ended"):
    """Everything of a chunk has ended: so many partitions are whole again, the others ended differently."""

    heal: str
    chunk: int
    healed: int
    cancelled: int = 0
    failed: int = 0


class HealEnd(StrEnum):
    """How a heal ended."""

    DONE = "done"
    RETURNED = "returned"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    REPLANNED = "replanned"
    INCOMPLETE = "incomplete"


class HealEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="heal-ended"):
    """No further chunk of a heal begins; `dropped` chunks had not begun. A running one goes on.

    With `leaves_rest` nothing more is done by itself in this absence of its brokers, since people cancelled some of it.
    """

    heal: str
    why: HealEnd
    dropped: int = 0
    leaves_rest: bool = False


HealingEvent = (
    BrokerOutageNoted
    | BrokerOutageEnded
    | BrokerOutageAlarmed
    | HealingBraked
    | HealingReleased
    | HealChosen
    | HealPlanned
    | HealChunkPlanned
    | HealPartitionsLeft
    | HealChunkBegun
    | HealChunkTakenBack
    | HealChunkEnded
    | HealEnded
)
