"""What a worker makes of its settings, and when it says that it is ready."""

import asyncio
import gc
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from unittest.mock import AsyncMock

import pytest
import pytest_asyncio
from aiokafka.errors import ConsumerStoppedError

from drover.agents import wiring
from drover.agents.app import CommandGroup
from drover.agents.host import ShardHost
from drover.agents.settings import GroupSettings
from drover.agents.watchdog import EXIT_FAULT, Watchdog
from drover.agents.worker import readiness, run_process, run_until_stopped
from drover.errors import ConfigurationError
from drover.events.topics import TopicNames
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.port import Journal
from drover.local import LocalCluster
from drover.service.health import Check
from drover.service.metrics import Metrics
from drover.service.process import COLLECTED_AFTER
from drover.settings.settings import LogSettings, Settings, WorkerSettings
from tests.runtime.world import SHARDS, FakeClusters, World


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def _no_clusters(_settings: Settings, _journal: Journal, _metrics: Metrics) -> FakeClusters:
    return FakeClusters()


@pytest.mark.parametrize("session_timeout_ms", [6_000, 10_000, 30_000, 45_000])
def test_the_timeouts_of_the_group_fit_together(session_timeout_ms: int) -> None:
    log = LogSettings("localhost:1")
    worker = WorkerSettings(session_timeout_ms=session_timeout_ms)
    settings = wiring._group_settings(Settings(log, worker=worker), log.connection())
    assert settings.session_timeout_s == session_timeout_ms / 1000
    assert settings.heartbeat_interval_s <= settings.session_timeout_s / 3
    assert settings.request_timeout_s >= settings.session_timeout_s
    assert settings.request_timeout_s > settings.rebalance_timeout_s, "or JoinGroup itself would time out"
    assert settings.max_poll_interval_s > 60, "far above the barrier's timeout"


async def test_a_worker_is_ready_when_it_has_replayed_and_owns_what_it_was_given(world: World) -> None:
    host, group, _ = await world.host("w")
    assert [(check.name, check.ok) for check in readiness(host)] == [
        ("log", True),
        ("group", False),
        ("shards", True),
    ]
    await world.assign(host, range(SHARDS), group.generation)
    assert all(check.ok for check in readiness(host))
    host.shards[0].unowned_since = 1.0
    assert not readiness(host)[2].ok
    host.partitions_revoked()
    assert not readiness(host)[1].ok


class HalfJoined(CommandGroup):
    """Waits to be joined; a stop makes that fail, as Faust's does when its consumer's thread has ended."""

    def __init__(self, host: ShardHost) -> None:
        super().__init__(GroupSettings(LogConnection("localhost:1", TopicNames("drover")), "g", "w"), host)
        self.joining, self.left = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        self.joining.set()
        await self.left.wait()
        raise ConsumerStoppedError

    async def stop(self) -> None:
        self.left.set()
        await asyncio.sleep(0)


async def test_a_group_that_fails_while_the_worker_stops_leaves_it_a_clean_end(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host, _, _ = await world.host("w")
    monkeypatch.setattr(host, "start", AsyncMock())  # it runs already
    group = HalfJoined(host)
    await run_until_stopped(host, group, group.joining, Watchdog())
    world.hosts.remove(host)
    assert world.ended == []
    assert "ConsumerStoppedError" in capsys.readouterr().out


class Beside:
    """A projection beside a worker that only notes whether it was told to end."""

    def __init__(self) -> None:
        self.is_told = False

    def start(self) -> None:
        """It needs nothing."""

    def notes(self) -> tuple[Check, ...]:
        return ()

    def end(self) -> None:
        self.is_told = True

    async def close(self) -> None:
        self.end()


async def test_what_runs_beside_a_worker_is_told_to_end_before_the_group_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a Kafka that is away both take their time: one after the other, the worker ended with 71."""
    host, _, _ = await world.host("w")
    monkeypatch.setattr(host, "start", AsyncMock())  # it runs already
    group, beside = HalfJoined(host), Beside()
    told: list[bool] = []
    leave = group.stop

    async def stop() -> None:
        told.append(beside.is_told)
        await leave()

    monkeypatch.setattr(group, "stop", stop)
    await run_until_stopped(host, group, group.joining, Watchdog(), beside)
    world.hosts.remove(host)
    assert told == [True]


@pytest.mark.cluster
async def test_a_worker_without_its_topics_does_not_start_and_says_what_to_do(local_cluster: LocalCluster) -> None:
    settings = Settings(LogSettings(local_cluster.bootstrap, "worker-without-topics"))
    with pytest.raises(ConfigurationError, match="drover log init"):
        await wiring._run(settings, _no_clusters, asyncio.Event(), Watchdog())


@pytest.mark.cluster
async def test_a_port_that_is_taken_is_named_and_nothing_is_left_open(local_cluster: LocalCluster) -> None:
    log = LogSettings(local_cluster.bootstrap, "worker-port")
    await topics.init(log.connection(), SHARDS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = Settings(log, worker=WorkerSettings(listen=f"127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(ConfigurationError, match="cannot listen"):
            await wiring._run(busy, _no_clusters, asyncio.Event(), Watchdog())


def test_a_worker_keeps_what_it_has_loaded_from_garbage_collection_and_collects_rarely() -> None:
    frozen: list[int] = []
    before = gc.get_threshold()

    async def work(_stop: asyncio.Event, _watchdog: Watchdog) -> None:
        frozen.append(gc.get_freeze_count())
        assert gc.get_threshold() == COLLECTED_AFTER

    gc.unfreeze()
    try:
        assert run_process(work) == 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
    assert frozen[0] > 10_000


FAULTY = """
import asyncio
from drover.service.logs import configure_logging
from drover.agents.worker import run_process

async def work(stop, watchdog):
    raise {fault}

configure_logging("json")
run_process(work)
"""


@pytest.mark.parametrize("fault", ["asyncio.CancelledError()", "RuntimeError('loop')"])
def test_a_fault_that_nobody_knows_ends_the_process_with_its_reason_in_one_line(fault: str) -> None:
    program = FAULTY.format(fault=fault)
    ended = subprocess.run([sys.executable, "-c", program], timeout=120, check=False, capture_output=True, text=True)
    (line,) = (ended.stdout + ended.stderr).splitlines()
    said = json.loads(line)
    assert ended.returncode == said["exit_code"] == EXIT_FAULT
    assert said["error"] in {"CancelledError()", "RuntimeError('loop')"}
