"""How far a drain of leaders is, and its undo: what the log must say before a command says that it is done."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

from drover.cli.draining import Waiting, drained_as_far, restored_as_far
from drover.cli.draining import _wait as wait
from drover.cli.exits import ExitCode, Failure
from drover.cli.main import cli
from drover.client.answers import Answer
from drover.client.history import FoldedLog
from drover.client.transfers import Transfers
from drover.client.watching import View
from drover.events.brokers import BlacklistSet
from drover.events.leadership import LeaderElectionIntended, ListedBroker
from drover.fold.evolve import apply
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from drover.state.leaders import Balance, KeptOrder, LeaderTally
from tests.client.log import outcome
from tests.leadership.support import FIRST, balance, demote, lazy, restore, world
from tests.shard.world import CLUSTER, World


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
        (True, 2, True, "no leader moves before `drover leaders balance`"),
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
    assert done == f"The canonical order of every list with broker 3 of {CLUSTER} is back."


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_what_is_done_is_said_beside_a_document_for_programs(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    monkeypatch.setattr("drover.cli.broker.send", lambda *_: (Answer(outcome("d1"), 0, 1, 1),))
    monkeypatch.setattr("drover.cli.draining.wait_for_leaders", lambda *_, **__: "Broker 3 leads nothing.")
    command = ("broker", "drain-leaders", "3", "--reason", "x", "--config", str(config), "-o", output)
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0
    said, beside = (result.stdout, result.stderr) if output == "table" else (result.stderr, result.stdout)
    assert "Broker 3 leads nothing.\n" in said
    assert "Broker 3" not in beside
    if output != "table":
        assert yaml.safe_load(result.stdout)["outcomes"][0]["id"] == "d1"
