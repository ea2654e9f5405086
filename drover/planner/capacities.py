"""Capacities of brokers by the settings or a file, which complete what the cluster reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from drover.planner.model import Broker, ClusterModel, LogDir


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of one broker; None means unknown, and for `max_replicas` unbounded."""

    disk_bytes: int | None = None
    network_in_bytes_per_s: float | None = None
    network_out_bytes_per_s: float | None = None
    cores: float | None = None
    max_replicas: int | None = None

    def over(self, other: "Capacity") -> "Capacity":
        """Return these figures, and those of the other where they are unknown."""
        return Capacity(
            *(getattr(other if getattr(self, each.name) is None else self, each.name) for each in fields(Capacity))
        )


@dataclass(frozen=True, slots=True)
class Capacities:
    """The capacities of a cluster's brokers; `default` holds for brokers, and for figures, that are not named."""

    default: Capacity = Capacity()
    brokers: Mapping[int, Capacity] = field(default_factory=dict)

    def of(self, broker: int) -> Capacity:
        """Return the figures of a broker."""
        return self.brokers.get(broker, self.default).over(self.default)

    def over(self, other: "Capacities") -> "Capacities":
        """Return these capacities, with unknown figures taken from the other; this default wins over its brokers."""
        numbers = self.brokers.keys() | other.brokers.keys()
        return Capacities(
            self.default.over(other.default), {number: self.of(number).over(other.of(number)) for number in numbers}
        )


def with_capacities(model: ClusterModel, capacities: Capacities) -> ClusterModel:
    """Add configured capacities to a model.

    They win over those of the model, except for disks: a size that Kafka reports is a fact. Where Kafka reports none
    (before 3.3), all directories of a broker count as one disk, of which its replicas take what they take.
    """
    held: dict[int, int] = {}
    for partition in model.partitions:
        for number in partition.replicas:
            held[number] = held.get(number, 0) + (partition.size_bytes or 0)
    brokers = tuple(_with_capacity(each, capacities.of(each.id), held.get(each.id, 0)) for each in model.brokers)
    return replace(model, brokers=brokers)


def _with_capacity(broker: Broker, capacity: Capacity, held: int) -> Broker:
    present = Capacity(
        None, broker.network_in_bytes_per_s, broker.network_out_bytes_per_s, broker.cores, broker.max_replicas
    )
    able = capacity.over(present)
    return replace(
        broker,
        log_dirs=_with_disk(broker, capacity.disk_bytes, held),
        network_in_bytes_per_s=able.network_in_bytes_per_s,
        network_out_bytes_per_s=able.network_out_bytes_per_s,
        cores=able.cores,
        max_replicas=able.max_replicas,
    )


def _with_disk(broker: Broker, disk_bytes: int | None, held: int) -> tuple[LogDir, ...]:
    if disk_bytes is None or broker.total_bytes is not None:
        return broker.log_dirs
    failed = tuple(directory for directory in broker.log_dirs if directory.code)
    paths = ", ".join(directory.path for directory in broker.working_directories)
    disk = LogDir(paths or "all", disk_bytes, max(0, disk_bytes - held), cordoned=broker.is_cordoned)
    return (*failed, disk)
