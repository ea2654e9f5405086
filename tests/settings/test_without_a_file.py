"""Commands without a settings file: brokers by a flag, the way to connect by a properties file, contexts, origins."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drover.cli.invocation import Invocation
from drover.cli.main import COMMANDS, cli
from drover.errors import ConfigurationError
from drover.settings.sources import find_file, load_settings

PROPERTIES = """security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="hunter2";
"""
FILE = '[clusters.prod]\nbootstrap = "prod:9092"\n'
# They start or describe something else than a connection to a Kafka.
WITHOUT_KAFKA = {"local", "demo", "context", "completion"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "users"))
    for name in ("DROVER_CONFIG", "DROVER_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    Path("client.properties").write_text(PROPERTIES)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="drover")


def origins(*arguments: str) -> dict[str, tuple[object, str]]:
    done = run("config", "show", "--origin", "-o", "json", *arguments)
    assert done.exit_code == 0, done.output
    return {row["setting"]: (row["value"], row["origin"]) for row in json.loads(done.output)["settings"]}


def test_brokers_and_properties_are_enough_and_the_log_is_there_too() -> None:
    settings = Invocation(bootstrap_server="kafka:9093", command_config=Path("client.properties")).settings()
    assert settings.clusters["default"].bootstrap == settings.log.bootstrap == "kafka:9093"
    assert settings.log.security == settings.clusters["default"].security
    assert settings.log.security.sasl_plain_password == "hunter2"  # noqa: S105 - of nobody
    assert settings.cluster == "default"


def test_the_properties_may_name_the_brokers() -> None:
    Path("client.properties").write_text("bootstrap.servers=kafka:9092\n")
    assert Invocation(command_config=Path("client.properties")).settings().log.bootstrap == "kafka:9092"
    Path("client.properties").write_text("")
    with pytest.raises(ConfigurationError, match=r"--bootstrap-server, or with bootstrap\.servers in client"):
        Invocation(command_config=Path("client.properties")).settings()


def test_a_settings_file_is_not_read_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log would be the one of other clusters, with commands for a cluster of the same name."""
    Path("drover.toml").write_text(FILE)
    settings = Invocation(bootstrap_server="kafka:9092").settings()
    assert set(settings.clusters) == {"default"}
    monkeypatch.setenv("DROVER_CONFIG", "drover.toml")
    assert set(Invocation(bootstrap_server="kafka:9092").settings().clusters) == {"default"}
    with pytest.raises(ConfigurationError, match="give the one or the others"):
        Invocation(config=Path("drover.toml"), bootstrap_server="kafka:9092").settings()


def test_variables_hold_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_LOG__BOOTSTRAP", "log:9092")
    monkeypatch.setenv("DROVER_CLUSTER", "prod")
    settings = Invocation(bootstrap_server="kafka:9092").settings()
    assert (settings.log.bootstrap, settings.clusters["prod"].bootstrap) == ("log:9092", "kafka:9092")
    assert set(Invocation(bootstrap_server="kafka:9092", cluster="mine").settings().clusters) == {"mine"}


def test_the_variable_chooses_among_the_clusters_of_a_file_and_the_flag_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("drover.toml").write_text('[log]\nbootstrap = "log:1"\n' + FILE + '[clusters.test]\nbootstrap = "test:1"\n')
    with pytest.raises(ConfigurationError, match="choose a cluster with --cluster NAME"):
        Invocation().cluster_of(Invocation().settings())
    monkeypatch.setenv("DROVER_CLUSTER", "test")
    chosen = Invocation()
    assert chosen.cluster_of(chosen.settings()) == chosen.cluster_wanted(chosen.settings()) == "test"
    chosen = Invocation(cluster="prod")
    assert chosen.cluster_of(chosen.settings()) == "prod"
    monkeypatch.setenv("DROVER_CLUSTER", "gone")
    with pytest.raises(ConfigurationError, match="cluster gone is not configured"):
        Invocation().cluster_of(Invocation().settings())


def test_the_only_cluster_holds_the_log_where_nothing_else_is_said(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(FILE + '[clusters.prod.security]\nsecurity_protocol = "SSL"\n')
    settings = load_settings(file)
    assert settings.log.bootstrap == "prod:9092"
    assert settings.log.security.security_protocol == "SSL"
    file.write_text(FILE + '[log]\nprefix = "mine"\n[log.security]\nsecurity_protocol = "PLAINTEXT"\n')
    settings = load_settings(file)
    assert (settings.log.bootstrap, settings.log.prefix) == ("prod:9092", "mine")
    file.write_text(FILE + '[clusters.test]\nbootstrap = "test:1"\n')
    with pytest.raises(ConfigurationError, match="log is not set"):
        load_settings(file)
    file.write_text(FILE + '[clusters.prod.security]\nsecurity_protocol = "TLS"\n')
    with pytest.raises(ConfigurationError) as refused:
        load_settings(file)
    assert str(refused.value).count("security_protocol") == 1


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_KAFKA])
def test_every_command_takes_the_flags_and_shows_them(name: str) -> None:
    done = run(name, "--help")
    if "Commands:" in done.output and "--bootstrap-server" not in done.output:
        command = cli.get_command(None, name)  # type: ignore[arg-type]  # it does not look at the context
        assert command is not None
        assert any(
            "--bootstrap-server" in parameter.opts
            for child in command.commands.values()  # type: ignore[attr-defined]  # it is a group
            for parameter in child.params
        )
        return
    assert "--bootstrap-server HOST:PORT,..." in done.output
    assert "--command-config FILE" in done.output


def test_a_context_is_used_until_another_is(tmp_path: Path) -> None:
    assert run("context", "list").exit_code == 0
    made = run(
        "config", "init", "--context", "prod", "--bootstrap-server", "p:1", "--command-config", "client.properties"
    )
    assert made.exit_code == 0, made.output
    assert run("config", "init", "--context", "test", "--bootstrap-server", "t:1").exit_code == 0
    refused = run("context", "use", "gone")
    assert refused.exit_code == 2
    assert "there is no context gone (there are: prod, test)" in refused.output
    Path("drover.toml").write_text(FILE)
    assert run("context", "use", "prod").exit_code == 0
    (tmp_path / "users" / "drover" / "context").chmod(0o666)
    assert "is not used, because anybody may write it" in run("context", "show").output
    assert run("context", "use", "prod").exit_code == 0
    file = tmp_path / "users" / "drover" / "contexts" / "prod.toml"
    assert find_file(None) == file
    assert file.stat().st_mode & 0o777 == 0o600
    settings = load_settings()
    assert settings.clusters["prod"].bootstrap == "p:1"
    assert settings.log.security.sasl_plain_password == "hunter2"  # noqa: S105 - of nobody
    listed = json.loads(run("context", "list", "-o", "json").output)["contexts"]
    assert [(row["context"], row["in_use"]) for row in listed] == [("prod", True), ("test", False)]
    assert f"The context prod is in use: {file}." in run("context", "show").output
    file.unlink()
    gone = run("config", "show")
    assert gone.exit_code == 2
    assert "the context in use, prod, has no file" in gone.output
    assert run("context", "use", "--none").exit_code == 0
    assert find_file(None) == Path("drover.toml")
    assert "commands use drover.toml" in run("context", "show").output
    Path("drover.toml").unlink()
    assert run("context", "show").exit_code == 1
    assert run("context", "use", "prod", "--none").exit_code == 2
    assert run("context", "use", "../x").exit_code == 2


def test_a_file_to_begin_with_can_be_used_and_is_never_overwritten() -> None:
    assert run("config", "init").output == "Wrote drover.toml.\n"
    assert load_settings().clusters["default"].bootstrap == "localhost:9092"
    again = run("config", "init")
    assert again.exit_code == 2
    assert "drover.toml exists already" in again.output
    checked = run("config", "check")
    assert checked.exit_code == 0
    assert "Not encrypted: log, clusters.default." in checked.output


def test_a_check_names_every_file_that_cannot_be_used() -> None:
    section = '.security]\nsecurity_protocol = "SSL"\nssl_cafile = "gone.pem"\n'
    Path("drover.toml").write_text(f'[log]\nbootstrap = "log:1"\n[log{section}{FILE}[clusters.prod{section}')
    refused = run("config", "check")
    assert refused.exit_code == 2
    assert "log.security.ssl_cafile: the file gone.pem" in refused.output
    assert "clusters.prod.security.ssl_cafile: the file gone.pem" in refused.output


def test_every_value_says_where_it_comes_from_and_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("drover.toml").write_text(f'{FILE}"max.moves.per.broker" = 7\n[worker]\nname = "first"\n')
    monkeypatch.setenv("DROVER_WORKER__GROUP", "mine")
    monkeypatch.setenv("DROVER_CLUSTERS__PROD__SECURITY", '{"sasl_plain_password": null}')
    monkeypatch.setenv("DROVER_ZOOKEEPER__PASSWORD", "hunter2")
    monkeypatch.setenv("DROVER_ZOOKEEPER__USERNAME", "me")
    shown = origins("--cluster", "prod")
    assert shown["clusters.prod.bootstrap"] == ("prod:9092", "drover.toml:2")
    assert shown["worker.name"] == ("first", "drover.toml:5")
    assert shown["worker.group"] == ("mine", "variable DROVER_WORKER__GROUP")
    assert shown["clusters.prod.security.sasl_plain_password"] == (None, "variable DROVER_CLUSTERS__PROD__SECURITY")
    assert shown["zookeeper.password"] == ("***", "variable DROVER_ZOOKEEPER__PASSWORD")
    assert shown["log.bootstrap"] == ("prod:9092", "the only cluster")
    assert shown["worker.listen"] == ("127.0.0.1:8150", "default")
    assert shown["cluster"] == ("prod", "--cluster")
    assert "drover.toml:2" in run("config", "show", "--origin").output
    assert "hunter2" not in run("config", "show", "--origin").output


def test_flags_are_named_as_origins() -> None:
    shown = origins("--bootstrap-server", "kafka:9093", "--command-config", "client.properties")
    assert shown["clusters.default.bootstrap"] == ("kafka:9093", "--bootstrap-server")
    properties = "--command-config client.properties"
    assert shown["clusters.default.security.sasl_plain_username"] == ("me", properties)
    assert shown["clusters.default.security.sasl_plain_password"] == ("***", properties)
    assert shown["cluster"] == ("default", "--bootstrap-server")
