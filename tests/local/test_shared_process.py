"""Brokers and controllers that share one process: the same cluster, but they live and die together."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from click.testing import CliRunner

from drover.cli.local import local
from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.local import LocalCluster, Programs, probe
from drover.local import local_cluster as run_local_cluster
from drover.local.layout import CONTROLLER_ID
from drover.local.shared_process import Gateway, parse_gateway

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    async with run_local_cluster(tmp_path_factory.mktemp("shared"), brokers=4, killable=(3,)) as cluster:
        yield cluster


async def test_nodes_that_are_not_killable_share_a_process(cluster: LocalCluster) -> None:
    assert cluster.spec.shared == ("1", "2", "4", "100")
    pids = {node: cluster.pid(node) for node in cluster.spec.nodes}
    assert pids["1"] == pids["2"] == pids["4"] == pids["100"]
    assert len({pids["1"], pids["3"], pids["zookeeper"]}) == 3
    for broker in cluster.spec.brokers:
        assert await probe.known_brokers(broker.port) == {1, 2, 3, 4}
    assert {broker.state for broker in (await cluster.status()).brokers} == {"running"}


async def test_none_of_them_can_be_ended_or_paused_alone(cluster: LocalCluster) -> None:
    for refused in (cluster.kill, cluster.stop, cluster.pause, cluster.resume, cluster.start):
        with pytest.raises(ConfigurationError, match="node 2 shares its process with others"):
            await refused(2)
    assert cluster.log_file(2).read_text() == cluster.log_file(CONTROLLER_ID).read_text()


async def test_a_killable_node_dies_alone_and_comes_back(cluster: LocalCluster) -> None:
    await cluster.kill(3)
    assert [broker.state for broker in (await cluster.status()).brokers] == ["running", "running", "dead", "running"]
    assert await cluster.start(3)
    assert 3 in await probe.known_brokers(cluster.spec.port("1"))


async def test_the_gateway_is_closed_once_the_nodes_run(cluster: LocalCluster) -> None:
    listening = {
        connection.laddr.port
        for connection in psutil.Process(cluster.pid(1)).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {cluster.spec.port(node) for node in cluster.spec.shared}


async def test_up_refuses_to_change_who_shares(cluster: LocalCluster) -> None:
    assert not await cluster.up()
    assert not await cluster.up(killable=(3,))
    with pytest.raises(ConfigurationError, match="in which nodes 1, 2, 4, 100 share a process; take it down first"):
        await cluster.up(killable=())


def test_a_cluster_of_one_process_is_started_kept_and_started_again_by_the_command_line(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path / "cluster"))

    def run(*arguments: str) -> str:
        answer = CliRunner().invoke(local, [*arguments, *where])
        assert answer.exit_code == 0, answer.output
        return answer.output

    assert "serves." in run("up", "--brokers", "3", "--one-process", "--secure")
    first = LocalCluster(tmp_path / "cluster").pid(CONTROLLER_ID)
    os.kill(first, signal.SIGKILL)
    said = run("up")
    assert "drover local start" not in said
    assert "drover local down --keep" in said
    assert "its data is kept" in run("down", "--keep")
    assert not psutil.pid_exists(first)
    assert "serves." in run("up")
    cluster = LocalCluster(tmp_path / "cluster")
    assert len({cluster.pid(node) for node in cluster.spec.kafka_nodes}) == 1
    assert cluster.pid(CONTROLLER_ID) != first
    assert "is down." in run("down")
    assert not (tmp_path / "cluster").exists()


async def test_a_shared_process_that_dies_at_start_shows_its_log_and_takes_all_down(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho the disk is made of cheese\nexit 1\n")
    java.chmod(0o755)
    cluster = LocalCluster(tmp_path / "cluster", Programs(java, "", ""))
    with pytest.raises(ClusterUnavailableError, match=r"the shared process is dead; (?s:.*)made of cheese"):
        await cluster.up(3, killable=(), timeout_s=30)
    assert not cluster.directory.exists()


async def test_nodes_of_zookeeper_mode_share_no_process(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="in ZooKeeper mode cannot share a process"):
        await LocalCluster(tmp_path).up(kafka="3.9.1", controllers=0, killable=())


def test_a_gateway_is_told_in_two_whole_lines() -> None:
    assert parse_gateway("") is None
    assert parse_gateway("Java warns of this\n25333\n") is None
    assert parse_gateway("Java warns of this\n25333\nab") is None
    assert parse_gateway("Java warns of this\n25333\nabc=\nmore\n") == Gateway(25333, "abc=")
