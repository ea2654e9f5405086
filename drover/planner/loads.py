"""Loads: what a broker bears by the replicas that it has and the partitions that it leads, and what it can bear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from drover.planner.model import Broker, ClusterModel, Partition


class Load(StrEnum):
    """The kinds of load. The first four are compared with what a broker can bear, the others with the mean."""

    DISK = "disk"
    NETWORK_IN = "network-in"
    NETWORK_OUT = "network-out"
    PROCESSOR = "processor"
    LEADER_WRITES = "leader-writes"
    REPLICAS = "replicas"
    LEADERS = "leaders"


# What a byte costs the processor: written to a leader, sent by it, and fetched by a follower (as in Cruise Control).
WRITE_WEIGHT, SEND_WEIGHT, FETCH_WEIGHT = 0.7, 0.15, 0.15
CAPACITIES = (Load.DISK, Load.NETWORK_IN, Load.NETWORK_OUT, Load.PROCESSOR)
RATES = (Load.NETWORK_IN, Load.NETWORK_OUT, Load.PROCESSOR, Load.LEADER_WRITES)


class Weight(NamedTuple):
    """What one replica of a partition adds to a load: as the leader, and as a follower."""

    leader: float
    follower: float


_ONE_REPLICA, _ONE_LEADER = Weight(1.0, 1.0), Weight(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Measures:
    """The loads of a cluster that are known.

    `capacity` has what each broker can bear, for the loads that are compared with it; the others are compared with the
    mean. `absolute` are those of them that are in the unit of their capacity, so that a share of it means something.
    `left_out` says in sentences which loads are unknown, and why.
    """

    loads: tuple[Load, ...]
    capacity: Mapping[Load, Mapping[int, float]]
    absolute: frozenset[Load]
    left_out: tuple[str, ...]

    @property
    def has_rates(self) -> bool:
        """Whether more is known than replicas, leaders and bytes."""
        return any(load in RATES for load in self.loads)

    @property
    def compares_more(self) -> bool:
        """Whether rates are known, or what brokers can bear differs: the mean alone does not say what is fair."""
        return self.has_rates or any(len(set(able.values())) > 1 for able in self.capacity.values())


def weight_of(load: Load, partition: Partition, factor: int, *, reads_from_followers: bool, measured: bool) -> Weight:
    """Say what a partition with `factor` replicas adds to a load. What is unknown adds nothing.

    Producers write to the leader, and each follower fetches the same. Consumers read from the leader, or from all
    replicas alike. The processor's load is `cpu_cores` where it is `measured`, and otherwise an estimate by bytes.
    """
    if load is Load.DISK:
        size = partition.size_bytes or 0
        return Weight(size, size)
    if load is Load.REPLICAS:
        return _ONE_REPLICA
    if load is Load.LEADERS:
        return _ONE_LEADER
    write, read = partition.write_bytes_per_s or 0.0, partition.read_bytes_per_s or 0.0
    match load:
        case Load.NETWORK_IN:
            return Weight(write, write)
        case Load.NETWORK_OUT:
            from_follower = read / factor if reads_from_followers else 0.0
            from_leader = from_follower if reads_from_followers else read
            return Weight(from_leader + (factor - 1) * write, from_follower)
        case Load.PROCESSOR:
            whole = WRITE_WEIGHT * write + SEND_WEIGHT * (read + (factor - 1) * write)
            leader = partition.cpu_cores or 0.0 if measured else whole
            return Weight(leader, leader * FETCH_WEIGHT * write / whole if whole else 0.0)
        case Load.LEADER_WRITES:
            return Weight(write, 0.0)


def weights_of(
    model: ClusterModel, measures: Measures, factors: Sequence[int] | None = None
) -> dict[Load, list[Weight]]:
    """Return for each load what each partition adds to it; `factors` are the numbers of replicas, if not the present.

    Partitions are in the order of the model.
    """
    numbers = [len(partition.replicas) for partition in model.partitions] if factors is None else factors
    measured = Load.PROCESSOR in measures.absolute
    return {
        load: [
            weight_of(load, partition, factor, reads_from_followers=model.reads_from_followers, measured=measured)
            for partition, factor in zip(model.partitions, numbers, strict=True)
        ]
        for load in measures.loads
    }


def measures_of(model: ClusterModel) -> Measures:
    """Say which loads of a cluster are known, and name those that are not.

    A load is compared with capacities only if those of all brokers that may receive replicas are known. Without any
    write or read rate nothing is said of the network and the processor: nobody has asked for them.
    """
    brokers = [broker for broker in model.brokers if broker.may_receive]
    loads: list[Load] = []
    capacity: dict[Load, Mapping[int, float]] = {}
    left_out: list[str] = []
    partitions = [partition for partition in model.partitions if partition.replicas]
    written = [partition for partition in partitions if partition.write_bytes_per_s is not None]
    read = [partition for partition in partitions if partition.read_bytes_per_s is not None]
    measured = bool(partitions) and all(partition.cpu_cores is not None for partition in partitions)
    disks = _capacities(Load.DISK, model.brokers)
    if all(broker.id in disks for broker in brokers):
        capacity[Load.DISK] = disks
    loads.append(Load.DISK)
    if not written and not read:
        return Measures((Load.DISK, Load.REPLICAS, Load.LEADERS), capacity, frozenset(capacity), ())
    for load in (Load.NETWORK_IN, Load.NETWORK_OUT, Load.PROCESSOR):
        why = _why_unknown(load, model.brokers, brokers, has_writes=bool(written), has_reads=bool(read))
        if why:
            left_out.append(f"{load.value} is left out: {why}")
        else:
            loads.append(load)
            capacity[load] = _capacities(load, model.brokers)
    if written:
        loads.append(Load.LEADER_WRITES)
    else:
        left_out.append(f"{Load.LEADER_WRITES.value} are left out: no write rate is known")
    left_out += _missing("write", len(partitions) - len(written), len(partitions))
    left_out += _missing("read", len(partitions) - len(read), len(partitions))
    absolute = frozenset(load for load in capacity if load is not Load.PROCESSOR or measured)
    return Measures((*loads, Load.REPLICAS, Load.LEADERS), capacity, absolute, tuple(left_out))


def _missing(kind: str, missing: int, partitions: int) -> list[str]:
    if not 0 < missing < partitions:
        return []
    are = "partition has" if missing == 1 else "partitions have"
    return [f"{missing:,} {are} no {kind} rate, and count{'s' * (missing == 1)} as none"]


def _why_unknown(
    load: Load, brokers: Sequence[Broker], receiving: Sequence[Broker], *, has_writes: bool, has_reads: bool
) -> str:
    """Say what is missing to know a load; nothing if it is known."""
    if not has_writes:
        return "no write rate is known"
    if load is not Load.NETWORK_IN and not has_reads:
        return "no read rate is known"
    able = _capacities(load, brokers)
    missing = [broker.id for broker in receiving if broker.id not in able]
    if missing:
        field = {
            Load.NETWORK_IN: "network_in_bytes_per_s",
            Load.NETWORK_OUT: "network_out_bytes_per_s",
            Load.PROCESSOR: "cores",
        }[load]
        names = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        return f"{field} of broker {names} is unknown"
    return ""


def _capacities(load: Load, brokers: Sequence[Broker]) -> dict[int, float]:
    """Return what each broker can bear, where it is known."""
    able = {broker.id: capacity_of(broker, load) for broker in brokers}
    return {number: capacity for number, capacity in able.items() if capacity}


def capacity_of(broker: Broker, load: Load) -> float | None:
    """Return what a broker can bear; None if it is unknown, or the load has no capacity."""
    match load:
        case Load.DISK:
            return broker.total_bytes
        case Load.NETWORK_IN:
            return broker.network_in_bytes_per_s
        case Load.NETWORK_OUT:
            return broker.network_out_bytes_per_s
        case Load.PROCESSOR:
            return broker.cores
        case _:
            return None
