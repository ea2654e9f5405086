"""From settings to a running worker: create and connect every part, and close them in reverse order."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import NoReturn

import structlog

from drover.agents.app import CommandGroup
from drover.agents.clock import now
from drover.agents.clusters import ClusterServices
from drover.agents.host import ShardHost
from drover.agents.services import BesideWorker, ClusterSide
from drover.agents.settings import GroupSettings
from drover.agents.snapshots import SnapshotKeeper
from drover.agents.state_metrics import StateMetrics
from drover.agents.watchdog import EXIT_FAULT, Watchdog
from drover.agents.worker import readiness, run_process, run_until_stopped
from drover.cluster.kafka import KafkaDriver
from drover.errors import LogUnavailableError
from drover.events.codec import encode_progress
from drover.events.progress import Progress
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import Journal
from drover.service.health import Check, HealthServer
from drover.service.logs import announce_plaintext, configure_logging
from drover.service.metrics import Metrics
from drover.service.process import unless_stopped
from drover.settings.settings import Settings

ClusterSideFactory = Callable[[Settings, Journal, Metrics], ClusterSide]
_log = structlog.get_logger(__name__)


def cluster_services(settings: Settings, journal: Journal, metrics: Metrics) -> ClusterServices:
    """Create the drivers and watchers of every configured cluster."""
    drivers = {
        name: KafkaDriver(name, cluster.bootstrap, cluster.security.client_options(f"clusters.{name}.security"))
        for name, cluster in settings.clusters.items()
    }
    topic = settings.log.topics.progress

    async def publish(samples: Sequence[Progress]) -> None:
        sends = (journal.send(topic, encode_progress(sample), key=_progress_key(sample)) for sample in samples)
        try:
            await asyncio.gather(*sends)
        except LogUnavailableError as error:
            # Only telemetry: the next sample replaces this one.
            _log.warning("byte samples were not published", error=str(error))

    return ClusterServices(drivers, publish, _fail, metrics, settings.rules)


def _progress_key(sample: Progress) -> bytes:
    return f"{sample.cluster}/{sample.topic}/{sample.partition}".encode()


def _fail(error: BaseException) -> NoReturn:
    _log.critical("the worker ends", reason="watching or calling a cluster failed", exc_info=error)
    os._exit(EXIT_FAULT)


def serve(settings: Settings, new_clusters: ClusterSideFactory = cluster_services) -> int:
    """Run a worker until SIGTERM or SIGINT and return its exit code; `new_clusters` replaces the managed clusters.

    Raises `ConfigurationError` before it joins the group if a setting is unusable or a topic breaks its rules. A fault
    while it runs ends the process with 70, a stop that takes too long with 71.
    """
    configure_logging(settings.worker.log_format)
    announce_plaintext(settings)
    return run_process(lambda stop, watchdog: _run(settings, new_clusters, stop, watchdog))


async def _run(settings: Settings, new_clusters: ClusterSideFactory, stop: asyncio.Event, watchdog: Watchdog) -> None:
    connection = settings.log.connection()
    new_projection = _projection(settings)
    _log.info("looking for the log", bootstrap=connection.bootstrap)
    checked = await unless_stopped(topics.verify(connection), stop)
    if checked is None:
        _log.info("stopped before the log was reached")
        return
    for finding in checked.findings:
        _log.warning("going on without snapshots", why=finding.detail, remedy=finding.remedy)
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as stack:
        journal = KafkaJournal(connection, checked.shards, settings.worker.full_name)
        stack.push_async_callback(journal.close)
        every_records = settings.worker.snapshot_every_records if checked.has_snapshots else 0
        snapshots = SnapshotKeeper(journal, connection.topics, every_records, metrics)
        clusters = new_clusters(settings, journal, metrics)
        host = ShardHost(
            *(settings, checked.command_topic_ids, journal, clusters, snapshots, metrics),
            read_topic_ids=lambda: topics.command_topic_ids(connection),
        )
        metrics.expect(checked.shards, connection.topics.commands, settings.clusters)
        metrics.collect(StateMetrics(host.owned_states, lambda: now().wall_ms))
        group = CommandGroup(_group_settings(settings, connection), host)
        host.attach(group)
        beside = None if new_projection is None else new_projection(metrics)
        if beside is not None:
            stack.push_async_callback(beside.close)
            beside.start()
        live = (Check("loop", ok=True, detail="runs, since it answers"),)
        server = HealthServer(
            *settings.worker.address, live=lambda: live, ready=lambda: readiness(host, beside), metrics=metrics
        )
        await stack.enter_async_context(server)
        await run_until_stopped(host, group, stop, watchdog, beside)


def _group_settings(settings: Settings, connection: LogConnection) -> GroupSettings:
    session_s = settings.worker.session_timeout_s
    return GroupSettings(
        connection=connection,
        group=settings.group,
        client_id=settings.worker.full_name,
        session_timeout_s=session_s,
        heartbeat_interval_s=min(2.0, session_s / 5),
        request_timeout_s=max(15.0, session_s + 3.0),
        instance_id=settings.worker.instance_id,
    )


def _projection(settings: Settings) -> Callable[[Metrics], BesideWorker] | None:
    if not settings.zookeeper.project:
        return None
    settings.zookeeper.options()  # raises for unusable settings, before anything is joined
    from drover.projections.projection import ProjectionThread  # noqa: PLC0415 - a worker without it needs no kazoo

    return lambda metrics: ProjectionThread(settings, metrics)
