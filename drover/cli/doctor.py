"""`drover doctor`: check the log and the managed clusters, and print each problem with its remedy."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from drover.cli.exits import ExitCode
from drover.cli.help import drover_command
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import Fit, console, output_option, print_document, say, table
from drover.cli.throttle import find_throttles
from drover.client.acls import Part, needs
from drover.client.doctor import INVENTORY, ClusterFacts, Finding, KafkaFacts, LogFacts, Severity, findings
from drover.client.history import fold_cluster
from drover.cluster.controller_clock import read_clock_difference
from drover.cluster.rights import read_rights
from drover.errors import ClusterError, ConfigurationError, DroverError
from drover.inventory import NO_LOG_DIRECTORIES
from drover.journal import topics as own_topics
from drover.journal.reader import LogReader
from drover.settings.settings import Settings
from drover.traits import traits_of

if TYPE_CHECKING:
    from drover.cluster.port import ClusterDriver

TIMEOUT_MS = 10_000
COLUMNS = ("", "where", "check", "finding", "remedy")
Result = TypeVar("Result")


@drover_command(example="drover doctor --cluster prod")
@click.option(
    "--part",
    type=click.Choice([part.value for part in Part]),
    default=Part.OPERATOR.value,
    show_default=True,
    help="The part whose ACLs our user must have.",
)
@click.option("--strict", is_flag=True, help="End with exit code 1 also if there are only warnings.")
@output_option
@common_options
@pass_invocation
def doctor(invocation: Invocation, part: str, output: str, *, strict: bool) -> None:
    """Check connections, versions, ACLs, topics, clocks, throttles, balancers, disks and ZooKeeper; changes nothing.

    Each finding has its remedy. Exit code 1 if there is a problem, for CI: `drover doctor --part worker -o json`.
    """
    settings = invocation.settings()
    problems = asyncio.run(examine(settings, invocation.cluster_wanted(settings), Part(part)))
    if output != "table":
        rows = [asdict(finding) for finding in problems]
        print_document({"findings": rows}, rows, output)
    elif problems:
        _print_findings(problems)
    else:
        say("No problems.")
    counted = [finding for finding in problems if strict or finding.severity is Severity.PROBLEM]
    raise click.exceptions.Exit(ExitCode.FAILED if counted else ExitCode.DONE)


def _print_findings(problems: Sequence[Finding]) -> None:
    rows = [
        (finding.severity.value, finding.place, finding.check, finding.detail, finding.remedy) for finding in problems
    ]
    console().print(table(COLUMNS, rows, fit=Fit(prose=("finding", "remedy"), below=("remedy",))))


async def examine(settings: Settings, only: str | None, part: Part) -> tuple[Finding, ...]:
    """Check the log and all clusters, or only one cluster, and return the findings."""
    names = [only] if only is not None else sorted(settings.clusters)
    looking = asyncio.gather(*(_cluster_facts(settings, name) for name in names if name in settings.clusters))
    log, clusters = await asyncio.gather(_log_facts(settings), looking)
    return findings(log, clusters, needs(settings.log.topics, settings.group), part)


class _Gatherer:
    """Reads facts one by one; what cannot be read is noted under the name of its check."""

    def __init__(self) -> None:
        self.unread: dict[str, str] = {}

    async def read(self, check: str, read: Callable[[], Awaitable[Result]], otherwise: Result) -> Result:
        """Return what `read` returns, or `otherwise` with the reason noted."""
        try:
            return await read()
        except DroverError as error:
            self.unread[check] = str(error)
            return otherwise


async def _log_facts(settings: Settings) -> LogFacts:
    now_ms = time.time_ns() // 1_000_000
    try:
        connection = settings.log.connection()
    except ConfigurationError as error:
        return LogFacts(KafkaFacts(str(error)), now_ms)
    bootstrap, names = settings.log.bootstrap, [rule.name for rule in own_topics.rules(settings.log.topics, 1)]
    gatherer = _Gatherer()
    async with _opened("log", bootstrap, connection.security) as driver:
        kafka = await _kafka_facts(driver, gatherer)
        if kafka.failure is not None:
            return LogFacts(kafka, now_ms)
        reading = functools.partial(read_rights, bootstrap, connection.security, names, settings.group)
        rights = await gatherer.read("ACLs", reading, None)
        nothing: tuple[own_topics.Finding, ...] = ()
        topic_findings = await gatherer.read("topics", lambda: own_topics.check(connection), nothing)
        newest_ms = await gatherer.read("clocks", lambda: _newest_ms(settings), None)
        directories = await gatherer.read("disks", lambda: driver.log_directories(()), NO_LOG_DIRECTORIES)
        ahead_ms = await _clock_ahead_ms(bootstrap, connection.security, kafka, gatherer)
    kafka = replace(kafka, rights=rights, clock_ahead_ms=ahead_ms)
    return LogFacts(kafka, now_ms, topic_findings, newest_ms, directories.directories)


async def _newest_ms(settings: Settings) -> int | None:
    """Return the time of the newest record of the log, None if it has none."""
    topic = settings.log.topics.events
    async with LogReader(settings.log.connection()) as reader:
        shards = range((await reader.partition_counts((topic,)))[topic])
        ends = await reader.end_offsets(topic, shards) if shards else {}
        last = {shard: end - 1 for shard, end in ends.items() if end > 0}
        newest = [record.timestamp_ms async for records in reader.read(topic, last) for record in records]
    return max(newest, default=None)


async def _cluster_facts(settings: Settings, name: str) -> ClusterFacts:
    cluster = settings.clusters[name]
    try:
        security = cluster.security.client_options(f"clusters.{name}.security")
    except ConfigurationError as error:
        return ClusterFacts(name, KafkaFacts(str(error)))
    gatherer = _Gatherer()
    async with _opened(name, cluster.bootstrap, security) as driver:
        kafka = await _kafka_facts(driver, gatherer)
        if kafka.failure is not None:
            return ClusterFacts(name, kafka)
        reading = functools.partial(read_rights, cluster.bootstrap, security, None)
        rights = await gatherer.read("ACLs", reading, None)
        inventory = await gatherer.read(INVENTORY, driver.inventory, None)
        ahead_ms = await _clock_ahead_ms(cluster.bootstrap, security, kafka, gatherer)
    throttles = await gatherer.read("leftover throttles", lambda: find_throttles(settings, name), None)
    state = await gatherer.read("moves of others", lambda: fold_cluster(settings.log.connection(), name), None)
    no_nodes: Mapping[str, Sequence[str]] = {}
    exposed = await gatherer.read("ZooKeeper", lambda: _exposed_nodes(settings, name), no_nodes)
    facts = ClusterFacts(name, replace(kafka, rights=rights, clock_ahead_ms=ahead_ms), exposed_nodes=exposed)
    if throttles is not None:
        facts = replace(facts, rates=throttles.rates, entries=throttles.entries)
    if inventory is None:
        return facts
    moving = [key for key, partition in inventory.partitions.items() if partition.move is not None]
    return replace(
        facts,
        topics={key.topic for key in inventory.partitions},
        unreachable=inventory.standings.unreachable,
        dead=[number for number, broker in inventory.brokers.items() if not broker.is_alive],
        moves_of_others=() if state is None else [key for key in moving if key not in state.reassignments],
        directories={number: broker.directories or () for number, broker in inventory.brokers.items()},
    )


async def _exposed_nodes(settings: Settings, cluster: str) -> Mapping[str, Sequence[str]]:
    if settings.zookeeper.hosts is None:
        return {}
    from drover.projections.projection import exposed_nodes  # noqa: PLC0415 - kazoo is loaded where there is a ZooKeeper

    return await exposed_nodes(settings, cluster)


async def _clock_ahead_ms(
    bootstrap: str, security: Mapping[str, Any], kafka: KafkaFacts, gatherer: _Gatherer
) -> int | None:
    traits = traits_of(kafka.versions.values())
    if traits is None or traits.zookeeper_mode or traits.migrates:
        return None
    return await gatherer.read("clocks", lambda: read_clock_difference(bootstrap, security), None)


async def _kafka_facts(driver: "ClusterDriver", gatherer: _Gatherer) -> KafkaFacts:
    try:
        live = (await driver.identify()).racks
        versions = await driver.broker_versions()
    except ClusterError as error:
        return KafkaFacts(str(error))
    # One mapping, which is filled as more is read.
    return KafkaFacts(None, sorted(live), versions, unread=gatherer.unread)


@asynccontextmanager
async def _opened(name: str, bootstrap: str, security: Mapping[str, Any]) -> AsyncIterator["ClusterDriver"]:
    from drover.cluster.kafka import KafkaDriver  # noqa: PLC0415 - the Kafka client costs start-up time

    driver = KafkaDriver(name, bootstrap, security, call_timeout_ms=TIMEOUT_MS)
    try:
        yield driver
    finally:
        await driver.close()
