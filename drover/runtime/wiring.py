"""From settings to a running worker: the one place that knows every real part."""

import asyncio
import os
from collections.abc import Sequence
from typing import NoReturn

import structlog

from drover.cluster.kafka import KafkaDriver
from drover.errors import LogUnavailableError
from drover.journal.port import Journal
from drover.runtime.clusters import ClusterServices
from drover.runtime.metrics import Metrics
from drover.runtime.settings import Settings
from drover.runtime.watchdog import EXIT_FAULT
from drover.runtime.worker import ProjectionFactory, WorkerOptions, run_worker
from events.codec import encode_progress
from events.progress import Progress

_log = structlog.get_logger(__name__)


def serve(settings: Settings) -> int:
    """Run a worker on these settings until it is told to stop; returns its exit code. See `run_worker`."""
    host, port = settings.worker.address
    connection = settings.log.connection()
    options = WorkerOptions(
        connection=connection,
        name=settings.worker.full_name,
        group=settings.group,
        clusters={name: cluster.limits for name, cluster in settings.clusters.items()},
        admin_options=connection.security,
        session_timeout_s=settings.worker.session_timeout_ms / 1000,
        instance_id=settings.worker.instance_id,
        listen=(host, port),
        snapshot_every_records=settings.worker.snapshot_every_records,
        projection=_projection(settings) if settings.zookeeper.project else None,
    )
    return run_worker(options, lambda journal, metrics: cluster_services(settings, journal, metrics))


def _projection(settings: Settings) -> ProjectionFactory:
    settings.zookeeper.options()  # raises for what must not be, before anything is joined
    from drover.runtime.projecting import ProjectionThread  # noqa: PLC0415 - a worker without it needs no kazoo

    return lambda metrics: ProjectionThread(settings, metrics)


def cluster_services(settings: Settings, journal: Journal, metrics: Metrics) -> ClusterServices:
    """Make the drivers of every configured cluster and what watches them."""
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
            # Telemetry: the next sample says more than a repetition of this one could.
            _log.warning("byte samples were not published", error=str(error))

    return ClusterServices(drivers, publish, _fail, metrics)


def _progress_key(sample: Progress) -> bytes:
    return f"{sample.cluster}/{sample.topic}/{sample.partition}".encode()


def _fail(error: BaseException) -> NoReturn:
    _log.critical("the worker ends", reason="watching or calling a cluster failed", exc_info=error)
    os._exit(EXIT_FAULT)
