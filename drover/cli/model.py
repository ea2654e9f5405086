"""The model of a cluster for `describe` and `plan`: read from the live cluster, or from a file."""

import asyncio
import fnmatch
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click
import msgspec
from msgspec import Meta

from drover.cli.capacity_file import parse_capacities
from drover.cli.help import completing, did_you_mean
from drover.cli.invocation import Invocation, all_options
from drover.cli.output import listed, plural, read_text, say
from drover.cli.parameters import BROKERS, DURATION, NamedPath
from drover.client.history import fold_cluster
from drover.cluster.reach import check_reachable
from drover.cluster_model import Knowledge, Look, MeasuredRates, hidden_topics, model_of, rates_between
from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.fields import BrokerId, Index
from drover.events.undecodable import UNDECODABLE
from drover.inventory import Inventory
from drover.planner.capacities import Capacities, with_capacities
from drover.planner.model import Broker, BrokerSet, ClusterModel, Partition
from drover.planner.placement import Placement, with_placement
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.state.destinations import destinations, targets

if TYPE_CHECKING:
    from drover.cluster.kafka import KafkaDriver

VERSION = 1
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
BytesPerSecond = Annotated[float, Meta(ge=0, le=2**63)]
Cores = Annotated[float, Meta(ge=0, le=2**20)]
CONNECT_TIMEOUT_MS = 5_000
CALL_TIMEOUT_MS = 60_000


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
    network_in_bytes_per_s: BytesPerSecond | None = None
    network_out_bytes_per_s: BytesPerSecond | None = None
    cores: Cores | None = None
    max_replicas: Annotated[int, Meta(ge=0)] | None = None


class _SavedPartition(msgspec.Struct, frozen=True, omit_defaults=True):
    topic: str
    partition: Index
    replicas: tuple[BrokerId, ...]
    leader: BrokerId | msgspec.UnsetType | None = msgspec.UNSET
    isr: tuple[BrokerId, ...] | msgspec.UnsetType = msgspec.UNSET
    size_bytes: Bytes | None = None
    write_bytes_per_s: BytesPerSecond | None = None
    internal: bool = False
    moving: bool = False
    topic_id: str = ""
    leader_unreachable: bool = False
    target: tuple[BrokerId, ...] | None = None
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    read_bytes_per_s: BytesPerSecond | None = None
    cpu_cores: Cores | None = None


class _SavedSet(msgspec.Struct, frozen=True):
    name: str
    brokers: tuple[BrokerId, ...]
    topics: tuple[str, ...]


class _SavedModel(msgspec.Struct, frozen=True):
    version: int
    brokers: tuple[_SavedBroker, ...]
    partitions: tuple[_SavedPartition, ...]
    cluster_id: str = ""
    reads_from_followers: bool = False
    broker_sets: tuple[_SavedSet, ...] = ()
    min_leaders: dict[str, Annotated[int, Meta(ge=1)]] = msgspec.field(default_factory=dict)
    leaders_in_racks: tuple[str, ...] = ()


def save_model(model: ClusterModel) -> str:
    """Format a model as JSON, with a line for each broker and partition, so that versions can be compared."""
    saved = msgspec.convert(
        {"version": VERSION, "brokers": model.brokers, "partitions": model.partitions},
        _SavedModel,
        from_attributes=True,
    )
    brokers, partitions = (_json_lines(rows) for rows in (saved.brokers, saved.partitions))
    cluster = msgspec.json.encode(model.cluster_id).decode()
    followers = ', "reads_from_followers": true' if model.reads_from_followers else ""
    asked = {
        "broker_sets": model.broker_sets,
        "min_leaders": dict(model.min_leaders),
        "leaders_in_racks": model.leaders_in_racks,
    }
    placed = "".join(f', "{name}": {msgspec.json.encode(each).decode()}' for name, each in asked.items() if each)
    head = f'"version": {VERSION}, "cluster_id": {cluster}{followers}{placed}'
    return f'{{{head},\n"brokers": [\n{brokers}\n],\n"partitions": [\n{partitions}\n]}}\n'


def _json_lines(rows: tuple[msgspec.Struct, ...]) -> str:
    return ",\n".join(msgspec.json.encode(row).decode() for row in rows)


def parse_model(text: str, name: str) -> ClusterModel:
    """Parse a model that `save_model` or a person has written; optional fields may be left out.

    Without `isr`, every replica on a living broker is in sync; without `leader`, the first of these leads. A partition
    without a leader has `"leader": null`. Raises `ConfigurationError` that names the file and the place.
    """
    try:
        # Some editors and shells begin a file with a byte order mark.
        saved = msgspec.json.decode(text.removeprefix("\ufeff"), type=_SavedModel)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{name} is not a cluster model: {error}; `drover describe --save` writes one"
        ) from None
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    _check_saved(saved, name)
    alive = {broker.id for broker in saved.brokers if broker.alive}
    model = ClusterModel.of(
        msgspec.convert(saved.brokers, tuple[Broker, ...], from_attributes=True),
        msgspec.convert(
            [_with_leader(partition, alive) for partition in saved.partitions], list[Partition], from_attributes=True
        ),
        saved.cluster_id,
        reads_from_followers=saved.reads_from_followers,
    )
    sets = msgspec.convert(saved.broker_sets, tuple[BrokerSet, ...], from_attributes=True)
    placement = Placement(sets, tuple(saved.min_leaders.items()), saved.leaders_in_racks)
    return with_placement(model, placement)


def _with_leader(saved: _SavedPartition, alive: set[int]) -> _SavedPartition:
    in_sync = tuple(broker for broker in saved.replicas if broker in alive)
    isr = in_sync if saved.isr is msgspec.UNSET else saved.isr
    leader = next(iter(isr), None) if saved.leader is msgspec.UNSET else saved.leader
    return msgspec.structs.replace(saved, isr=isr, leader=leader)


def _check_saved(saved: _SavedModel, name: str) -> None:
    """Refuse a model that no cluster can have."""
    if saved.version != VERSION:
        raise ConfigurationError(f"{name} has version {saved.version}; this Drover reads version {VERSION} only")
    brokers = [broker.id for broker in saved.brokers]
    if len(set(brokers)) != len(brokers):
        twice = next(broker for broker in brokers if brokers.count(broker) > 1)
        raise ConfigurationError(f"{name} names broker {twice} twice")
    seen = set()
    for partition in saved.partitions:
        where = f"{partition.topic}:{partition.partition}"
        if (partition.topic, partition.partition) in seen:
            raise ConfigurationError(f"{name} names partition {where} twice")
        seen.add((partition.topic, partition.partition))
        if not partition.replicas or len(set(partition.replicas)) != len(partition.replicas):
            raise ConfigurationError(f"{name}: {where} must have at least one replica, and each broker once")


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Source:
    """Options of the model: a file instead of the live cluster, excluded brokers, seconds between two looks.

    `capacity_file` says what brokers can bear, and wins over settings and the model's file.
    """

    file: Path | None = None
    exclude_brokers: frozenset[int] = frozenset()
    load_s: float | None = None
    capacity_file: Path | None = None

    def capacities(self) -> Capacities:
        """Read the capacity file, if there is one. Raises `ConfigurationError`."""
        if self.capacity_file is None:
            return Capacities()
        return parse_capacities(read_text(self.capacity_file, "capacity file"), str(self.capacity_file))


source_options = all_options(
    click.option(
        "--model",
        type=NamedPath(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Read the cluster from a file of `drover describe --save` instead of contacting it.",
    ),
    click.option(
        "--load",
        type=DURATION,
        metavar="DURATION",
        help="Look twice, this far apart, to measure what is written to each partition and read from it.",
    ),
    click.option(
        "--capacity",
        type=NamedPath(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="What brokers can bear, in the form of Cruise Control's capacity.json; wins over the settings.",
    ),
)
exclude_brokers_option = click.option(
    "--exclude-brokers",
    shell_complete=completing("brokers"),
    type=BROKERS,
    multiple=True,
    metavar="ID,ID",
    help="Brokers that must not receive replicas.",
)


def source_of(options: dict[str, Any]) -> Source:
    """Return the source that a command's options describe."""
    excluded = frozenset(broker for given in options.get("exclude_brokers", ()) for broker in given)
    source = Source(options["model"], excluded, options["load"], options["capacity"])
    if source.file is not None and source.load_s is not None:
        raise click.UsageError("--load measures a live cluster, and --model reads a file: choose one")
    return source


def read_model(invocation: Invocation, source: Source, *, with_log: bool) -> ClusterModel:
    """Read the model.

    With `with_log`, the log adds the partitions that Drover moves or will move, and the brokers that are held or should
    not lead; if it cannot be read, a warning says so. Raises `ConfigurationError` for an unusable file and for excluded
    brokers that do not exist, and `ClusterError` for a cluster that does not answer.
    """
    if source.file is not None:
        model = parse_model(read_text(source.file, "cluster model"), str(source.file))
        _check_known(source.exclude_brokers, model)
        return with_capacities(_excluding(model, source.exclude_brokers), source.capacities())
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    model = asyncio.run(_model_of(settings, cluster, source, with_log=with_log))
    _check_known(source.exclude_brokers, model)
    return model


def topics_matching(patterns: Iterable[str], model: ClusterModel) -> tuple[str, ...]:
    """Return the topics that match these names and patterns (`*` and `?` are wildcards).

    Raises `ConfigurationError` for a pattern without a match, because it is most likely misspelt.
    """
    topics = sorted({partition.topic for partition in model.partitions})
    selected: list[str] = []
    for pattern in patterns:
        matching = fnmatch.filter(topics, pattern)
        if not matching:
            raise ConfigurationError(
                f"no topic of the cluster is called {pattern}. {did_you_mean(pattern, topics)}".rstrip()
            )
        selected += matching
    return tuple(dict.fromkeys(selected))


def topics_named(names: Iterable[str], model: ClusterModel) -> tuple[str, ...]:
    """Return the topics of a goal: names as they are, and the matches of each pattern.

    Raises `ConfigurationError` for a pattern without a match; a name need not exist.
    """
    topics: list[str] = []
    for name in names:
        topics += topics_matching([name], model) if {"*", "?"} & set(name) else [name]
    return tuple(dict.fromkeys(topics))


async def _model_of(settings: Settings, cluster: str, source: Source, *, with_log: bool) -> ClusterModel:
    state = await state_of(settings, cluster) if with_log else ClusterState(cluster)
    return await live_model(settings, state, source)


async def live_model(settings: Settings, state: ClusterState, source: Source) -> ClusterModel:
    """Read the cluster of this state. Raises `ClusterError`, and `ConfigurationError` if it is not configured.

    The state is older than the reading, and may have changed since.
    """
    knowledge = knowledge_of(state)
    inventory, rates = await _look(settings, state.name, source.load_s)
    silent = [broker.broker for broker in inventory.brokers.values() if broker.is_alive and broker.directories is None]
    if silent:
        say(
            f"broker {listed(sorted(silent))} of cluster {state.name} has not answered in time: its "
            "directories and the sizes of its replicas are unknown.",
            err=True,
        )
    hidden = hidden_topics(inventory)
    if hidden:
        say(
            f"{plural(len(hidden), 'topic')} on the brokers' disks, such as {hidden[0]}, cannot be seen: they were "
            "just deleted, or the user lacks the ACL to describe them. They are left out of the plan.",
            err=True,
        )
    model = model_of(
        inventory,
        replace(knowledge, excluded=source.exclude_brokers, own_topics=settings.log.topics.own, rates=rates),
    )
    rules = settings.rules[state.name]
    absent = sorted(set(rules.placement.leaders_in_racks) - {broker.rack for broker in model.brokers})
    if absent:
        raise ConfigurationError(
            f"clusters.{state.name}.placement.leaders_in_racks: no broker of the cluster is in rack {', '.join(absent)}"
        )
    return replace(rules, capacities=source.capacities().over(rules.capacities)).on(model)


def knowledge_of(state: ClusterState) -> Knowledge:
    """Return the facts for a plan that only the log has, such as held brokers, to which no copy would begin."""
    return Knowledge(
        held=state.held_destinations,
        moving=frozenset((*state.reassignments, *state.queue)),
        destinations=destinations(state),
        demoted=state.listed_in_topics,
        demoted_everywhere=state.listed_everywhere,
        emptied={broker: state.owner_of(plan) for broker, plan in state.plans_emptying.items()},
        filled={broker: state.owner_of(plan) for broker, plan in state.plans_filling.items()},
        targets=targets(state),
    )


async def _look(settings: Settings, cluster: str, load_s: float | None) -> tuple[Inventory, MeasuredRates | None]:
    # A short timeout to connect reports an absent cluster soon; reading a large one may take longer.
    async with open_driver(settings, cluster, CONNECT_TIMEOUT_MS) as driver:
        await driver.identify()
    async with open_driver(settings, cluster, CALL_TIMEOUT_MS) as driver:
        if load_s is None:
            return await driver.inventory(), None
        earlier = await _look_at_loads(driver)
        await asyncio.sleep(load_s)
        later = await _look_at_loads(driver)
        rates = rates_between(earlier, later)
        for why in rates.unread:
            say(f"What consumers read is unknown, because {why}.", err=True)
        return later.inventory, rates


async def _look_at_loads(driver: "KafkaDriver") -> Look:
    inventory = await driver.inventory()
    leaders = {key: facts.leader for key, facts in inventory.partitions.items() if facts.leader is not None}
    return Look(inventory, await driver.positions(leaders))


@asynccontextmanager
async def open_driver(settings: Settings, cluster: str, timeout_ms: int) -> AsyncIterator["KafkaDriver"]:
    """Open a driver for a configured cluster.

    Raises `ConfigurationError` for any other cluster, and `ClusterUnavailableError` soon if nobody listens there.
    """
    from drover.cluster.kafka import KafkaDriver  # noqa: PLC0415 - the Kafka client costs start-up time

    if cluster not in settings.clusters:
        raise ConfigurationError(f"cluster {cluster} is not configured: add [clusters.{cluster}] to the settings file")
    configured = settings.clusters[cluster]
    await check_reachable(configured.bootstrap)
    options = configured.security.client_options(f"clusters.{cluster}.security")
    driver = KafkaDriver(cluster, configured.bootstrap, options, call_timeout_ms=timeout_ms)
    try:
        yield driver
    finally:
        await driver.close()


async def state_of(settings: Settings, cluster: str) -> ClusterState:
    """Return the cluster's state from the log; if the log cannot be read, print a warning and return an empty state."""
    try:
        return await fold_cluster(settings.log.connection(), cluster)
    except (ConfigurationError, LogUnavailableError) as error:
        say(f"The log cannot be read, so moves that wait in it are not taken into account: {error}", err=True)
        return ClusterState(cluster)


def _check_known(brokers: Iterable[int], model: ClusterModel) -> None:
    unknown = sorted(set(brokers) - model.broker_by_id.keys())
    if unknown:
        ids = ", ".join(str(broker.id) for broker in model.brokers)
        raise ConfigurationError(f"there is no broker {listed(unknown)} to exclude; there are {ids}")


def _excluding(model: ClusterModel, brokers: frozenset[int]) -> ClusterModel:
    changed = (replace(broker, excluded=broker.excluded or broker.id in brokers) for broker in model.brokers)
    return replace(model, brokers=tuple(changed))
