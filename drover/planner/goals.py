"""Goals: what a proposal is asked to reach. One struct each; brokers are ids, racks and topics names."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from drover.planner.loads import CAPACITIES, Load


@dataclass(frozen=True, slots=True)
class Drain:
    """Take every replica off these brokers, dead or alive."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Add:
    """Fill these brokers, which have joined, from those that hold the most; replicas move to these brokers only."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Give `replacement` what `broker` has, each replica in its place in the order."""

    broker: int
    replacement: int


@dataclass(frozen=True, slots=True)
class Balance:
    """Bring every broker within the tolerances of `Limits`, for at most so many bytes and copies; None is no bound."""

    max_bytes: int | None = None
    max_moves: int | None = None


@dataclass(frozen=True, slots=True)
class SetReplicationFactor:
    """Give every partition of these topics so many replicas."""

    topics: tuple[str, ...]
    replication_factor: int


@dataclass(frozen=True, slots=True)
class Evacuate:
    """Take every replica off the brokers of this rack."""

    rack: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread every partition over as many racks as the brokers allow, and do nothing else."""


@dataclass(frozen=True, slots=True)
class Leaders:
    """Balance the preferred leaders by the order of replica lists alone; no copies."""


@dataclass(frozen=True, slots=True)
class Heal:
    """Replace the replicas on these dead brokers, each in its place in the order.

    Only the named partitions are touched (topic and number), all of them when `partitions` is None (KIP-46).
    """

    dead: tuple[int, ...]
    partitions: tuple[tuple[str, int], ...] | None = None


Goal = Drain | Add | Replace | Balance | SetReplicationFactor | Evacuate | Spread | Leaders | Heal


class TopicSpread(StrEnum):
    """How far the replicas and leaders of each topic are spread over brokers.

    It holds for topics with at least one replica, or leader, for each broker. `STRICT`: no broker has more than one
    above or below the fair number. `LOOSE`: none has more than half again as many and one, or fewer than half of them
    less one.
    """

    STRICT = "strict"
    LOOSE = "loose"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Band:
    """How far above and below its fair share of a load a broker may be, as shares of it."""

    above: float
    below: float


DEFAULT_BAND = Band(0.1, 0.12)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits and options that hold for every goal.

    `disk_limit` is the share of a disk that may be used at any moment, copies that are not dropped yet included, and
    `capacity_limit` that of the network and of the processor. `limits` has those that were asked for by load; that of
    disks holds at the end only. Where nothing is known but replicas and bytes, the tolerances are shares of a broker's
    fair share: `above` it a broker is overloaded, `below` it underloaded. Being underloaded hurts less, so its
    tolerance is wider; orders cost no bytes, so the leaders' tolerance is narrow. Where rates are known, or a band was
    asked for, `load_band` holds for every load, but for those in `bands`. With `reorder_all`, a goal that empties or
    fills brokers may reorder all partitions, and not only those that it moves.
    `work` bounds the candidates that are tried, which bounds the time without a clock; None is no bound.
    Without `include_internal`, partitions of internal topics stay where they are.
    """

    disk_limit: float = 0.85
    capacity_limit: float = 0.8
    above: float = 0.085
    below: float = 0.12
    leaders_above: float = 0.045
    load_band: Band = DEFAULT_BAND
    bands: Mapping[Load, Band] = field(default_factory=dict)
    limits: Mapping[Load, float] = field(default_factory=dict)
    topic_spread: TopicSpread = TopicSpread.LOOSE
    reorder_all: bool = False
    include_internal: bool = False
    exclude_topics: tuple[str, ...] = ()
    work: int | None = None

    def band(self, load: Load) -> Band:
        """Return the band of a load where rates are known, or a band was asked for."""
        return self.bands.get(load, self.load_band)

    @property
    def asks_for_bands(self) -> bool:
        """Whether a band was asked for."""
        return bool(self.bands) or self.load_band != DEFAULT_BAND

    def limit(self, load: Load) -> float:
        """Return the share of a capacity that brokers may use once all moves are done."""
        return self.limits.get(load, self.disk_limit if load is Load.DISK else self.capacity_limit)


DEFAULT_LIMITS = Limits()
EVERY_LOAD = "all"


def with_limits(limits: Limits, shares: Mapping[str, float], bands: Mapping[str, Band]) -> Limits:
    """Add limits and bands by the names of loads, over those that there are; the band `all` is for the others.

    Raises `ValueError` for a name of no load, for a limit of a load that has no capacity, and for an invalid limit.
    """
    for name, share in shares.items():
        if load_named(name) not in CAPACITIES:
            able = ", ".join(load.value for load in CAPACITIES)
            raise ValueError(f"limits are of what brokers can bear ({able}), and {name} is only compared with the mean")
        if not 0 < share <= 1:
            raise ValueError(f"limits must be above 0 and at most 1, and that of {name} is {share:g}")
    of_loads = {load_named(name): band for name, band in bands.items() if name != EVERY_LOAD}
    return replace(
        limits,
        limits={**limits.limits, **{load_named(name): share for name, share in shares.items()}},
        bands={**limits.bands, **of_loads},
        load_band=bands.get(EVERY_LOAD, limits.load_band),
    )


def load_named(name: str) -> Load:
    """Return the load of this name, in which `_` may stand for `-`. Raises `ValueError`."""
    try:
        return Load(name.replace("_", "-"))
    except ValueError:
        raise ValueError(f"bands and limits are of {', '.join(Load)}, and {name} is no load") from None
