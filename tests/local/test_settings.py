"""The files that the nodes and other commands read."""

import os
import re
import ssl
import stat
import tomllib
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.local import files, security, settings
from drover.local.layout import (
    OPERATOR,
    USERS,
    WORKER,
    ClusterSpec,
    Layout,
    check_size,
    check_version,
    make_private,
    new_spec,
    random_id,
    read_spec,
    write_spec,
)

LAYOUT = Layout(Path("/dir"))


@pytest.fixture
def spec() -> ClusterSpec:
    return new_spec(4, 3, (21001, 21002, 21003, 21004, 21005, 21006))


@pytest.fixture
def secure() -> ClusterSpec:
    return new_spec(4, 3, tuple(range(22001, 22011)), secure=True)


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


def test_more_controllers_vote_and_each_has_a_port_of_its_own() -> None:
    spec = new_spec(4, 3, tuple(range(23001, 23009)), controllers=3)
    assert spec.nodes == ("1", "2", "3", "4", "100", "101", "102", "zookeeper")
    assert [spec.port(node) for node in spec.nodes] == list(range(23001, 23009))
    voters = "100@127.0.0.1:23005,101@127.0.0.1:23006,102@127.0.0.1:23007"
    broker = properties(settings.broker_settings(spec, LAYOUT, spec.brokers[0]))
    assert (broker["controller.quorum.voters"], broker["node.id"]) == (voters, "1")
    assert broker["controller.quorum.election.timeout.ms"] == "600000"
    assert broker["controller.quorum.fetch.timeout.ms"] == "10000"
    controller = properties(settings.controller_settings(spec, LAYOUT, "102"))
    assert (controller["controller.quorum.voters"], controller["node.id"]) == (voters, "102")
    assert not {"controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms"} & set(controller)
    assert controller["listeners"] == "CONTROLLER://127.0.0.1:23007"


def test_in_zookeeper_mode_there_is_no_controller_and_brokers_are_told_the_zookeeper() -> None:
    spec = new_spec(4, 3, tuple(range(24001, 24006)), kafka="3.9.2", controllers=0)
    assert spec.nodes == ("1", "2", "3", "4", "zookeeper")
    assert spec.in_zookeeper_mode
    broker = properties(settings.broker_settings(spec, LAYOUT, spec.brokers[1]))
    assert (broker["zookeeper.connect"], broker["broker.id"]) == ("127.0.0.1:24005", "2")
    assert not {"process.roles", "node.id", "controller.quorum.voters"} & set(broker)


@pytest.mark.parametrize(
    ("kafka", "controllers", "secure", "words"),
    [
        ("2.8.0", 1, False, "Kafka 2.8.0 is not among the locked versions"),
        ("4.0.2", 0, False, "Kafka 4.0.2 has no ZooKeeper mode"),
        ("3.9.2", 0, True, "ZooKeeper mode cannot be made secure"),
        ("4.3.1", 6, False, "6 controllers are not possible"),
    ],
)
def test_a_version_that_is_not_there_or_has_not_what_is_asked_is_refused(
    kafka: str, controllers: int, words: str, *, secure: bool
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        check_version(kafka, controllers, secure=secure)


def test_internal_topics_survive_a_broker_and_nothing_is_elected_or_created_unasked(spec: ClusterSpec) -> None:
    broker = properties(settings.broker_settings(spec, LAYOUT, spec.brokers[1]))
    assert broker["offsets.topic.replication.factor"] == "3"
    assert broker["transaction.state.log.min.isr"] == "2"
    assert broker["unclean.leader.election.enable"] == "false"
    assert broker["auto.create.topics.enable"] == "false"
    assert (broker["broker.session.timeout.ms"], broker["broker.heartbeat.interval.ms"]) == ("3000", "500")
    assert broker["metadata.max.idle.interval.ms"] == "10000"
    assert broker["group.min.session.timeout.ms"] == "1000", "the shortest that a worker may ask for"
    assert (broker["node.id"], broker["broker.rack"], broker["log.dirs"]) == ("2", "r2", "/dir/nodes/2/data")


@pytest.mark.parametrize("secured", [False, True])
def test_every_listener_is_on_loopback(spec: ClusterSpec, secure: ClusterSpec, *, secured: bool) -> None:
    spec = secure if secured else spec
    texts = [settings.controller_settings(spec, LAYOUT)]
    texts += [settings.broker_settings(spec, LAYOUT, broker) for broker in spec.brokers]
    listeners = [
        listener
        for text in texts
        for key, value in properties(text).items()
        if key.endswith("listeners")
        for listener in value.split(",")
    ]
    assert len(listeners) == (17 if secured else 9)
    assert all("//127.0.0.1:" in listener for listener in listeners)
    assert properties(settings.zookeeper_settings(spec, Path("/data")))["clientPortAddress"] == "127.0.0.1"


def test_in_a_secure_cluster_clients_need_a_password_and_nodes_a_certificate(secure: ClusterSpec) -> None:
    assert (secure.brokers[1].port, secure.brokers[1].internal_port, secure.zookeeper_port) == (22002, 22006, 22010)
    broker = properties(settings.broker_settings(secure, LAYOUT, secure.brokers[1]))
    assert broker["listeners"] == "CLIENT://127.0.0.1:22002,INTERNAL://127.0.0.1:22006"
    assert broker["listener.security.protocol.map"] == "CONTROLLER:SSL,INTERNAL:SSL,CLIENT:SASL_SSL"
    assert broker["inter.broker.listener.name"] == "INTERNAL"
    assert broker["listener.name.internal.ssl.client.auth"] == "required"
    assert broker["super.users"] == (
        "User:admin;User:CN=kafka-1;User:CN=kafka-2;User:CN=kafka-3;User:CN=kafka-4;User:CN=kafka-100"
    )
    controller = properties(settings.controller_settings(secure, LAYOUT))
    assert controller["listener.name.controller.ssl.client.auth"] == "required"
    assert controller["authorizer.class.name"] == broker["authorizer.class.name"]
    assert "allow.everyone.if.no.acl.found" not in controller


def test_the_config_file_calls_the_cluster_local_and_makes_it_the_log(spec: ClusterSpec) -> None:
    bootstrap = "127.0.0.1:21001,127.0.0.1:21002,127.0.0.1:21003,127.0.0.1:21004"
    assert tomllib.loads(settings.drover_settings(spec, LAYOUT, WORKER)) == {
        "log": {"bootstrap": bootstrap},
        "clusters": {"local": {"bootstrap": bootstrap}},
        "worker": {"allow_drover_topics": True},
        "zookeeper": {"hosts": "127.0.0.1:21006", "allow_open_zookeeper": True},
    }


def test_the_config_file_of_a_secure_cluster_names_files_and_holds_no_secret(secure: ClusterSpec) -> None:
    found = tomllib.loads(settings.drover_settings(secure, LAYOUT, OPERATOR))
    assert found["log"]["security"] == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "operator",
        "sasl_plain_password_file": "/dir/nodes/operator.password",
        "ssl_cafile": "/dir/nodes/authority.pem",
    }
    assert found["clusters"]["local"]["security"] == found["log"]["security"]


def test_secrets_are_made_once_and_nobody_else_can_read_them(secure: ClusterSpec, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for node in secure.nodes:
        layout.node(node).mkdir(parents=True)
    security.write_secrets(layout, secure)
    arguments = security.write_format_arguments(layout, secure)
    private = [
        arguments,
        *(layout.password_file(user) for user in USERS),
        *map(layout.keystore_file, secure.kafka_nodes),
    ]
    before = [file.read_text() for file in private]
    assert len(set(before)) == 9
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in private)
    assert stat.S_IMODE(layout.nodes_directory.stat().st_mode) == 0o700
    assert f"SCRAM-SHA-512=[name=drover,password={security.password(layout, WORKER)}]" in before[0].splitlines()
    security.write_secrets(layout, secure)
    assert [file.read_text() for file in private] == before
    context = security.node_context(layout, "1")
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_the_spec_is_read_back_as_it_was_written(spec: ClusterSpec, secure: ClusterSpec, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "cluster")
    assert read_spec(layout) is None
    write_spec(layout, spec)
    assert read_spec(layout) == spec
    write_spec(layout, secure)
    assert read_spec(layout) == secure


def test_a_damaged_spec_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"cluster_id": "x"}')
    with pytest.raises(ConfigurationError, match=r"cluster\.json is not a file of .*another --dir or"):
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


def test_what_a_cluster_keeps_is_its_owners_alone(tmp_path: Path) -> None:
    directory = tmp_path / ".local" / "cluster"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    make_private(directory)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (directory.parent, directory)] == [0o700, 0o700]


@pytest.mark.parametrize("secure", [False, True])
def test_java_reads_the_very_paths_whatever_letters_they_have(secure: bool) -> None:
    """Java reads properties as Latin-1: with another path, data would lie outside of the cluster's directory."""
    layout = Layout(Path("/home/jürgen/a b/\N{MUSICAL SYMBOL G CLEF}\\n"))
    spec = new_spec(3, 3, tuple(range(24001, 24011)), secure=secure)
    found = java_properties(settings.broker_settings(spec, layout, spec.brokers[0]))
    assert found["log.dirs"] == str(layout.data_directory("1"))
    assert found.get("ssl.keystore.location") == (str(layout.keystore_file("1")) if secure else None)
    assert found.get("ssl.truststore.location") == (str(layout.authority_file) if secure else None)
    controller = java_properties(settings.controller_settings(spec, layout))
    assert controller["log.dirs"] == str(layout.data_directory("100"))
    zookeeper = java_properties(settings.zookeeper_settings(spec, layout.data_directory("zookeeper")))
    assert zookeeper["dataDir"] == str(layout.data_directory("zookeeper"))


def java_properties(text: str) -> dict[str, str]:
    """Read properties as `Properties.load` reads a stream: Latin-1, with its escapes, in units of UTF-16."""
    read = properties(text.encode("utf-8").decode("latin-1"))
    found = {}
    for key, value in read.items():
        units = re.sub(r"\\(u([0-9a-f]{4})|.)", lambda one: chr(int(one[2], 16)) if one[2] else one[1], value)
        found[key] = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    return found


@pytest.mark.parametrize("secured", [False, True])
def test_commands_take_the_settings_of_a_cluster_whatever_the_umask_is(
    spec: ClusterSpec, secure: ClusterSpec, tmp_path: Path, *, secured: bool
) -> None:
    """Users with a group of their own have 002, by which a group may write what is new."""
    layout = Layout(tmp_path)
    before = os.umask(0o002)
    try:
        files.write_config(layout, secure if secured else spec)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
