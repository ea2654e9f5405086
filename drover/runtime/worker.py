"""Composition root of a worker process: everything is made and wired here, and ended in the opposite order."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from agents.app import CommandGroup
from agents.settings import GroupSettings
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import Journal
from drover.runtime import topics
from drover.runtime.health import Check, HealthServer
from drover.runtime.host import HostOptions, ShardHost
from drover.runtime.logs import configure_logging
from drover.runtime.metrics import Metrics
from drover.runtime.ports import BesideWorker, ClusterSide
from drover.runtime.watchdog import Watchdog
from drover.scheduling.state import Limits

ClusterSideFactory = Callable[[Journal, Metrics], ClusterSide]
ProjectionFactory = Callable[[Metrics], BesideWorker]
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is started with.

    `name` is the owner's name in the log. `admin_options` are kafka-python's keyword arguments for the log's Kafka.
    `listen` is where health and metrics are served; None serves none. `snapshot_every_records` is how often a shard
    that is owned is written down, 0 for never.
    `projection` makes what projects beside it.
    """

    connection: LogConnection
    name: str
    group: str
    clusters: Mapping[str, Limits]
    admin_options: Mapping[str, object] = field(default_factory=dict)
    session_timeout_s: float = 10.0
    instance_id: str | None = None
    listen: tuple[str, int] | None = None
    snapshot_every_records: int = 0
    projection: ProjectionFactory | None = None


def run_worker(options: WorkerOptions, cluster_side: ClusterSideFactory) -> int:
    """Run a worker until SIGTERM or SIGINT and return its exit code.

    Raises `ConfigurationError` before anything is joined when a topic is not as it must be. A fault while it runs ends
    the process with 70, a stop that takes too long with 71.
    """
    configure_logging()
    watchdog = Watchdog()
    watchdog.start()
    try:
        asyncio.run(_serve(options, cluster_side, watchdog))
    finally:
        watchdog.close()
    return 0


async def _serve(options: WorkerOptions, cluster_side: ClusterSideFactory, watchdog: Watchdog) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    beating = asyncio.create_task(_beat(watchdog))
    try:
        await _assemble_and_run(options, cluster_side, stop, watchdog)
    finally:
        beating.cancel()


async def _assemble_and_run(
    options: WorkerOptions, cluster_side: ClusterSideFactory, stop: asyncio.Event, watchdog: Watchdog
) -> None:
    connection = options.connection
    checked = await topics.verify(connection, options.admin_options)
    for finding in checked.findings:
        _log.warning("going on without snapshots", why=finding.detail, remedy=finding.remedy)
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as stack:
        journal = KafkaJournal(connection, checked.shards, options.name)
        stack.push_async_callback(journal.close)
        host_options = HostOptions(
            owner=options.name,
            group=options.group,
            topics=connection.topics,
            topic_ids=checked.command_topic_ids,
            clusters=options.clusters,
            session_timeout_s=options.session_timeout_s,
            snapshot_every_records=options.snapshot_every_records if checked.has_snapshots else 0,
        )
        host = ShardHost(host_options, journal, cluster_side(journal, metrics), metrics)
        group = CommandGroup(_group_settings(options), host)
        host.attach(group)
        beside = None if options.projection is None else options.projection(metrics)
        if beside is not None:
            stack.callback(beside.close)
            beside.start()
        if options.listen is not None:
            live = (Check("loop", ok=True, detail="runs, since it answers"),)
            server = HealthServer(
                *options.listen, live=lambda: live, ready=lambda: _ready(host, beside), metrics=metrics
            )
            await stack.enter_async_context(server)
        await _run(host, group, stop, watchdog)


async def _beat(watchdog: Watchdog) -> None:
    while True:
        watchdog.beat()
        await asyncio.sleep(0.5)


async def _run(host: ShardHost, group: CommandGroup, stop: asyncio.Event, watchdog: Watchdog) -> None:
    stopped = asyncio.create_task(stop.wait())
    working = asyncio.create_task(_work(host, group))
    await asyncio.wait((stopped, working), return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        stopped.cancel()
        await host.stop()
        # It ended before anything was joined: the error says why.
        await working
        return
    _log.info("stopping")
    watchdog.stopping()
    await host.close_shards()
    if host.is_replayed:
        await group.stop()
    working.cancel()
    await asyncio.wait((working,))
    await host.stop()
    _log.info("stopped")


async def _work(host: ShardHost, group: CommandGroup) -> None:
    await host.start()
    try:
        await group.start()
        await group.wait_until_ended()
    except Exception as error:  # noqa: BLE001 - Faust is half started: only the end of the process is certain to work
        host.fail("the consumer group failed", error)
    if not host.is_closing:
        host.fail("the consumer group ended without being asked to", None)


def _group_settings(options: WorkerOptions) -> GroupSettings:
    session = options.session_timeout_s
    return GroupSettings(
        connection=options.connection,
        group=options.group,
        client_id=options.name,
        session_timeout_s=session,
        heartbeat_interval_s=min(2.0, session / 5),
        request_timeout_s=max(15.0, session + 3.0),
        instance_id=options.instance_id,
    )


def _ready(host: ShardHost, beside: BesideWorker | None = None) -> tuple[Check, ...]:
    waiting = [shard.number for shard in host.shards if shard.unowned_since is not None]
    return (
        Check("log", ok=host.is_replayed, detail="replayed" if host.is_replayed else "replaying"),
        Check("group", ok=host.is_joined, detail="assigned" if host.is_joined else "no assignment yet"),
        Check("shards", ok=not waiting, detail=f"assigned but unowned: {waiting}" if waiting else ""),
        *(() if beside is None else beside.notes()),
    )
