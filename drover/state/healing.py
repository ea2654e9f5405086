"""The slice of the state with absent brokers and healing."""

from dataclasses import dataclass

from msgspec import Struct

from drover.brokers import Brokers
from drover.events.healing import BrakeReason, HealAssignment, HealChoice, LeftPartition
from drover.events.partitions import TopicPartition
from drover.state.declared import ClusterSlice, items_by_key, recorded

# Kafka lists a dead broker until its session ends (`broker.session.timeout.ms`, 9 s by default), so a report does not
# end with the first observation that shows the broker.
ALIVE_ENDS_REPORT_MS = 30_000


class Absence(Struct, frozen=True, gc=False, omit_defaults=True):
    """One absence of a broker, since the first record about it (ms of log time).

    `seen` says that the cluster showed it, and not only a report; `choice` is the operator's.
    """

    since_ms: int
    seen: bool = False
    is_alarmed: bool = False
    choice: HealChoice | None = None


class HealedBroker(Struct, frozen=True, gc=False, omit_defaults=True):
    """The work of heals in one absence of a broker since `since_ms` (log time); `heal` is the last of them."""

    since_ms: int
    heal: str
    partitions: int


class Brake(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reason not to heal any broker, or a certain one, and since when it holds."""

    why: BrakeReason
    detail: str
    since_ms: int
    broker: int | None = None


class Heal(Struct, frozen=True, gc=False, omit_defaults=True):
    """The heal under way: its brokers, its planned chunks and partitions, and the results so far."""

    name: str
    brokers: tuple[int, ...]
    chunks: int
    partitions: int
    bytes: int
    planned_ms: int
    known_chunks: int = 0
    healed: int = 0
    cancelled: int = 0
    failed: int = 0
    skipped: int = 0


class HealChunk(Struct, frozen=True, gc=False, omit_defaults=True):
    """A chunk that has not begun."""

    heal: str
    number: int
    assignments: tuple[HealAssignment, ...]


class RunningChunk(Struct, frozen=True, gc=False, omit_defaults=True):
    """The chunk that is under way, as the plan of that name; `chunks` is the number of chunks of its heal."""

    heal: str
    number: int
    chunks: int
    plan: str
    brokers: tuple[int, ...]
    partitions: tuple[TopicPartition, ...]
    since_ms: int
    is_taken_back: bool = False


class LeftBehind(Struct, frozen=True, gc=False, omit_defaults=True):
    """The number of partitions that cannot be healed, and the first of them."""

    count: int
    partitions: tuple[LeftPartition, ...]


@dataclass(eq=False)
class HealingState(ClusterSlice):
    """Failed brokers with the time that the first report named, absences, and the heal under way.

    `recent_returns` are the last returns of each broker (ms of log time); `emptied_brokers` were healed completely and
    have not come back since, and `healed_brokers` counts what was replaced in the present absence. `heal_bytes` are the
    bytes begun per hour since the epoch, for a day. `heal_superseded` are the partitions of the running chunk that gave
    way to another target, with the list that was asked for. The fold does not depend on it or on `healed_brokers`, so
    no hash covers them; snapshots keep them.
    """

    failed_brokers: dict[int, int] = recorded(
        "failed_brokers", factory=dict, content=items_by_key, described_as=("failed broker", "failed", "returned")
    )
    absent_brokers: dict[int, Absence] = recorded(
        "outages", factory=dict, content=items_by_key, described_as=("absent broker", "missed", "no longer missed")
    )
    recent_returns: dict[int, tuple[int, ...]] = recorded("recent_returns", factory=dict, content=items_by_key)
    emptied_brokers: dict[int, int] = recorded(
        "emptied_brokers", factory=dict, content=items_by_key, described_as=("emptied broker", "emptied", "back")
    )
    healed_brokers: dict[int, HealedBroker] = recorded("healed_brokers", factory=dict, hashed=False)
    healing_brakes: dict[str, Brake] = recorded(
        "healing_brakes", factory=dict, content=items_by_key, described_as=("brake of healing", "on", "released")
    )
    heal: Heal | None = recorded("heal", described_as=("heal",))
    heal_chunks: dict[int, HealChunk] = recorded(
        "heal_chunks",
        factory=dict,
        content=items_by_key,
        described_as=("chunk of the heal", "planned", "begun or dropped"),
    )
    heal_running: RunningChunk | None = recorded("heal_running", described_as=("running chunk",))
    heal_superseded: dict[TopicPartition, tuple[int, ...]] = recorded("heal_superseded", factory=dict, hashed=False)
    heal_left: LeftBehind | None = recorded("heal_left", described_as=("partitions that cannot be healed",))
    heal_bytes: dict[int, int] = recorded("heal_bytes", factory=dict, content=items_by_key)
    heals_planned: int = recorded("heals_planned", 0)

    def counted_failures(self, brokers: Brokers) -> frozenset[int]:
        """Return the brokers that were reported as failed and are not alive in the last observation (R46-1)."""
        return frozenset(brokers.dead(self.failed_brokers))

    def failed_since_ms(self, broker: int) -> int | None:
        """Return when a broker was first reported or missed (R46-1).

        None without either, and once all its replicas were replaced (R46-6).
        """
        absence = self.absent_brokers.get(broker)
        reported_ms = None if broker in self.emptied_brokers else self.failed_brokers.get(broker)
        missed_ms = None if absence is None else absence.since_ms
        return min((time_ms for time_ms in (reported_ms, missed_ms) if time_ms is not None), default=None)
