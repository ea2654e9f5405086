"""Brokers and controllers that share one process: the same cluster, but they live and die together."""

from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.local import LocalCluster, Programs, Start, probe
from drover.local import local_cluster as run_local_cluster
from drover.local.layout import CONTROLLER_ID, Layout, new_spec
from drover.local.nodes import Nodes
from drover.testing.shared_process import Address, SharedProcess, parse_address

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("shared")
    async with run_local_cluster(directory, brokers=4, start_nodes=SharedProcess((3,))) as cluster:
        yield cluster


async def test_nodes_that_are_not_killable_share_a_process(cluster: LocalCluster) -> None:
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
    assert listening == {cluster.spec.port(node) for node in ("1", "2", "4", "100")}


async def test_the_next_up_on_kept_data_may_give_each_node_its_process(tmp_path: Path) -> None:
    shared = LocalCluster(tmp_path / "cluster", start_nodes=SharedProcess())
    await shared.up(3, secure=True)
    first = shared.pid(CONTROLLER_ID)
    assert {shared.pid(node) for node in shared.spec.kafka_nodes} == {first}
    await shared.down(keep=True)
    assert not psutil.pid_exists(first)
    alone = LocalCluster(tmp_path / "cluster")
    assert await alone.up()
    assert len({alone.pid(node) for node in alone.spec.kafka_nodes}) == 4
    await alone.kill(2)
    assert alone.log_file(2).read_text() != alone.log_file(3).read_text()
    assert await alone.down()
    assert not alone.directory.exists()


async def test_a_shared_process_that_dies_at_start_shows_its_log_and_takes_all_down(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho the disk is made of cheese\nexit 1\n")
    java.chmod(0o755)
    cluster = LocalCluster(tmp_path / "cluster", Programs(java, "", ""), SharedProcess())
    with pytest.raises(ClusterUnavailableError, match=r"the shared process is dead; (?s:.*)made of cheese"):
        await cluster.up(3, timeout_s=30)
    assert not cluster.directory.exists()


async def test_nodes_of_zookeeper_mode_share_no_process(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    spec = new_spec(3, 3, (1, 2, 3, 4), kafka="3.9.2", controllers=0)
    start = Start(layout, Nodes(layout), spec, Programs(Path("/nowhere/java"), "", ""), timeout_s=1)
    with pytest.raises(ConfigurationError, match="in ZooKeeper mode cannot share a process"):
        await SharedProcess()(start)


def test_a_gateway_is_announced_in_two_whole_lines() -> None:
    assert parse_address("") is None
    assert parse_address("Java warns of this\n25333\n") is None
    assert parse_address("Java warns of this\n25333\nab") is None
    assert parse_address("Java warns of this\n25333\nabc=\nmore\n") == Address(25333, "abc=")
