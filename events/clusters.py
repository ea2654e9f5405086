"""Events about a managed cluster as a whole: which one it is, what limits hold, and whether it is frozen."""

from enum import StrEnum

from msgspec import Struct

from drover.events.base import Event
from drover.events.healing import HealingLimits
from drover.events.plans import Stepping
from drover.events.traits import Traits


class ClusterIdentified(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-identified"):
    """First contact: Kafka's own cluster id, which must never differ afterwards, and the brokers that lived then."""

    kafka_cluster_id: str
    brokers: tuple[int, ...] = ()


class BrokersSeen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="brokers-seen"):
    """Brokers that the log did not know live in the cluster: from now on they exist, or have existed."""

    brokers: tuple[int, ...]


class UnreachableBrokersChanged(
    Event, frozen=True, kw_only=True, omit_defaults=True, tag="unreachable-brokers-changed"
):
    """The brokers that live and that Drover cannot reach, complete: Metadata does not list them, and they are in sync.

    They do not offer the listener by which Drover connects. Nothing moves to them, and nothing is healed.
    """

    brokers: tuple[int, ...]


class ClusterMismatched(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-mismatched"):
    """Another Kafka cluster answers under this name: no call is made while that lasts."""

    expected_kafka_cluster_id: str
    found_kafka_cluster_id: str


class ClusterMatched(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-matched"):
    """The cluster that was first identified answers again."""

    kafka_cluster_id: str


class ClusterOutOfReach(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-out-of-reach"):
    """The owner could not look at the cluster since `since_ms` (wall clock): nothing begins or is confirmed there."""

    since_ms: int
    detail: str


class ClusterWithinReach(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-within-reach"):
    """The owner can look at the cluster again."""


class ClusterTraitsSeen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-traits-seen"):
    """What the live brokers say of their versions means these behaviours; they hold from here on.

    Recorded at first contact, and again whenever it changes: while a cluster is upgraded, and when that is done.
    """

    traits: Traits


class Budgets(Struct, frozen=True, omit_defaults=True):
    """Bounds of what is in flight beside the number of partitions; None is no bound.

    Copies into and out of a broker are counted apart; None is `max_moves_per_broker`. A step begins while fewer bytes
    than `max_bytes_in_flight` are being copied. `max_moves_per_rack` bounds the copies into a rack from others, and as
    many out of it. What exceeds a bound by itself goes alone.
    """

    max_incoming_per_broker: int | None = None
    max_outgoing_per_broker: int | None = None
    max_replica_copies_in_flight: int | None = None
    max_bytes_in_flight: int | None = None
    max_moves_per_rack: int | None = None


class LimitsSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="limits-set"):
    """The limits of the settings from here on (they hold for the next step only, R435-1).

    What a command has set holds in spite of them, see `LimitsChanged`.

    `max_moves_per_broker` bounds the copies into a broker, and as many out of it, where `budgets` do not say otherwise.
    `repairs_by_itself` says that moves which can never end are cancelled without being asked. `stepping` is for plans
    that do not say their own. `healing` says when replicas on dead brokers are replaced; None: absent brokers are not
    even noted. `max_leader_movements` is how many leaders may be on their way to another broker. With
    `lazy_leadership` a change of the list of brokers that should not lead moves no leadership by itself (R491-4).
    `balances_after_return` lets a balance of leaders begin when a broker is back. With `adapts_to_health`
    brokers get fewer slots while replicas there lag, see `drover.events.adaptation`. `windows` says when steps may
    begin, see `drover.windows`; None: at any time.
    """

    max_partitions_in_flight: int
    max_moves_per_broker: int
    max_replicas_per_step: int
    repairs_by_itself: bool = False
    stepping: Stepping = Stepping.GROW
    healing: HealingLimits | None = None
    max_leader_movements: int = 1000
    lazy_leadership: bool = False
    balances_after_return: bool = False
    budgets: Budgets | None = None
    adapts_to_health: bool = False
    windows: str | None = None


class PlanWindowsSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan-windows-set"):
    """The plan has these maintenance windows of its own from here on; None: it has none."""

    plan: str
    windows: str | None
    by: str
    reason: str


class WindowClosed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="window-closed"):
    """No maintenance window is open: no step begins until the next one opens, at `opens_at_ms`; what runs goes on.

    With `plan` these are the windows of that plan, and only its steps wait; without it they are the cluster's.
    """

    windows: str
    opens_at_ms: int
    plan: str = ""


class WindowOpened(Event, frozen=True, kw_only=True, omit_defaults=True, tag="window-opened"):
    """A maintenance window is open, or there are none any more: steps may begin. `plan` is as in `WindowClosed`."""

    plan: str = ""


# A number, a switch or a word; None is no bound.
LimitValue = int | bool | str | None


class LimitChange(Struct, frozen=True):
    """One limit, by its name: the value that held before, and the one that holds from here on."""

    name: str
    before: LimitValue
    value: LimitValue


class LimitsChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="limits-changed"):
    """Somebody changed limits; they hold from the next step on.

    Those in `changed` hold whatever the settings say, until they are reset. Those in `reset` follow the settings again.
    """

    by: str
    reason: str
    changed: tuple[LimitChange, ...] = ()
    reset: tuple[LimitChange, ...] = ()


class HoldRole(StrEnum):
    """What a held broker is spared: copies into it, copies out of it, or both."""

    BOTH = "both"
    DESTINATION = "destination"
    SOURCE = "source"


class BrokerHeld(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-held"):
    """No copy into the broker begins from here on, none out of it, or neither; what runs goes on."""

    broker: int
    by: str
    reason: str
    role: HoldRole = HoldRole.BOTH


class BrokerReleased(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-released"):
    """Copies into and out of the broker may begin again."""

    broker: int
    by: str
    reason: str


class ClusterFrozen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-frozen"):
    """Nothing new starts from here on (R236-9); a freeze is held per requester, beside those of others."""

    by: str
    reason: str


class FreezeEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="freeze-ended"):
    """One requester's freeze is over, and those of others remain: nothing new starts yet."""

    by: str
    reason: str


class ClusterUnfrozen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="cluster-unfrozen"):
    """Work may start again: every freeze is over."""

    by: str
    reason: str
