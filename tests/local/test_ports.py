"""Ports are reserved so that no two clusters of one machine share one."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.local import ports
from drover.local.layout import HOST, ClusterSpec, Layout, new_spec, read_spec


@pytest.fixture(autouse=True)
def _own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))


def reserve(directory: Path) -> ClusterSpec:
    return ports.reserve(Layout(directory), 5, lambda chosen: new_spec(3, 3, chosen))


def narrow(monkeypatch: pytest.MonkeyPatch, lowest: int, highest: int) -> None:
    monkeypatch.setattr(ports, "LOWEST_PORT", lowest)
    monkeypatch.setattr(ports, "HIGHEST_PORT", highest)


def test_clusters_that_start_at_the_same_moment_share_no_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, 20_000, 20_060)
    with ThreadPoolExecutor(8) as pool:
        specs = list(pool.map(reserve, [tmp_path / str(number) for number in range(8)]))
    assert len(frozenset[int]().union(*(spec.ports for spec in specs))) == 8 * 5


def test_the_reservation_is_remembered_with_the_cluster(tmp_path: Path) -> None:
    spec = reserve(tmp_path / "one")
    assert read_spec(Layout(tmp_path / "one")) == spec


def test_a_port_somebody_listens_on_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        used = server.getsockname()[1]
        assert not ports.is_free(used)
        narrow(monkeypatch, used, used + 1)
        with pytest.raises(ConfigurationError, match="no 5 free ports"):
            reserve(tmp_path / "one")


def test_ports_come_back_when_the_cluster_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever else uses ports of this machine comes and goes meanwhile.
    monkeypatch.setattr(ports, "is_free", lambda _port: True)
    narrow(monkeypatch, 20_000, 20_005)
    first = reserve(tmp_path / "one")
    with pytest.raises(ConfigurationError, match="no 5 free ports"):
        reserve(tmp_path / "two")
    Layout(tmp_path / "one").spec_file.unlink()
    assert reserve(tmp_path / "two").ports == first.ports
