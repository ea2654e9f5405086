"""The projection to ZooKeeper as a process of its own, and inside a worker."""

import asyncio
import contextlib
import functools
import secrets
import signal
import threading
import time
from collections.abc import Mapping, Sequence

import structlog

from drover.errors import DroverError, LogUnavailableError
from drover.events.codec import encode_progress
from drover.events.progress import ProjectionSample
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.projections.comparison import Comparison, compare, read_feed
from drover.projections.intake import Intake
from drover.projections.rebuild import Rebuilt, rebuild
from drover.projections.runner import Projector
from drover.projections.store import StoreError
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, Role
from drover.projections.zookeeper import ZooKeeperStore
from drover.service.command_sender import CommandSender
from drover.service.health import Check, HealthServer
from drover.service.logs import announce_plaintext, configure_logging
from drover.service.metrics import Metrics
from drover.service.process import collect_rarely, unless_stopped
from drover.settings.settings import Settings
from drover.threads import in_daemon_thread

MEASURE_S = 1.0
SAMPLE_S = 5.0
# A tree that is further behind counts as not up to date.
READY_LAG_S = 60.0
STOP_S = 10.0
# The most nodes that others could write that a log line names.
MOST_NAMED = 20
NOTES_S = 1.0
_log = structlog.get_logger(__name__)


class Reporter:
    """Counts and logs events of the projection; a repeated fault is logged once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last_fault: dict[str, str] = {}

    def projected(self, cluster: str, events: int, operations: int) -> None:
        """One transaction was done."""
        if self._last_fault.pop(cluster, None) is not None:
            _log.info("the projection goes on", cluster=cluster)
        self._metrics.projected(cluster, events, operations)

    def projection_failed(self, cluster: str, error: Exception) -> None:
        """The store or the log has failed; it is tried again."""
        kind = type(error).__name__
        self._metrics.projection_failed(cluster, kind)
        if self._last_fault.get(cluster) != kind:
            _log.warning("the projection waits", cluster=cluster, error=str(error))
            self._last_fault[cluster] = kind

    def projection_deleted(self, cluster: str, tree: str) -> None:
        """Others have deleted the tree."""
        self._metrics.projection_drifted(cluster, 1)
        _log.warning("the tree in ZooKeeper was deleted by others and is made anew", cluster=cluster, tree=tree)

    def projection_claimed(self, cluster: str, exposed: Mapping[str, Sequence[str]]) -> None:
        """Others could change these nodes."""
        _log.warning(
            "nodes in ZooKeeper could be written by others: now only Drover may, and the requests in them are removed",
            cluster=cluster,
            paths=sorted(exposed)[:MOST_NAMED],
            nodes=len(exposed),
            others=sorted({other for ids in exposed.values() for other in ids}),
        )

    def projection_drifted(self, cluster: str, paths: Sequence[str]) -> None:
        """Others have changed these nodes."""
        self._metrics.projection_drifted(cluster, len(paths))
        _log.warning("nodes in ZooKeeper were changed by others and are repaired", cluster=cluster, paths=list(paths))


def serve_projection(settings: Settings, cluster: str | None) -> int:
    """Project until SIGTERM or SIGINT; return the exit code.

    Raises `ConfigurationError` for unusable settings, and `CorruptLogError` for a corrupt log.
    """
    configure_logging(settings.worker.log_format)
    announce_plaintext(settings)
    collect_rarely()
    asyncio.run(_serve(settings, cluster))
    return 0


async def _serve(settings: Settings, cluster: str | None) -> None:
    metrics = Metrics()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    projection = Projection(settings, metrics, cluster)
    host, port = settings.zookeeper.address
    live = (Check("loop", ok=True, detail="runs, since it answers"),)
    remedy = "`zookeeper.listen` or `drover zookeeper run --listen`"
    async with HealthServer(
        host, port, live=lambda: live, ready=projection.checks, metrics=metrics, remedy=remedy
    ) as server:
        _log.info("projecting", zookeeper=settings.zookeeper.hosts, root=settings.zookeeper.root, port=server.port)
        await projection.run(stop)


class Projection:
    """A projector with these settings and its metrics; `cluster` restricts it to one."""

    def __init__(self, settings: Settings, metrics: Metrics, cluster: str | None = None) -> None:
        self._settings = settings
        self._metrics = metrics
        self._cluster = cluster
        self._options = settings.zookeeper.options()
        self._projector: Projector | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Project until `stop` is set."""
        settings = self._settings
        connection = settings.log.connection()
        name = writer_name(settings)
        async with contextlib.AsyncExitStack() as stack:
            store = ZooKeeperStore(self._options)
            stack.push_async_callback(store.close)

            def tree_of(cluster: str) -> Tree:
                return Tree(store, settings.zookeeper.root, cluster, name)

            trees = [tree_of(cluster) for cluster in settings.clusters if self._cluster in {None, cluster}]
            await unless_stopped(self._check(trees), stop)
            if stop.is_set():
                return
            reporter = Reporter(self._metrics)
            commands = CommandSender(connection)
            stack.push_async_callback(commands.close)

            def intake_of(cluster: str) -> Intake:
                return Intake(cluster, tree_of(cluster).base, store, commands.send, reporter)

            wanted = intake_of if settings.zookeeper.intake else None
            self._projector = Projector(connection, tree_of, reporter, self._cluster, intake_of=wanted)
            working = [
                asyncio.create_task(self._projector.run()),
                asyncio.create_task(self._measure()),
                asyncio.create_task(self._publish(connection, name)),
                asyncio.create_task(stop.wait()),
            ]
            try:
                done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in working:
                    task.cancel()
                await asyncio.wait(working)

    def checks(self) -> tuple[Check, ...]:
        """Return whether the log is read and every tree is near its end."""
        projector = self._projector
        if projector is None or not projector.caught_up.is_set():
            why = "reading" if projector is None or projector.last_error is None else projector.last_error
            return (Check("log", ok=False, detail=why),)
        checks = [Check("log", ok=projector.last_error is None, detail=projector.last_error or "read to its end")]
        checks += [_check(writer) for writer in projector.writers.values()]
        return tuple(checks)

    async def _check(self, trees: Sequence[Tree]) -> None:
        """Refuse a root that belongs to somebody else before anything runs; an unreachable store is only logged."""
        for tree in trees:
            try:
                await tree.check()
            except StoreError as error:
                _log.warning("the projection starts although ZooKeeper could not be checked", error=str(error))
                return

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(MEASURE_S)
            for writer in self._writers():
                self._metrics.projection(
                    writer.cluster,
                    lag_events=writer.backlog,
                    lag_seconds=lag_seconds(writer),
                    is_writing=writer.role is Role.WRITING,
                )

    async def _publish(self, connection: LogConnection, name: str) -> None:
        """Publish the lag for `drover status` on the progress topic; a lost sample does no harm."""
        while True:
            await asyncio.sleep(SAMPLE_S)
            producer = LogProducer(connection, f"{name}-samples")
            try:
                await producer.start()
                await self._publish_on(producer, connection.topics.progress, name)
            except LogUnavailableError as error:
                _log.warning("samples of the projection were not published", error=str(error))
            finally:
                await producer.close()

    async def _publish_on(self, producer: LogProducer, topic: str, name: str) -> None:
        while True:
            for writer in self._writers():
                key = f"{writer.cluster}/projection".encode()
                await producer.send(topic, encode_progress(_sample(writer, name)), key=key)
            await asyncio.sleep(SAMPLE_S)

    def _writers(self) -> tuple[ClusterWriter, ...]:
        return () if self._projector is None else tuple(self._projector.writers.values())


class ProjectionThread:
    """The projection inside a worker, in a thread with a loop of its own, so that it delays no decision.

    Its faults never end the worker; they are logged, and shown beside the worker's own checks.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._projection = Projection(settings, metrics)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failed: str | None = None
        self._ending_since_s: float | None = None
        # Made by the thread itself, since it reads values that this thread changes.
        self._checks = self._projection.checks()
        self._thread = threading.Thread(target=self._run, name="projection", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Start to end the projection, without waiting; idempotent."""
        if self._ending_since_s is not None:
            return
        # Set before these are read, so that a thread that has not made them yet sees it.
        self._ending_since_s = time.monotonic()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it has ended by itself this very moment
                loop.call_soon_threadsafe(stop.set)

    async def close(self) -> None:
        """End the projection; wait until `STOP_S` after the first call of `end`. Idempotent."""
        self.end()
        assert self._ending_since_s is not None, "`end` was called"
        left_s = max(0.0, self._ending_since_s + STOP_S - time.monotonic())
        # In a thread, because this event loop has other work meanwhile.
        ended, _ = in_daemon_thread("projection-end", lambda: self._thread.join(left_s))
        await ended

    def notes(self) -> tuple[Check, ...]:
        """Return the state of the projection; it never makes the worker unready, because no decision depends on it."""
        if self._failed is not None:
            return (Check("projection", ok=True, detail=f"has ended: {self._failed}"),)
        return tuple(Check(f"projection {check.name}", ok=True, detail=check.detail) for check in self._checks)

    def _run(self) -> None:
        try:
            asyncio.run(self._project())
        except DroverError as error:
            self._failed = str(error)
            _log.critical("the projection has ended; the worker goes on", error=str(error))
        except Exception as error:  # noqa: BLE001 - the supervisor of a view: it reports every fault
            self._failed = repr(error)
            _log.critical("the projection has ended; the worker goes on", error=self._failed, exc_info=error)

    async def _project(self) -> None:
        stop = self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._ending_since_s is not None:
            # It was closed before this thread had made the event.
            stop.set()
        looking = asyncio.create_task(self._look())
        try:
            await self._projection.run(stop)
        finally:
            looking.cancel()

    async def _look(self) -> None:
        while True:
            self._checks = self._projection.checks()
            await asyncio.sleep(NOTES_S)


async def rebuild_tree(settings: Settings, cluster: str) -> Rebuilt:
    """Rebuild a cluster's tree from the log; see `drover.projections.rebuild`."""
    store = ZooKeeperStore(settings.zookeeper.options())
    root = settings.zookeeper.root
    try:
        reporter = Reporter(Metrics())
        read = functools.partial(read_feed, settings.log.connection())
        return await rebuild(read, store, root, cluster, writer_name(settings), reporter)
    finally:
        await store.close()


async def compare_tree(settings: Settings, cluster: str) -> Comparison:
    """Compare a cluster's tree with the log; see `drover.projections.comparison`."""
    store = ZooKeeperStore(settings.zookeeper.options())
    try:
        read = functools.partial(read_feed, settings.log.connection())
        return await compare(read, Tree(store, settings.zookeeper.root, cluster, ""))
    finally:
        await store.close()


async def exposed_nodes(settings: Settings, cluster: str) -> Mapping[str, tuple[str, ...]]:
    """Return the nodes of a cluster's tree that others may write, with their ids, if Drover has credentials.

    Only nodes that hold others are looked at: who may write none of these cannot add a request. Raises `StoreError`.
    """
    store = ZooKeeperStore(settings.zookeeper.options())
    try:
        return await Tree(store, settings.zookeeper.root, cluster, "").exposed_holders()
    finally:
        await store.close()


def writer_name(settings: Settings) -> str:
    """Return the name of this process for the position node, different at every start."""
    return f"{settings.worker.full_name}-{secrets.token_hex(4)}"


def lag_seconds(writer: ClusterWriter) -> float:
    """Return the age of the oldest event that is not in the tree."""
    oldest_ms = writer.oldest_ms
    return 0.0 if oldest_ms is None else max(0.0, time.time() - oldest_ms / 1000)


def _check(writer: ClusterWriter) -> Check:
    lag_s = lag_seconds(writer)
    detail = f"{writer.role}, {writer.backlog} events behind"
    ok = writer.last_error is None and lag_s < READY_LAG_S
    return Check(
        f"cluster {writer.cluster}", ok=ok, detail=f"{detail}: {writer.last_error}" if writer.last_error else detail
    )


def _sample(writer: ClusterWriter, name: str) -> ProjectionSample:
    return ProjectionSample(
        cluster=writer.cluster,
        writer=name,
        role=writer.role.value,
        at_ms=int(time.time() * 1000),
        lag_events=writer.backlog,
        lag_ms=int(lag_seconds(writer) * 1000),
        drifted=writer.drifted,
        error=writer.last_error,
    )
