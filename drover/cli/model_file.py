"""PURE: a cluster in a file, so that plans can be made without it; docs/planning.md describes the format."""

from typing import Annotated

import msgspec
from msgspec import Meta

from drover.errors import ConfigurationError
from drover.events.fields import BrokerId, Index
from drover.events.undecodable import UNDECODABLE
from drover.planner.model import Broker, ClusterModel, LogDir, Partition

VERSION = 1
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
BytesPerSecond = Annotated[float, Meta(ge=0, le=2**63)]


class _SavedDirectory(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    total_bytes: Bytes | None = None
    free_bytes: Bytes | None = None
    cordoned: bool = False
    code: int = 0


class _SavedBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    id: BrokerId
    rack: str | None = None
    alive: bool = True
    excluded: bool = False
    held: bool = False
    failing: bool = False
    log_dirs: tuple[_SavedDirectory, ...] = ()
    arriving_bytes: Bytes = 0
    demoted: bool = False
    demoted_topics: tuple[str, ...] = ()
    unreachable: bool = False
    emptied_by: str | None = None
    filled_by: str | None = None
    arriving_replicas: Annotated[int, Meta(ge=0)] = 0
    unregistered: bool = False


class _SavedPartition(msgspec.Struct, frozen=True, omit_defaults=True):
    topic: str
    partition: Index
    replicas: tuple[BrokerId, ...]
    leader: BrokerId | msgspec.UnsetType | None = msgspec.UNSET
    isr: tuple[BrokerId, ...] | msgspec.UnsetType = msgspec.UNSET
    size_bytes: Bytes | None = None
    ingest_bytes_per_s: BytesPerSecond | None = None
    internal: bool = False
    moving: bool = False
    topic_id: str = ""
    leader_unreachable: bool = False
    target: tuple[BrokerId, ...] | None = None
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()


class _SavedModel(msgspec.Struct, frozen=True):
    version: int
    brokers: tuple[_SavedBroker, ...]
    partitions: tuple[_SavedPartition, ...]
    cluster_id: str = ""


def save_model(model: ClusterModel) -> str:
    """Write a model as JSON, one broker and one partition to a line, so that versions can be compared."""
    saved = msgspec.convert(
        {"version": VERSION, "brokers": model.brokers, "partitions": model.partitions},
        _SavedModel,
        from_attributes=True,
    )
    brokers, partitions = (_lines(rows) for rows in (saved.brokers, saved.partitions))
    cluster = msgspec.json.encode(model.cluster_id).decode()
    head = f'"version": {VERSION}, "cluster_id": {cluster}'
    return f'{{{head},\n"brokers": [\n{brokers}\n],\n"partitions": [\n{partitions}\n]}}\n'


def _lines(rows: tuple[msgspec.Struct, ...]) -> str:
    return ",\n".join(msgspec.json.encode(row).decode() for row in rows)


def parse_model(text: str, name: str) -> ClusterModel:
    """Read what `save_model` has written, or somebody by hand; what a planner cannot know may be left out.

    Where `isr` is left out, every replica on a living broker is in sync; where `leader` is, the first of these leads. A
    partition that nobody leads says so: `"leader": null`. Raises `ConfigurationError` that names the file and the
    place.
    """
    try:
        # Some editors and shells put a mark of the byte order first.
        saved = msgspec.json.decode(text.removeprefix("\ufeff"), type=_SavedModel)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} is not a cluster model: {error}") from None
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    _check(saved, name)
    alive = {broker.id for broker in saved.brokers if broker.alive}
    return ClusterModel.of(
        (_broker(broker) for broker in saved.brokers),
        (_partition(one, alive) for one in saved.partitions),
        saved.cluster_id,
    )


def _broker(saved: _SavedBroker) -> Broker:
    directories = tuple(
        LogDir(one.path, one.total_bytes, one.free_bytes, one.cordoned, one.code) for one in saved.log_dirs
    )
    return Broker(
        saved.id,
        saved.rack,
        saved.alive,
        saved.excluded,
        saved.held,
        saved.failing,
        directories,
        saved.arriving_bytes,
        saved.demoted,
        saved.demoted_topics,
        saved.unreachable,
        saved.emptied_by,
        saved.filled_by,
        saved.arriving_replicas,
        saved.unregistered,
    )


def _partition(saved: _SavedPartition, alive: set[int]) -> Partition:
    in_sync = tuple(broker for broker in saved.replicas if broker in alive)
    isr = in_sync if saved.isr is msgspec.UNSET else saved.isr
    leader = next(iter(isr), None) if saved.leader is msgspec.UNSET else saved.leader
    return Partition(
        topic=saved.topic,
        partition=saved.partition,
        replicas=saved.replicas,
        leader=leader,
        isr=isr,
        size_bytes=saved.size_bytes,
        ingest_bytes_per_s=saved.ingest_bytes_per_s,
        internal=saved.internal,
        moving=saved.moving,
        topic_id=saved.topic_id,
        leader_unreachable=saved.leader_unreachable,
        target=saved.target,
        adding=saved.adding,
        removing=saved.removing,
    )


def _check(saved: _SavedModel, name: str) -> None:
    """Refuse what no cluster can look like."""
    if saved.version != VERSION:
        raise ConfigurationError(f"{name} has version {saved.version}; only version {VERSION} is known")
    brokers = [broker.id for broker in saved.brokers]
    if len(set(brokers)) != len(brokers):
        twice = next(broker for broker in brokers if brokers.count(broker) > 1)
        raise ConfigurationError(f"{name} names broker {twice} twice")
    seen = set()
    for one in saved.partitions:
        where = f"{one.topic}:{one.partition}"
        if (one.topic, one.partition) in seen:
            raise ConfigurationError(f"{name} names partition {where} twice")
        seen.add((one.topic, one.partition))
        if not one.replicas or len(set(one.replicas)) != len(one.replicas):
            raise ConfigurationError(f"{name}: {where} must have at least one replica, and each broker once")
