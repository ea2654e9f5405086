"""The slice of the state that governs starts: limits, freezes, windows, held brokers, and the queue of KIP-236."""

from dataclasses import dataclass

from msgspec import Struct

from drover.events.clusters import Budgets, HoldRole, LimitValue
from drover.events.healing import HealingLimits
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.state.declared import ClusterSlice, items_by_key, items_in_order, not_default, recorded


class Limits(Struct, frozen=True, gc=False):
    """The bounds of work in flight, and the work that Drover begins unasked; see `drover.events.clusters.LimitsSet`."""

    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1
    repairs_by_itself: bool = False
    stepping: Stepping = Stepping.GROW
    healing: HealingLimits | None = None
    max_leader_movements: int = 1000
    lazy_leadership: bool = False
    balances_after_return: bool = False
    budgets: Budgets = Budgets()
    adapts_to_health: bool = False
    windows: str | None = None

    @property
    def max_incoming(self) -> int:
        """The most copies into a broker at a time."""
        most = self.budgets.max_incoming_per_broker
        return self.max_moves_per_broker if most is None else most

    @property
    def max_outgoing(self) -> int:
        """The most copies out of a broker at a time."""
        most = self.budgets.max_outgoing_per_broker
        return self.max_moves_per_broker if most is None else most


class ChangedLimit(Struct, frozen=True, gc=False):
    """A limit that a command has set: its value, that of the settings, and the change's author, reason and time."""

    value: LimitValue
    settings_value: LimitValue
    by: str
    reason: str
    since_ms: int


class Freeze(Struct, frozen=True, gc=False, omit_defaults=True):
    """A freeze of the cluster: its author, reason and start."""

    by: str
    reason: str
    since_ms: int


class ClosedWindow(Struct, frozen=True, gc=False):
    """Maintenance windows that are all closed, when the next one opens, and since when (ms of log time)."""

    windows: str
    opens_at_ms: int
    since_ms: int


class HeldBroker(Struct, frozen=True, gc=False, omit_defaults=True):
    """A hold of a broker: its author, reason, start, and the copies that it withholds."""

    by: str
    reason: str
    since_ms: int
    role: HoldRole = HoldRole.BOTH

    def holds(self, way: str) -> bool:
        """Whether the hold stops copies that go this way: `in` or `out`."""
        return self.role is not (HoldRole.SOURCE if way == "in" else HoldRole.DESTINATION)


class QueueEntry(Struct, frozen=True, gc=False, omit_defaults=True):
    """One partition in the queue of KIP-236, from the alter command `id` (`QueueEntryAdded`)."""

    id: str
    plan: str
    target: tuple[int, ...]
    since_ms: int
    original_replicas: tuple[int, ...] | None = None
    allow_replication_factor_change: bool = True
    allow_drover_topics: bool = False
    topic_id: str | None = None
    allow_emptied_brokers: bool = False


@dataclass(eq=False)
class SchedulingState(ClusterSlice):
    """The limits, the freezes and the queue.

    `freeze` is the oldest of the freezes, None if there is none; `later_freezes` are those of other requesters, in the
    order in which they came. `limits` are those in force; `changed_limits` are the ones that commands have set, by
    name; they override the settings. No copy begins into or out of `held_brokers`. `plan_windows` are the maintenance
    windows of open plans that have their own, and `closed_windows` the windows that are all closed, by plan; the
    cluster's have the key "". `queue` holds, in order, the partitions that wait behind everything that was accepted.
    """

    freeze: Freeze | None = recorded("freeze", described_as=("freeze",))
    later_freezes: dict[str, Freeze] = recorded(
        "later_freezes", factory=dict, content=items_in_order, described_as=("further freeze", "begun", "ended")
    )
    limits: Limits = recorded("limits", Limits(), content=not_default, described_as=("limits",))
    changed_limits: dict[str, ChangedLimit] = recorded(
        "changed_limits", factory=dict, content=items_by_key, described_as=("limit", "set", "reset")
    )
    plan_windows: dict[str, str] = recorded(
        "plan_windows", factory=dict, content=items_by_key, described_as=("windows of plan", "set", "gone")
    )
    closed_windows: dict[str, ClosedWindow] = recorded(
        "closed_windows", factory=dict, content=items_by_key, described_as=("closed window", "closed", "opened")
    )
    held_brokers: dict[int, HeldBroker] = recorded(
        "held_brokers", factory=dict, content=items_by_key, described_as=("held broker", "held", "released")
    )
    queue: dict[TopicPartition, QueueEntry] = recorded(
        "queue", factory=dict, content=items_in_order, described_as=("queue entry", "added", "removed")
    )

    def forget_windows(self, plan: str) -> None:
        """Forget the maintenance windows of a plan."""
        self.plan_windows.pop(plan, None)
        self.closed_windows.pop(plan, None)

    @property
    def held_destinations(self) -> frozenset[int]:
        """The brokers into which no copy may begin."""
        return frozenset(broker for broker, held in self.held_brokers.items() if held.holds("in"))

    @property
    def freezes(self) -> tuple[Freeze, ...]:
        """Every freeze, the oldest first."""
        return () if self.freeze is None else (self.freeze, *self.later_freezes.values())
