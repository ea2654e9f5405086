"""What the log directories of brokers mean for a plan, in sentences: cordons, failures, and volumes that are shared."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from drover.planning.model import Broker, ClusterModel, volumes_of


class DiskCode(StrEnum):
    """Kinds of remarks about log directories."""

    CORDONED = "cordoned"
    PARTLY_CORDONED = "partly-cordoned"
    FAILED = "failed"
    SHARED_VOLUME = "shared-volume"


@dataclass(frozen=True, slots=True)
class DiskRemark:
    """A remark about log directories of one broker: its kind, their paths, and a sentence for people."""

    code: DiskCode
    broker: int
    paths: tuple[str, ...]
    text: str


def disk_remarks(model: ClusterModel, receiving: Collection[int] | None = None) -> tuple[DiskRemark, ...]:
    """Return the remarks about the living brokers, those that receive nothing first.

    `receiving` are the brokers to which a plan copies: how much room the others have does not matter to it. None is
    every broker.
    """
    living = [broker for broker in model.brokers if broker.alive]
    closed = [remark for broker in living for remark in closed_by_disks(broker)]
    rooms = (broker for broker in living if receiving is None or broker.id in receiving)
    return (*closed, *(remark for broker in rooms for remark in _of_room(broker)))


def closed_by_disks(broker: Broker) -> Iterator[DiskRemark]:
    """Say why the log directories of a broker keep plans from giving it replicas; nothing if they do not."""
    for directory in broker.log_dirs:
        if directory.code:
            text = (
                f"Log directory {directory.path} of broker {broker.id} has failed (Kafka error {directory.code}): the "
                "broker receives no replicas. Repair the directory and restart the broker."
            )
            yield DiskRemark(DiskCode.FAILED, broker.id, (directory.path,), text)
    if broker.is_cordoned:
        text = (
            f"Broker {broker.id} is cordoned, with all of its log directories (cordoned.log.dirs): it receives no "
            "replicas."
        )
        yield DiskRemark(DiskCode.CORDONED, broker.id, _paths(broker, cordoned=True), text)


def _of_room(broker: Broker) -> Iterator[DiskRemark]:
    cordoned = _paths(broker, cordoned=True)
    if cordoned and not broker.is_cordoned:
        is_ = "is" if len(cordoned) == 1 else "are"
        text = f"On broker {broker.id} {', '.join(cordoned)} {is_} cordoned: only the room of the others counts."
        yield DiskRemark(DiskCode.PARTLY_CORDONED, broker.id, cordoned, text)
    for volume in volumes_of(broker.working_directories):
        if len(volume.paths) > 1:
            text = (
                f"On broker {broker.id} {', '.join(volume.paths)} have the same size and the same free bytes: they "
                "count as one volume."
            )
            yield DiskRemark(DiskCode.SHARED_VOLUME, broker.id, volume.paths, text)


def _paths(broker: Broker, *, cordoned: bool) -> tuple[str, ...]:
    return tuple(directory.path for directory in broker.working_directories if directory.cordoned is cordoned)
