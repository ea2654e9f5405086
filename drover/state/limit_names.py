"""Every limit by name: its meaning, its values, and the names that the KIPs and Cruise Control gave it.

One registry for the settings file, the command `limits` and the command line. A name may be written with `.`, `_` or
`-`, in any case. KIP-435 prints the descriptions of two of its names the wrong way round; here they are exchanged
(R435-1).
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec import structs

from drover.events.clusters import Budgets, LimitValue
from drover.events.healing import HealingLimits
from drover.events.plans import Stepping
from drover.state.scheduling import ChangedLimit, Limits, SchedulingState
from drover.windows import parse

HEALING = "heal."
MOST_COUNT = 2**31 - 1
MOST_MS = 2**53
MOST_BYTES = 2**63 - 1
# The number of returns of a broker that are remembered; with a larger limit no broker would ever count as flapping.
MOST_RETURNS = 20


class Unit(Enum):
    """The kind of a limit's value."""

    COUNT = "a whole number"
    MS = "milliseconds"
    BYTES = "bytes"
    RATE = "bytes per second"
    PERCENT = "percent"
    SWITCH = "true or false"
    STEPPING = "grow, swap or single"
    WINDOWS = "maintenance windows"


@dataclass(frozen=True, slots=True)
class KnownLimit:
    """One limit: from `least` to `most` of its unit, or None if `none_means` says what that means.

    `below` says what -1 means, if it is allowed. `aliases` are its names in the KIPs and in Cruise Control.
    """

    name: str
    about: str
    unit: Unit = Unit.COUNT
    least: int = 1
    most: int = MOST_COUNT
    none_means: str | None = None
    below: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """The name without the prefix of its section."""
        return self.name.removeprefix(HEALING)

    def read(self, value: object, called: str | None = None) -> LimitValue:
        """Return a checked value. Raises `ValueError`, whose message calls the limit `called`."""
        name = called or self.name
        if value is None and self.none_means is not None:
            return None
        if self.unit is Unit.SWITCH:
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false, and is {value!r}")
            return value
        if self.unit is Unit.STEPPING:
            if value not in tuple(Stepping):
                raise ValueError(f"{name} must be {self.unit.value}, and is {value!r}")
            return str(Stepping(str(value)).value)
        if self.unit is Unit.WINDOWS:
            if not isinstance(value, str):
                raise ValueError(f"{name} must be {self.unit.value}, and is {value!r}")
            if not value.strip():
                return None
            parse(value)
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} must be {self.unit.value}, and is {value!r}")  # noqa: TRY004 - one kind of fault
        if value < self.least:
            least = f"at least {self.least}" if self.below is None else f"-1, which means {self.below}, or at least 0"
            raise ValueError(f"{name} must be {least}, and is {value}")
        if value > self.most:
            raise ValueError(f"{name} must be at most {self.most}, and is {value}")
        return value


KNOWN: tuple[KnownLimit, ...] = (
    KnownLimit(
        "max_partitions_in_flight",
        "partitions that move at a time",
        aliases=(
            "reassignment.max.concurrent.partition.count",
            "reassignment.parallel.partition.count",
            "max.num.cluster.partition.movements",
            "max_partition_movements_in_cluster",
        ),
    ),
    KnownLimit(
        "max_moves_per_broker",
        "copies into a broker at a time, and as many out of it",
        aliases=(
            "num.concurrent.partition.movements.per.broker",
            "concurrent_partition_movements_per_broker",
            "concurrentPartitionMovementsPerBroker",
        ),
    ),
    KnownLimit("max_incoming_per_broker", "copies into a broker at a time", none_means="max_moves_per_broker"),
    KnownLimit("max_outgoing_per_broker", "copies out of a broker at a time", none_means="max_moves_per_broker"),
    KnownLimit(
        "max_moves_per_rack",
        "copies into a rack from others at a time, and as many out of it",
        none_means="no bound",
    ),
    KnownLimit("max_replica_copies_in_flight", "copies in the cluster at a time", none_means="no bound"),
    KnownLimit(
        "max_bytes_in_flight",
        "bytes that are being copied while a further step begins",
        Unit.BYTES,
        1,
        MOST_BYTES,
        "no bound",
    ),
    KnownLimit(
        "max_replicas_per_step",
        "replicas of one partition that are added at a time",
        aliases=(
            "reassignment.max.concurrent.replica.count",
            "reassignment.parallel.replica.count",
            "reassignment.max.parallel.replica.count",
        ),
    ),
    KnownLimit(
        "max_leader_movements",
        "leaders that move to another broker at a time",
        aliases=(
            "reassignment.max.concurrent.leader.movements",
            "reassignment.parallel.leader.movements",
            "num.concurrent.leader.movements",
            "concurrent_leader_movements",
            "concurrentLeaderMovements",
        ),
    ),
    KnownLimit("stepping", "how partitions go to their targets, unless their plan says", Unit.STEPPING),
    KnownLimit(
        "repairs_by_itself",
        "whether moves that Kafka can never end are cancelled unasked",
        Unit.SWITCH,
    ),
    KnownLimit("lazy_leadership", "whether a listed broker keeps what it leads until an election", Unit.SWITCH),
    KnownLimit("balances_after_return", "whether leaders are balanced when a broker is back", Unit.SWITCH),
    KnownLimit("windows", "when steps may begin", Unit.WINDOWS, none_means="at any time"),
    KnownLimit("adapts_to_health", "whether brokers get fewer slots while replicas there lag", Unit.SWITCH),
    KnownLimit(
        "heal.failure_interval_ms",
        "how long a broker is away before its replicas are replaced",
        Unit.MS,
        -1,
        MOST_MS,
        below="never",
        aliases=("kafka.heal.failure.interval",),
    ),
    KnownLimit(
        "heal.alarm_ms",
        "how long a broker is away before an alarm",
        Unit.MS,
        -1,
        MOST_MS,
        below="never",
        aliases=("broker.failure.alert.threshold.ms",),
    ),
    KnownLimit("heal.chunk_partitions", "partitions of one chunk of a heal", aliases=("kafka.heal.chunk.size",)),
    KnownLimit("heal.mass_failure_brokers", "so many brokers away at a time are no mass failure yet"),
    KnownLimit("heal.mass_failure_percent", "so much of all brokers away is none either", Unit.PERCENT, 0, 100),
    KnownLimit(
        "heal.max_bytes_per_day", "bytes that heals begin to copy in a day", Unit.BYTES, 1, MOST_BYTES, "no bound"
    ),
    KnownLimit(
        "heal.flapping_returns", "so many returns of a broker within the window are flapping", most=MOST_RETURNS
    ),
    KnownLimit("heal.flapping_window_ms", "the window in which returns are counted", Unit.MS, 1, MOST_MS),
    KnownLimit(
        "heal.rolls_back_on_return", "whether a running chunk is rolled back when its broker is back", Unit.SWITCH
    ),
    KnownLimit(
        "heal.throttle_bytes_per_second", "the throttle of heals, per broker", Unit.RATE, 1, MOST_BYTES, "no throttle"
    ),
    KnownLimit("heal.disk_limit_percent", "how full heals may make a disk", Unit.PERCENT, 1, 100),
)


def _plain(name: str) -> str:
    return re.sub("[._-]", "", name).lower()


BY_NAME: Mapping[str, KnownLimit] = {limit.name: limit for limit in KNOWN}
_BY_ANY_NAME: Mapping[str, KnownLimit] = {
    _plain(name): limit for limit in KNOWN for name in (limit.name, *limit.aliases)
}


def find(name: str) -> KnownLimit | None:
    """Return the limit with this name or alias, if there is one."""
    return _BY_ANY_NAME.get(_plain(name))


def nearest(name: str) -> str | None:
    """Return the name of a limit that is most similar to an unknown name; None if none is similar."""
    near = difflib.get_close_matches(_plain(name), _BY_ANY_NAME, n=1)
    return _BY_ANY_NAME[near[0]].name if near else None


def of_section(section: str = "") -> Iterator[KnownLimit]:
    """Yield the limits of the cluster itself, or those of healing."""
    return (limit for limit in KNOWN if limit.name.startswith(HEALING) is (section == HEALING))


def value_of(limits: Limits, name: str) -> LimitValue:
    """Return the value of a limit by its own name; None for a limit of healing if healing is not set up."""
    limit = BY_NAME[name]
    if name in Budgets.__struct_fields__:
        value = getattr(limits.budgets, name)
    elif not name.startswith(HEALING):
        value = getattr(limits, limit.field)
    else:
        value = None if limits.healing is None else getattr(limits.healing, limit.field)
    return value.value if isinstance(value, Stepping) else value


def with_values(limits: Limits, values: Mapping[str, LimitValue]) -> Limits:
    """Return the limits with these values, by their own names; those of healing only if it is set up."""
    if not values:
        return limits
    healing = limits.healing
    own: dict[str, Any] = {name: value for name, value in values.items() if not name.startswith(HEALING)}
    budgets = {name: own.pop(name) for name in Budgets.__struct_fields__ if name in own}
    if budgets:
        own["budgets"] = structs.replace(limits.budgets, **budgets)
    if "stepping" in own:
        own["stepping"] = Stepping(own["stepping"])
    if healing is not None:
        of_healing: dict[str, Any] = {
            BY_NAME[name].field: value for name, value in values.items() if name.startswith(HEALING)
        }
        own["healing"] = structs.replace(healing, **of_healing)
    return structs.replace(limits, **own)


def in_words(value: LimitValue) -> str:
    """Format a limit's value for people."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case _:
            return value


def in_force(settings: Limits, changed: Mapping[str, ChangedLimit]) -> Limits:
    """Return the limits of the settings with those that commands have set."""
    return with_values(settings, {name: limit.value for name, limit in changed.items()})


def of_settings(state: SchedulingState) -> Limits:
    """Return the limits of the settings, without the values that commands have set."""
    return with_values(state.limits, {name: limit.settings_value for name, limit in state.changed_limits.items()})


def check_healing(healing: HealingLimits) -> None:
    """Raise `ValueError` for invalid limits of healing."""
    for limit in of_section(HEALING):
        limit.read(getattr(healing, limit.field), limit.field)


def check(limits: Limits) -> None:
    """Raise `ValueError` for invalid limits, and for limits under which no replica could ever move."""
    for limit in of_section():
        limit.read(value_of(limits, limit.name), limit.name)
