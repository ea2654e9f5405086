"""A real cluster of three brokers: every command of `drover local` once, as an operator would type it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from click.testing import CliRunner

from drover.cli.exits import ExitCode
from drover.cli.local import local
from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.local import LocalCluster, Programs, probe
from drover.local import local_cluster as run_local_cluster
from drover.local.deadline import wait_until
from drover.local.layout import CONTROLLER_ID, Layout
from drover.local.processes import find_marked, spawn
from drover.local.programs import mark

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    async with run_local_cluster(tmp_path_factory.mktemp("small"), brokers=3, racks=2) as cluster:
        yield cluster


@contextmanager
def launcher(directory: Path, *arguments: str) -> Iterator[int]:
    """Run a `drover local` command in a process of its own, detached as a shell's job; yields its pid."""
    directory.mkdir()
    place = str(directory / "cluster")
    child = spawn(
        [sys.executable, "-m", "drover", "local", *arguments, "--dir", place],
        place,
        {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        directory / "launcher.log",
        directory / "launcher.json",
    )
    yield child.pid
    if psutil.pid_exists(child.pid):
        end(child.pid, signal.SIGKILL)


def end(pid: int, number: signal.Signals) -> int:
    """Send a signal to a process of ours and return how it ended."""
    os.kill(pid, number)
    _, exit_status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(exit_status)


def jvms(directory: Path) -> int:
    return len(list(find_marked(mark(Layout(directory.resolve())))))


async def test_every_broker_knows_every_other_when_up_returns(cluster: LocalCluster) -> None:
    for broker in cluster.spec.brokers:
        assert await probe.known_brokers(broker.port) == {1, 2, 3}
    status = await cluster.status()
    assert [(broker.id, broker.rack, broker.state) for broker in status.brokers] == [
        (1, "r1", "running"),
        (2, "r2", "running"),
        (3, "r1", "running"),
    ]
    assert (status.controller_states, status.zookeeper_state) == ({"100": "running"}, "running")


async def test_status_as_json_has_exactly_the_public_keys(cluster: LocalCluster) -> None:
    answer = await run_cli("status", "-o", "json", "--dir", str(cluster.directory))
    assert json.loads(answer) == {
        "kafka": "4.3.1",
        "bootstrap": cluster.bootstrap,
        "zookeeper": cluster.zookeeper,
        "brokers": [
            {"id": 1, "rack": "r1", "state": "running"},
            {"id": 2, "rack": "r2", "state": "running"},
            {"id": 3, "rack": "r1", "state": "running"},
        ],
    }


async def test_up_where_it_runs_says_so_and_changes_nothing(cluster: LocalCluster) -> None:
    pids = [cluster.pid(node) for node in cluster.spec.nodes]
    assert "was already running" in await run_cli("up", "--dir", str(cluster.directory))
    assert [cluster.pid(node) for node in cluster.spec.nodes] == pids
    with pytest.raises(ConfigurationError, match="holds a cluster of 3 brokers in 2 racks"):
        await cluster.up(4)
    with pytest.raises(ConfigurationError, match="holds a cluster that is not secure; take it down first"):
        await cluster.up(secure=True)
    with pytest.raises(ConfigurationError, match=r"holds a cluster of Kafka 4\.3\.1 with 1 controller; take it down"):
        await cluster.up(controllers=3)


async def test_a_killed_broker_is_dead_and_serves_again_after_start(cluster: LocalCluster) -> None:
    before = cluster.pid(2)
    await cluster.kill(2)
    await cluster.kill(2)
    assert (await cluster.status()).brokers[1].state == "dead"
    with pytest.raises(ConfigurationError, match="node 2 is dead; start it: drover local start 2"):
        await cluster.pause(2)
    assert await cluster.start(2)
    assert cluster.pid(2) != before
    assert 2 in await probe.known_brokers(cluster.spec.port("1"))
    assert not await cluster.start(2)


async def test_a_stopped_broker_ends_in_order_even_if_it_was_paused(cluster: LocalCluster) -> None:
    await cluster.pause(2)
    await cluster.stop(2)
    await cluster.stop(2)
    assert (await cluster.status()).brokers[1].state == "dead"
    said = cluster.log_file(2).read_text()
    assert "Transition from STARTED to SHUTTING_DOWN" in said
    assert "Transition from SHUTTING_DOWN to SHUTDOWN" in said, "the log holds the whole stop"
    assert await cluster.start(2)


async def test_a_paused_broker_answers_nothing_until_it_is_resumed(cluster: LocalCluster) -> None:
    directory = str(cluster.directory)
    assert await run_cli("pause", "3", "--dir", directory) == "Node 3 is paused.\n"
    assert (await cluster.status()).brokers[2].state == "paused"
    with pytest.raises(ConfigurationError, match="node 3 is paused: drover local resume 3"):
        await cluster.start(3)
    assert await run_cli("resume", "3", "--dir", directory) == "Node 3 serves.\n"
    assert (await cluster.status()).brokers[2].state == "running"


async def test_brokers_wait_for_their_controller_without_taking_a_core_each(cluster: LocalCluster) -> None:
    """With Kafka's own time-outs each of them asks for it without a pause, once two seconds have passed."""
    brokers = [psutil.Process(cluster.pid(broker)) for broker in (1, 2, 3)]

    def used_s() -> float:
        return sum(broker.cpu_times().user + broker.cpu_times().system for broker in brokers)

    await cluster.kill(CONTROLLER_ID)
    await asyncio.sleep(3)  # the time that has to pass
    used_before_s = used_s()
    await asyncio.sleep(4)
    used_without_s = used_s() - used_before_s
    await cluster.start(CONTROLLER_ID)
    await cluster.wait_until_serving()
    assert used_without_s < 4 * 0.35, "three brokers that ask without a pause take all that they can get"


async def test_logs_show_what_a_node_printed(cluster: LocalCluster) -> None:
    answer = await run_cli("logs", "1", "--dir", str(cluster.directory))
    assert "[KafkaRaftServer nodeId=1] Kafka Server started" in answer
    assert len((await run_cli("logs", "zookeeper", "-n", "2", "--dir", str(cluster.directory))).splitlines()) == 2


async def test_an_unknown_node_is_refused_with_those_there_are(cluster: LocalCluster) -> None:
    with pytest.raises(ConfigurationError, match=r"has no node 9; it has 1, 2, 3, 100, zookeeper"):
        await cluster.kill(9)


async def test_down_with_keep_lets_the_next_up_go_on_with_the_same_data(cluster: LocalCluster) -> None:
    spec = cluster.spec
    marker = Layout(cluster.directory).data_directory("1") / "meta.properties"
    identity = marker.read_text()
    assert "its data is kept" in await run_cli("down", "--keep", "--dir", str(cluster.directory))
    assert jvms(cluster.directory) == 0
    assert "serves." in await run_cli("up", "--dir", str(cluster.directory))
    assert cluster.spec == spec
    assert marker.read_text() == identity


async def test_down_leaves_nothing_after_kill_9_of_the_launcher_with_a_broker_paused(tmp_path: Path) -> None:
    directory = tmp_path / "work" / "cluster"
    with launcher(tmp_path / "work", "up", "--brokers", "3") as pid:
        await wait_until(lambda: jvms(directory) >= 4, what="the JVMs start")
        assert end(pid, signal.SIGKILL) == -signal.SIGKILL
    cluster = LocalCluster(directory)
    assert jvms(directory) >= 4
    await cluster.pause(1)
    assert await cluster.down()
    assert jvms(directory) == 0
    assert not directory.exists()
    assert not await cluster.down()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_up_takes_everything_down(tmp_path: Path, number: signal.Signals) -> None:
    directory = tmp_path / "work" / "cluster"
    with launcher(tmp_path / "work", "up", "--brokers", "3") as pid:
        await wait_until(lambda: jvms(directory) >= 4, what="the JVMs start")
        assert end(pid, number) == ExitCode.INTERRUPTED
    assert jvms(directory) == 0
    assert not directory.exists()


async def test_a_node_that_dies_at_start_shows_its_log_and_takes_all_down(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho the disk is made of cheese\nexit 1\n")
    java.chmod(0o755)
    cluster = LocalCluster(tmp_path / "cluster", Programs(java, "", ""))
    with pytest.raises(ClusterUnavailableError, match="the disk is made of cheese"):
        await cluster.up(3, timeout_s=30)
    assert not cluster.directory.exists()


async def test_fewer_than_three_brokers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="2 brokers are too few"):
        await LocalCluster(tmp_path / "cluster").up(2)
    assert not (tmp_path / "cluster").exists()


async def test_a_config_file_of_the_users_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "drover.toml").write_text("[log]\n")
    with pytest.raises(ConfigurationError, match=r"drover\.toml was not written by `drover local up`"):
        await LocalCluster(tmp_path, Programs(Path("/nowhere/java"), "", "")).up(3)
    await LocalCluster(tmp_path).down()
    assert (tmp_path / "drover.toml").read_text() == "[log]\n"


async def test_commands_where_no_cluster_is_name_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no local cluster in .*; start one: drover local up --dir"):
        await LocalCluster(tmp_path).status()
    assert "Nothing runs in" in await run_cli("down", "--dir", str(tmp_path))


async def run_cli(*arguments: str) -> str:
    """Run a `drover local` command in a thread, as it runs an event loop of its own; return what it printed."""
    result = await asyncio.to_thread(CliRunner().invoke, local, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output
