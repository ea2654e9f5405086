"""The files that the nodes and other commands read."""

import tomllib
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.local import settings
from drover.local.layout import ClusterSpec, Layout, check_size, new_spec, random_id, read_spec, write_spec


@pytest.fixture
def spec() -> ClusterSpec:
    return new_spec(4, 3, (21001, 21002, 21003, 21004, 21005, 21006))


def properties(text: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in text.splitlines()]
    assert len({key for key, _, _ in pairs}) == len(pairs), "a key is there twice"
    return {key: value for key, _, value in pairs}


def test_brokers_are_spread_over_the_racks_in_turn(spec: ClusterSpec) -> None:
    assert [(broker.id, broker.rack) for broker in spec.brokers] == [(1, "r1"), (2, "r2"), (3, "r3"), (4, "r1")]


def test_every_node_has_a_port_of_its_own(spec: ClusterSpec) -> None:
    assert spec.nodes == ("1", "2", "3", "4", "100", "zookeeper")
    assert [spec.port(node) for node in spec.nodes] == [21001, 21002, 21003, 21004, 21005, 21006]
    assert spec.ports == frozenset(range(21001, 21007))


def test_internal_topics_survive_a_broker_and_nothing_is_elected_or_created_unasked(spec: ClusterSpec) -> None:
    broker = properties(settings.broker_settings(spec, spec.brokers[1], Path("/data")))
    assert broker["offsets.topic.replication.factor"] == "3"
    assert broker["transaction.state.log.min.isr"] == "2"
    assert broker["unclean.leader.election.enable"] == "false"
    assert broker["auto.create.topics.enable"] == "false"
    assert (broker["broker.session.timeout.ms"], broker["broker.heartbeat.interval.ms"]) == ("3000", "500")
    assert (broker["node.id"], broker["broker.rack"], broker["log.dirs"]) == ("2", "r2", "/data")


def test_every_listener_is_on_loopback(spec: ClusterSpec) -> None:
    texts = [settings.controller_settings(spec, Path("/data"))]
    texts += [settings.broker_settings(spec, broker, Path("/data")) for broker in spec.brokers]
    listeners = [value for text in texts for key, value in properties(text).items() if key.endswith("listeners")]
    assert len(listeners) == 9
    assert all("//127.0.0.1:" in listener for listener in listeners)
    assert properties(settings.zookeeper_settings(spec, Path("/data")))["clientPortAddress"] == "127.0.0.1"


def test_the_config_file_calls_the_cluster_local_and_makes_it_the_log(spec: ClusterSpec) -> None:
    bootstrap = "127.0.0.1:21001,127.0.0.1:21002,127.0.0.1:21003,127.0.0.1:21004"
    assert tomllib.loads(settings.drover_settings(spec)) == {
        "log": {"bootstrap": bootstrap},
        "clusters": {"local": {"bootstrap": bootstrap}},
        "zookeeper": {"hosts": "127.0.0.1:21006"},
    }


def test_the_spec_is_read_back_as_it_was_written(spec: ClusterSpec, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "cluster")
    assert read_spec(layout) is None
    write_spec(layout, spec)
    assert read_spec(layout) == spec


def test_a_damaged_spec_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"cluster_id": "x"}')
    with pytest.raises(ConfigurationError, match=r"cluster\.json is not what .* wrote.*another --dir"):
        read_spec(Layout(tmp_path))


def test_ids_never_look_like_a_flag() -> None:
    ids = [random_id() for _ in range(500)]
    assert all(len(found) == 22 and "-" not in found for found in ids)


@pytest.mark.parametrize(
    ("brokers", "racks", "message"),
    [
        (2, 1, "2 brokers are too few"),
        (0, 1, "0 brokers are too few"),
        (100, 3, "too many"),
        (3, 4, "4 racks do not fit 3 brokers"),
        (3, 0, "0 racks do not fit"),
    ],
)
def test_a_size_that_cannot_work_is_refused(brokers: int, racks: int, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_size(brokers, racks)
