"""What a worker makes of its options, and when it says that it is ready."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from drover.errors import ConfigurationError
from drover.journal.connection import LogConnection
from drover.local import LocalCluster
from drover.runtime import topics, worker
from drover.runtime.watchdog import Watchdog
from drover.runtime.worker import WorkerOptions
from events.topics import TopicNames
from tests.runtime.world import SHARDS, FakeClusters, World


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def _options(bootstrap: str, prefix: str = "drover", session_timeout_s: float = 10.0) -> WorkerOptions:
    connection = LogConnection(bootstrap, TopicNames(prefix))
    return WorkerOptions(connection, name="w", group="g", clusters={}, session_timeout_s=session_timeout_s)


@pytest.mark.parametrize("session_timeout_s", [6.0, 10.0, 30.0, 45.0])
def test_the_timeouts_of_the_group_fit_together(session_timeout_s: float) -> None:
    settings = worker._group_settings(_options("localhost:1", session_timeout_s=session_timeout_s))
    assert settings.heartbeat_interval_s <= session_timeout_s / 3
    assert settings.request_timeout_s >= settings.session_timeout_s
    assert settings.request_timeout_s > settings.rebalance_timeout_s, "or JoinGroup itself would time out"
    assert settings.max_poll_interval_s > 60, "far above the barrier's timeout"


async def test_a_worker_is_ready_when_it_has_replayed_and_owns_what_it_was_given(world: World) -> None:
    host, group, _ = await world.host("w")
    assert [(check.name, check.ok) for check in worker._ready(host)] == [
        ("log", True),
        ("group", False),
        ("shards", True),
    ]
    await world.assign(host, range(SHARDS), group.generation)
    assert all(check.ok for check in worker._ready(host))
    host.shards[0].unowned_since = 1.0
    assert not worker._ready(host)[2].ok
    host.partitions_revoked()
    assert not worker._ready(host)[1].ok


@pytest.mark.cluster
async def test_a_worker_without_its_topics_does_not_start_and_says_what_to_do(local_cluster: LocalCluster) -> None:
    options = _options(local_cluster.bootstrap, "worker-without-topics")
    with pytest.raises(ConfigurationError, match="drover topics init"):
        await worker._assemble_and_run(options, lambda _journal, _metrics: FakeClusters(), asyncio.Event(), Watchdog())


@pytest.mark.cluster
async def test_a_port_that_is_taken_is_named_and_nothing_is_left_open(local_cluster: LocalCluster) -> None:
    options = _options(local_cluster.bootstrap, "worker-port")
    await topics.init(options.connection, {}, SHARDS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = replace(options, listen=("127.0.0.1", taken.getsockname()[1]))
        with pytest.raises(ConfigurationError, match="cannot listen"):
            await worker._assemble_and_run(busy, lambda _journal, _metrics: FakeClusters(), asyncio.Event(), Watchdog())
