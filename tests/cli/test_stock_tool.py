"""`drover kafka-reassign-partitions`: its usage errors, and the cluster that a script names by its brokers."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from drover.cli.invocation import Invocation
from drover.cli.main import cli
from drover.cli.stock_tool import choose_cluster

SETTINGS = """
[log]
bootstrap = "log:9092"
[clusters.east]
bootstrap = "a:9092,b:9092"
[clusters.west]
bootstrap = "c:9092"
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["kafka-reassign-partitions", "--bootstrap-server", "a:9092", *arguments])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (("--list", "--verify"), "Command must include exactly one action"),
        (("--execute",), "Missing required argument --reassignment-json-file"),
        (("--generate", "--broker-list", "1,2"), "Missing required argument --topics-to-move-json-file"),
        (("--list", "--additional"), "Option --additional can't be used with action --list"),
        (("--list", "--throttle", "5"), "Option --throttle can't be used with action --list"),
        (("--nosuch",), "No such option"),
    ],
)
def test_wrong_usage_ends_with_1_as_in_the_stock_tool(arguments: tuple[str, ...], sentence: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, sentence in done.output) == (1, True), done.output


def test_a_file_that_is_no_plan_is_an_error_on_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("{}", encoding="utf-8")
    done = run("--verify", "--reassignment-json-file", str(file))
    assert done.exit_code == 1
    assert done.stdout.startswith(f"Error: {file}")


@pytest.mark.parametrize(("brokers", "cluster"), [("b:9092", "east"), ("x:1,c:9092", "west"), ("b:9092,c:9092", None)])
def test_the_brokers_choose_the_configured_cluster(
    brokers: str, cluster: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drover.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.setenv("DROVER_CONFIG", str(tmp_path / "drover.toml"))
    invocation = Invocation(bootstrap_server=brokers)
    choose_cluster(invocation)
    assert (invocation.cluster, invocation.bootstrap_server) == (cluster, None if cluster else brokers)


def test_without_a_settings_file_the_brokers_are_taken_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    invocation = Invocation(bootstrap_server="a:9092")
    choose_cluster(invocation)
    assert (invocation.cluster, invocation.bootstrap_server) == (None, "a:9092")


def test_every_option_has_a_text_of_help() -> None:
    command = cli.get_command(click.Context(cli), "kafka-reassign-partitions")
    assert command is not None
    assert all(option.help for option in command.params if isinstance(option, click.Option))
