"""What the log directories of brokers mean for a plan, in sentences: cordons, failures, and volumes that are shared."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from drover.planner.model import Broker, ClusterModel, volumes_of


class DiskCode(StrEnum):
    """Kinds of remarks about log directories."""

    CORDONED = "cordoned"
    PARTLY_CORDONED = "partly-cordoned"
    FAILED = "failed"
    SHARED_VOLUME = "shared-volume"


@dataclass(frozen=True, slots=True)
class DiskRemark:
    """A remark about log directories of one broker: its kind and their paths.

    `text` is a sentence, `cause` the part of it that says what is so and not what follows for a plan.
    """

    code: DiskCode
    broker: int
    paths: tuple[str, ...]
    cause: str
    text: str


def disk_remarks(model: ClusterModel, receiving: Collection[int] | None = None) -> tuple[DiskRemark, ...]:
    """Return the remarks about the living brokers, those that receive nothing first.

    `receiving` are the brokers to which a plan copies: how much room the others have does not matter to it. None is
    every broker.
    """
    living = [broker for broker in model.brokers if broker.alive]
    rooms = (broker for broker in living if receiving is None or broker.id in receiving)
    return (*closed_brokers(model), *(remark for broker in rooms for remark in _of_room(broker)))


def closed_brokers(model: ClusterModel) -> tuple[DiskRemark, ...]:
    """Return why the log directories of living brokers keep plans from giving them replicas."""
    return tuple(remark for broker in model.brokers if broker.alive for remark in closed_by_disks(broker))


def closed_by_disks(broker: Broker) -> Iterator[DiskRemark]:
    """Say why the log directories of a broker keep plans from giving it replicas; nothing if they do not."""
    for directory in broker.log_dirs:
        if directory.code:
            cause = f"log directory {directory.path} of broker {broker.id} has failed (Kafka error {directory.code})"
            text = f"{_sentence(cause)}: the broker receives no replicas. Repair the directory and restart the broker."
            yield DiskRemark(DiskCode.FAILED, broker.id, (directory.path,), cause, text)
    if broker.is_cordoned:
        cause = f"broker {broker.id} is cordoned, with all of its log directories (cordoned.log.dirs)"
        text = f"{_sentence(cause)}: it receives no replicas."
        yield DiskRemark(DiskCode.CORDONED, broker.id, _paths(broker, cordoned=True), cause, text)


def _of_room(broker: Broker) -> Iterator[DiskRemark]:
    cordoned = _paths(broker, cordoned=True)
    if cordoned and not broker.is_cordoned:
        is_ = "is" if len(cordoned) == 1 else "are"
        cause = f"on broker {broker.id} {', '.join(cordoned)} {is_} cordoned"
        text = f"{_sentence(cause)}: only the room of the others counts."
        yield DiskRemark(DiskCode.PARTLY_CORDONED, broker.id, cordoned, cause, text)
    for volume in volumes_of(broker.working_directories):
        if len(volume.paths) > 1:
            paths = ", ".join(volume.paths)
            cause = f"on broker {broker.id} {paths} have the same size and the same free bytes"
            text = f"{_sentence(cause)}: they count as one volume."
            yield DiskRemark(DiskCode.SHARED_VOLUME, broker.id, volume.paths, cause, text)


def _paths(broker: Broker, *, cordoned: bool) -> tuple[str, ...]:
    return tuple(directory.path for directory in broker.working_directories if directory.cordoned is cordoned)


def _sentence(cause: str) -> str:
    return cause[0].upper() + cause[1:]
