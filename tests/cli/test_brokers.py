"""`drover heal plan` for a named broker, and how far a drain of leaders or its undo is."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

from drover.cli import brokers
from drover.cli.brokers import Waiting, drained_as_far, restored_as_far
from drover.cli.brokers import _wait as wait
from drover.cli.exits import ExitCode, Failure
from drover.cli.main import cli
from drover.client.answers import Answer
from drover.client.history import FoldedLog
from drover.client.live_view import View
from drover.client.transfers import Transfers
from drover.events.brokers import BlacklistSet
from drover.events.healing import HealingLimits
from drover.events.leadership import LeaderElectionIntended, ListedBroker
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.fold.evolve import apply
from drover.fold.log import ShardFold
from drover.inventory import Inventory, LogDirectory, RegisteredBroker, named_brokers
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.state.healing import HealedBroker
from drover.state.leaders import Balance, KeptOrder, LeaderTally
from drover.state.scheduling import Limits
from tests.client.log import outcome
from tests.leadership.support import FIRST, balance, demote, lazy, restore, world
from tests.shard.world import CLUSTER, World


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("99", ExitCode.USAGE, "there is no broker 99; there are 1, 2"),
        ("2", ExitCode.DONE, "Broker 2: 0 partitions"),
        (None, ExitCode.DONE, "Every broker that has replicas is alive."),
    ],
)
def test_a_broker_that_is_not_there_is_not_called_easy_to_heal(
    number: str | None, code: ExitCode, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')

    async def inventory(_: Settings, __: str) -> Inventory:
        return Inventory("k", 0, {one: RegisteredBroker(one, "a", is_alive=True) for one in (1, 2)}, {}, {})

    monkeypatch.setattr(brokers, "_inventory", inventory)
    monkeypatch.setattr(brokers, "_states", lambda *_: [ClusterState("prod")])
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

    monkeypatch.setattr(brokers, "_inventory", inventory)
    monkeypatch.setattr(brokers, "_states", lambda *_: [ClusterState("prod")])
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

    monkeypatch.setattr(brokers, "_inventory", inventory)
    monkeypatch.setattr(brokers, "_states", lambda *_: [ClusterState("prod")])
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
    monkeypatch.setattr(brokers, "_states", lambda *_: [state])
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
    monkeypatch.setattr(brokers, "_states", lambda *_: [ClusterState("prod")])
    result = CliRunner().invoke(cli, ("heal", "status", "--config", str(config)))
    assert "No broker is known to be away" not in result.output
    assert "healing is not set up, and absent brokers are not noticed" in result.output


def has_drained(made: World) -> Waiting:
    return drained_as_far(made.state, 3, made.core.fold.at_ms)


async def test_a_drain_is_done_when_a_count_after_the_listing_shows_that_nothing_is_led() -> None:
    made = world()
    assert has_drained(made) is Waiting.IS_OVER
    await made.send(demote(3))
    seen = [has_drained(made)]
    for _ in range(30):
        await made.run(100)
        seen.append(has_drained(made))
    assert seen[0] is Waiting.GOES_ON
    assert seen[-1] is Waiting.IS_DONE
    assert seen == sorted(seen, key=lambda one: one is Waiting.IS_DONE), "what is done stays done"


async def test_a_second_drain_is_done_although_nothing_has_changed() -> None:
    """Also where other counts were recorded before it, and where the broker was on the list."""
    made = world()
    await made.send(demote(2))
    await made.run(8000)
    counted = made.state.leader_counts[2].at_ms
    assert not made.state.leader_counts[2].leaders
    await made.send(demote(2, topics=("t",)))
    await made.send(demote(2, for_ms=60_000))
    assert drained_as_far(made.state, 2, made.core.fold.at_ms) is Waiting.GOES_ON
    await made.run(3000)
    assert drained_as_far(made.state, 2, made.core.fold.at_ms) is Waiting.IS_DONE
    assert made.state.leader_counts[2].at_ms > counted


async def test_an_open_election_is_waited_for() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(3000)
    state = made.state.copy()
    intended = LeaderElectionIntended(
        cluster=CLUSTER, topic=FIRST.topic, partition=FIRST.partition, topic_id="id", replicas=(1, 2, 3)
    )
    apply(state, intended, made.now.wall_ms)
    assert drained_as_far(state, 3, made.core.fold.at_ms) is Waiting.GOES_ON
    assert restored_as_far(state, 4) is Waiting.GOES_ON


async def test_a_lazy_cluster_is_not_waited_for_before_an_election_is_asked_for() -> None:
    made = lazy()
    await made.send(demote(3))
    await made.run(3000)
    assert has_drained(made) is Waiting.IS_LAZY
    made.state.balance = Balance("ana", "now", 0)
    assert has_drained(made) is Waiting.GOES_ON
    made.state.balance = None
    await made.send(balance())
    await made.run(6000)
    assert has_drained(made) is Waiting.IS_DONE


async def test_an_undo_is_done_when_the_broker_is_in_its_place_whoever_else_is_listed() -> None:
    made = world()
    await made.send(demote(1))
    await made.send(demote(3))
    await made.run(3000)
    assert restored_as_far(made.state, 3) is Waiting.IS_OVER
    await made.send(restore(3))
    assert restored_as_far(made.state, 3) is Waiting.GOES_ON
    await made.run(6000)
    assert made.replicas(FIRST) == (3, 2, 1)
    assert made.state.orders[FIRST].canonical == (3, 1, 2), "broker 1 is still listed"
    assert restored_as_far(made.state, 3) is Waiting.IS_DONE
    await made.send(restore(1))
    assert restored_as_far(made.state, 1) is Waiting.GOES_ON
    await made.run(6000)
    assert restored_as_far(made.state, 1) is Waiting.IS_DONE


def test_an_order_of_somebody_else_is_not_waited_for() -> None:
    state = ClusterState(CLUSTER)
    kept = KeptOrder("id", (3, 1, 2), (1, 2, 3), 0)
    state.orders[FIRST] = kept
    assert restored_as_far(state, 3) is Waiting.GOES_ON
    assert restored_as_far(state, 4) is Waiting.IS_DONE
    state.orders[FIRST] = replace(kept, left_alone=True)
    assert restored_as_far(state, 3) is Waiting.IS_DONE


async def views(state: ClusterState) -> AsyncGenerator[View, None]:
    """Show one state again and again, as a quiet log does."""
    fold = ShardFold(0, 1)
    fold.state.clusters[state.name] = state
    fold.at_ms = 6
    view = View(FoldedLog({0: fold}), Transfers())
    while True:
        yield view


@pytest.mark.parametrize(
    ("listed", "counted", "lazily", "words"),
    [
        (True, None, False, "leads an unknown number of partitions, 0 wait"),
        (True, 2, False, "leads 2 partitions, 0 wait"),
        (True, 2, True, "leaders move only when `drover leaders balance`"),
        (False, 2, False, "is not on the list any more"),
    ],
)
async def test_what_is_not_done_in_time_says_how_far_it_is(
    listed: bool, counted: int | None, lazily: bool, words: str
) -> None:
    state = ClusterState(CLUSTER)
    state.limits = replace(state.limits, lazy_leadership=lazily)
    if listed:
        entry = ListedBroker(broker=3)
        event = BlacklistSet(cluster=CLUSTER, brokers=(3,), previous_brokers=(), by="a", reason="b", entries=(entry,))
        apply(state, event, 5)
    if counted is not None:
        state.leader_counts[3] = LeaderTally(counted, 7, 6)
    with pytest.raises(Failure, match=words) as failure:
        await wait(views(state), CLUSTER, 3, 0, drained=True)
    assert failure.value.exit_code == ExitCode.UNFINISHED


async def test_what_is_done_is_said() -> None:
    done = await wait(views(ClusterState(CLUSTER)), CLUSTER, 3, 0, drained=False)
    assert done == f"Every list with broker 3 of {CLUSTER} is back in its canonical order."


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_what_is_done_is_said_beside_a_document_for_programs(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    monkeypatch.setattr("drover.cli.brokers.send", lambda *_: (Answer(outcome("d1"), 0, 1, 1),))
    monkeypatch.setattr("drover.cli.brokers.wait_for_leaders", lambda *_, **__: "Broker 3 leads nothing.")
    command = ("broker", "drain-leaders", "3", "--yes", "--reason", "x", "--config", str(config), "-o", output)
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0
    said, beside = (result.stdout, result.stderr) if output == "table" else (result.stderr, result.stdout)
    assert "Broker 3 leads nothing.\n" in said
    assert "Broker 3" not in beside
    if output != "table":
        assert yaml.safe_load(result.stdout)["outcomes"][0]["id"] == "d1"
