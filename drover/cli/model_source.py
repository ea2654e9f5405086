"""The cluster that `describe` and `plan` work on: read from the live one, or from a file."""

import asyncio
import fnmatch
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from drover.cli.files import read_text
from drover.cli.invocation import Invocation
from drover.cli.log_state import read_state
from drover.cli.model_file import parse_model
from drover.cli.output import plural, say
from drover.cli.parameters import Brokers, Duration, NamedPath
from drover.cluster.port import ClusterDriver
from drover.cluster_model import Knowledge, Rates, hidden_topics, model_of, rates_between
from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.topics import TopicNames
from drover.inventory import Inventory
from drover.planner.model import ClusterModel
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.state.destinations import destinations, targets

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
CONNECT_TIMEOUT_MS = 5_000
CALL_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Source:
    """Options of the model: a file instead of the live cluster, excluded brokers, seconds between two looks."""

    file: Path | None = None
    exclude_brokers: frozenset[int] = frozenset()
    ingest_s: float | None = None


def source_options(command: Decorated) -> Decorated:
    """Add `--model` and `--ingest`."""
    for option in (
        click.option(
            "--ingest",
            type=Duration(),
            metavar="DURATION",
            help="Look twice, so far apart, to learn how much is written to each partition.",
        ),
        click.option(
            "--model",
            type=NamedPath(dir_okay=False, allow_dash=True),
            metavar="FILE",
            help="Take the cluster from a file that `drover describe --save` wrote; no cluster is contacted.",
        ),
    ):
        command = option(command)
    return command


def exclude_brokers_option(command: Decorated) -> Decorated:
    """Add `--exclude-brokers`."""
    return click.option(
        "--exclude-brokers", type=Brokers(), multiple=True, metavar="ID,ID", help="Brokers that shall get nothing."
    )(command)


def source_of(options: dict[str, Any]) -> Source:
    """Gather these options, with which each command has been called."""
    excluded = frozenset(broker for given in options.get("exclude_brokers", ()) for broker in given)
    source = Source(options["model"], excluded, options["ingest"])
    if source.file is not None and source.ingest_s is not None:
        raise click.UsageError("--ingest looks at a cluster twice, and --model at none: choose one")
    return source


def read_model(invocation: Invocation, source: Source, *, with_log: bool) -> ClusterModel:
    """Read the model.

    With `with_log`, partitions that Drover moves or will move and brokers that are held, or should not lead, are taken
    from the log; where it cannot be read, a warning says so. Raises `ConfigurationError` for a file
    that cannot be used, and for excluded brokers that do not exist; `ClusterError` for a cluster that does not answer.
    """
    if source.file is not None:
        model = parse_model(read_text(source.file, "cluster model"), str(source.file))
        _check_known(source.exclude_brokers, model)
        return _excluding(model, source.exclude_brokers)
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    model = asyncio.run(_model_of(settings, cluster, source, with_log=with_log))
    _check_known(source.exclude_brokers, model)
    return model


def topics_matching(patterns: Iterable[str], model: ClusterModel) -> tuple[str, ...]:
    """Return the topics that these names and patterns mean (`*` and `?` stand for anything).

    Raises `ConfigurationError` for one that means no topic: it is most likely misspelt.
    """
    topics = sorted({partition.topic for partition in model.partitions})
    found: list[str] = []
    for pattern in patterns:
        matching = fnmatch.filter(topics, pattern)
        if not matching:
            raise ConfigurationError(f"no topic of the cluster is called {pattern}")
        found += matching
    return tuple(dict.fromkeys(found))


def topics_named(names: Iterable[str], model: ClusterModel) -> tuple[str, ...]:
    """Return the topics that a goal is about: each pattern becomes what it means, and a name stays what it is.

    Raises as `topics_matching` does, for patterns only.
    """
    topics: list[str] = []
    for name in names:
        topics += topics_matching([name], model) if {"*", "?"} & set(name) else [name]
    return tuple(dict.fromkeys(topics))


async def _model_of(settings: Settings, cluster: str, source: Source, *, with_log: bool) -> ClusterModel:
    state = await state_of(settings, cluster) if with_log else ClusterState(cluster)
    return await live_model(settings, state, source)


async def live_model(settings: Settings, state: ClusterState, source: Source) -> ClusterModel:
    """Look at the cluster whose state this is. Raises `ClusterError`, and `ConfigurationError` if it is not configured.

    The state is read before the first look; it may change meanwhile.
    """
    known = knowledge_of(state)
    inventory, rates = await _look(settings, state.name, source.ingest_s)
    silent = [broker.broker for broker in inventory.brokers.values() if broker.is_alive and broker.directories is None]
    if silent:
        say(
            f"broker {', '.join(map(str, sorted(silent)))} of cluster {state.name} has not answered in time: its "
            "directories and the sizes of its replicas are unknown.",
            err=True,
        )
    hidden = hidden_topics(inventory)
    if hidden:
        say(
            f"{plural(len(hidden), 'topic')} on the brokers' disks, such as {hidden[0]}, cannot be seen: they were "
            "deleted a moment ago, or the user may not describe them. Nothing is planned for them.",
            err=True,
        )
    own_topics = _own_topics(settings.log.topics)
    return model_of(inventory, replace(known, excluded=source.exclude_brokers, own_topics=own_topics, rates=rates))


def knowledge_of(state: ClusterState) -> Knowledge:
    """Say what a plan must know that only the log says: a copy into a held broker would not begin, for instance."""
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


async def _look(settings: Settings, cluster: str, ingest_s: float | None) -> tuple[Inventory, Rates | None]:
    # A cluster that is not there is told at once; one that is there may be large, and take its time.
    async with open_driver(settings, cluster, CONNECT_TIMEOUT_MS) as driver:
        await driver.identify()
    async with open_driver(settings, cluster, CALL_TIMEOUT_MS) as driver:
        first = await driver.inventory()
        if ingest_s is None:
            return first, None
        await asyncio.sleep(ingest_s)
        second = await driver.inventory()
        return second, rates_between(first, second)


@asynccontextmanager
async def open_driver(settings: Settings, cluster: str, timeout_ms: int) -> AsyncIterator[ClusterDriver]:
    """Open a driver of a configured cluster. Raises `ConfigurationError` for any other."""
    from drover.cluster.kafka import KafkaDriver  # noqa: PLC0415 - the Kafka client costs start-up time

    if cluster not in settings.clusters:
        raise ConfigurationError(f"cluster {cluster} is not configured: add [clusters.{cluster}] to the settings file")
    found = settings.clusters[cluster]
    options = found.security.client_options(f"clusters.{cluster}.security")
    driver = KafkaDriver(cluster, found.bootstrap, options, call_timeout_ms=timeout_ms)
    try:
        yield driver
    finally:
        await driver.close()


async def state_of(settings: Settings, cluster: str) -> ClusterState:
    """Return the cluster as the log says it is; where that cannot be read, a warning says so."""
    try:
        return await read_state(settings.log.connection(), cluster)
    except (ConfigurationError, LogUnavailableError) as error:
        say(f"Moves that wait in Drover's log are not taken into account: {error}", err=True)
        return ClusterState(cluster)


def _own_topics(names: TopicNames) -> frozenset[str]:
    return frozenset({*names.commands, names.events, names.snapshots, names.progress, names.dead_letters})


def _check_known(brokers: Iterable[int], model: ClusterModel) -> None:
    unknown = sorted(set(brokers) - model.broker_by_id.keys())
    if unknown:
        known = ", ".join(str(broker.id) for broker in model.brokers)
        raise ConfigurationError(f"there is no broker {', '.join(map(str, unknown))} to exclude; there are {known}")


def _excluding(model: ClusterModel, brokers: frozenset[int]) -> ClusterModel:
    changed = (replace(broker, excluded=broker.excluded or broker.id in brokers) for broker in model.brokers)
    return ClusterModel.of(changed, model.partitions, model.cluster_id)
