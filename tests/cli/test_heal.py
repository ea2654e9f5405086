"""`drover heal plan` for a broker that is named."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from drover.cli import heal
from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.events.healing import HealingLimits
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.inventory import Inventory, LogDirectory, RegisteredBroker, named_brokers
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.state.healing import HealedBroker
from drover.state.scheduling import Limits


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("99", ExitCode.USAGE, "there is no broker 99; there are 1, 2"),
        ("2", ExitCode.DONE, "Broker 2: 0 partitions"),
        (None, ExitCode.DONE, "Every broker that replica lists name is alive."),
    ],
)
def test_a_broker_that_is_not_there_is_not_called_easy_to_heal(
    number: str | None, code: ExitCode, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')

    async def inventory(_: Settings, __: str) -> Inventory:
        return Inventory("k", 0, {one: RegisteredBroker(one, "a", is_alive=True) for one in (1, 2)}, {}, {})

    monkeypatch.setattr(heal, "_inventory", inventory)
    monkeypatch.setattr(heal, "_states", lambda *_: [ClusterState("prod")])
    named = () if number is None else (number,)
    result = CliRunner().invoke(cli, ("heal", "plan", *named, "--config", str(config)))
    assert (result.exit_code, said in result.output) == (code, True), result.output


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("3", ExitCode.USAGE, "broker 3 is unreachable"),
        (None, ExitCode.DONE, "Broker 3 is unreachable"),
    ],
)
def test_an_unreachable_broker_is_not_planned_for(
    number: str | None, code: ExitCode, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    led = {TopicPartition("t", 0): PartitionFacts("id", 1, (1, 3), (1, 3))}
    registered = {one: RegisteredBroker(one, "a", is_alive=True) for one in (1, 2)}

    async def inventory(_: Settings, __: str) -> Inventory:
        return Inventory("k", 0, named_brokers(registered, led), led, {})

    monkeypatch.setattr(heal, "_inventory", inventory)
    monkeypatch.setattr(heal, "_states", lambda *_: [ClusterState("prod")])
    named = () if number is None else (number,)
    result = CliRunner().invoke(cli, ("heal", "plan", *named, "--config", str(config)))
    assert (result.exit_code, said in result.output) == (code, True), result.output
    assert "0 partitions" not in result.output


def test_a_cordoned_broker_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')

    async def inventory(_: Settings, __: str) -> Inventory:
        directories = (LogDirectory("/data", 10, 5, is_cordoned=True),)
        brokers = {
            1: RegisteredBroker(1, "a", is_alive=True, directories=directories),
            2: RegisteredBroker(2, "a", is_alive=True),
        }
        return Inventory("k", 0, brokers, {}, {})

    monkeypatch.setattr(heal, "_inventory", inventory)
    monkeypatch.setattr(heal, "_states", lambda *_: [ClusterState("prod")])
    result = CliRunner().invoke(cli, ("heal", "plan", "2", "-o", "json", "--config", str(config)))
    said = "Broker 1 is cordoned, with all of its log directories (cordoned.log.dirs): it receives no replicas."
    assert result.stderr.strip() == said


def test_the_status_says_who_was_healed_and_is_still_away_and_whether_healing_is_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    state = ClusterState("prod")
    state.limits = Limits(healing=HealingLimits(failure_interval_ms=3_600_000))
    state.emptied_brokers = {3: 1_700_000_000_000}
    state.healed_brokers = {3: HealedBroker(1_690_000_000_000, "drover-heal-1", 21)}
    monkeypatch.setattr(heal, "_states", lambda *_: [state])
    result = CliRunner().invoke(cli, ("heal", "status", "--config", str(config)), env={"COLUMNS": "160"})
    assert result.exit_code == ExitCode.DONE, result.output
    assert "No broker is known to be away" not in result.output
    assert "healed by drover-heal-1: 21 partitions moved to other brokers" in result.output
    assert "prod: healing is on: a broker that is away for 3,600 s is healed" in result.output
    assert "it is still away" in result.output


def test_without_healing_the_status_does_not_say_that_no_broker_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    monkeypatch.setattr(heal, "_states", lambda *_: [ClusterState("prod")])
    result = CliRunner().invoke(cli, ("heal", "status", "--config", str(config)))
    assert "No broker is known to be away" not in result.output
    assert "healing is not set up, and nobody notices absent brokers" in result.output
