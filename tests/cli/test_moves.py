"""`drover cancel` prints the lists at which partitions end; `drover status` the end of all, and the stock file."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli import moves, status
from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.moves import SHOWN_LISTS
from drover.client.answers import Answer
from drover.client.time_travel import Travel
from drover.errors import LogUnavailableError
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.reassignments import RollbackRequested, StepConfirmed, StopRequested
from drover.events.records import Outcome
from drover.events.unmanaged import UnmanagedMoveSeen
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from tests.client.log import CLUSTER
from tests.web.scene import BYTES, Scene, keys, lists, place

ARGUMENTS = ("--reason", "x", "--config", "drover.toml")
MOVING = keys("orders", SHOWN_LISTS + 5)
STEP = StepConfirmed(**place(MOVING[0]), step=1, replicas=(1, 4, 2, 5))


@pytest.fixture(autouse=True)
def settings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drover.toml").write_text(
        f'[log]\nbootstrap = "127.0.0.1:1"\n[clusters.{CLUSTER}]\nbootstrap = "127.0.0.1:1"\n'
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, (*arguments, "--config", "drover.toml"), prog_name="drover")


class Cancelled:
    """A log in which a cancel was decided."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scene: Scene, accepted: Sequence[TopicPartition]) -> None:
        self.scene = scene
        offset = len(scene.writer.records) - 1
        outcome = Outcome(
            id="c", cluster=CLUSTER, type="cancel", by="ann", reason="x", topic="drover.cancel", offset=0,
            verdict="accepted", accepted=tuple(PartitionReference(*key) for key in accepted),
        )  # fmt: skip
        self.points: list[int | None] = []
        monkeypatch.setattr(moves, "send", lambda *_: (Answer(outcome, 0, offset, 0),))
        monkeypatch.setattr("drover.cli.moves.travel", self.travel)

    async def travel(self, _connection: object, _shard: int, points: Any) -> Travel:
        self.points += [point.offset for point in points]
        return Travel(ShardFold(0, 1), points, {points[0]: self.scene.writer.fold})


def begun(count: int) -> Scene:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 1", None, MOVING)
    scene.start(*MOVING[:count])
    return scene


def test_a_rollback_prints_the_original_lists_of_what_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = begun(2)
    scene.say(*(RollbackRequested(**place(key), by="ann", reason="x") for key in MOVING[:2]))
    log = Cancelled(monkeypatch, scene, MOVING[:4])
    done = run("cancel", "--rollback", "--plan", "friday", "--reason", "x", "-o", "json")
    assert done.exit_code == ExitCode.DONE, done.output
    assert json.loads(done.stdout)["restores"] == [
        {"topic": "orders", "partition": key.partition, "target": list(lists(key)[1]), "replicas": list(lists(key)[0])}
        for key in MOVING[:2]
    ]
    assert log.points == [len(scene.writer.records) - 1], "as the log was right after the decision"


def test_a_large_rollback_prints_the_first_lists_and_says_how_many_more_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = begun(len(MOVING))
    scene.say(*(RollbackRequested(**place(key), by="ann", reason="x") for key in MOVING))
    Cancelled(monkeypatch, scene, MOVING)
    done = run("cancel", "--rollback", "--plan", "friday", "--reason", "x")
    rows = [line for line in done.stdout.splitlines() if line.startswith("orders:")]
    assert len(rows) == SHOWN_LISTS
    assert rows[0].split() == ["orders:0", "1,", "4,", "5", "1,", "4,", "2"]
    assert "... and 5 more: -o json prints all." in done.stdout


def test_a_stop_prints_the_list_to_which_confirmed_steps_have_led(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = begun(1)
    scene.say(STEP)
    scene.say(StopRequested(**place(MOVING[0]), by="ann", reason="x"))
    Cancelled(monkeypatch, scene, MOVING[:1])
    done = run("cancel", "--stop", "--plan", "friday", "--reason", "x", "-o", "json")
    assert [one["replicas"] for one in json.loads(done.stdout)["restores"]] == [[1, 4, 2, 5]]


def test_a_cancel_whose_lists_cannot_be_read_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    Cancelled(monkeypatch, begun(1), MOVING[:1])

    async def gone(*_: object) -> Travel:
        raise LogUnavailableError("the log does not answer")

    monkeypatch.setattr("drover.cli.moves.travel", gone)
    done = run("cancel", "--rollback", "--plan", "friday", "--reason", "x")
    assert done.exit_code == ExitCode.DONE
    assert (
        "The cancel is recorded, but the lists that it restores cannot be shown: the log does not answer" in done.stderr
    )


def looking(monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
    async def look(*_: object) -> object:
        return scene.view

    monkeypatch.setattr(status, "look", look)


def test_the_stock_format_holds_the_targets_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = begun(2)
    scene.roll_back(MOVING[1], "ann", "x")
    scene.say(
        UnmanagedMoveSeen(cluster=CLUSTER, topic="raw", partition=3, replicas=(1, 2, 4), adding=(4,), removing=(1,))
    )
    looking(monkeypatch, scene)
    shown = run("status", "-o", "stock")
    assert shown.exit_code == ExitCode.DONE, shown.output
    document = json.loads(shown.stdout)
    assert document["version"] == 1
    found = {(one["topic"], one["partition"]): one["replicas"] for one in document["partitions"]}
    assert found["orders", 0] == list(lists(MOVING[0])[1])
    assert found["orders", 1] == list(lists(MOVING[1])[0]), "it is rolled back"
    assert found["orders", 2] == list(lists(MOVING[2])[1]), "it waits for a slot"
    assert found["raw", 3] == [2, 4]
    assert ("raw", 3) not in {
        (one["topic"], one["partition"])
        for one in json.loads(run("status", "-o", "stock", "--plan", "friday").stdout)["partitions"]
    }


def test_the_stock_format_names_no_cluster_so_there_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = begun(1)
    scene.writer.fold.state.clusters["other"] = ClusterState("other")
    looking(monkeypatch, scene)
    shown = run("status", "-o", "stock")
    assert shown.exit_code == ExitCode.USAGE
    assert "the stock format cannot name a cluster: choose one with --cluster" in shown.stderr


def test_status_says_when_all_of_it_ends_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = begun(1)
    scene.sample(MOVING[0], BYTES // 2, 100_000_000)
    scene.breathe()
    looking(monkeypatch, scene)
    # 6 GB of one copy, and 24 partitions of 12 GB that wait, at 100 MB/s: 49 minutes, and the time since.
    assert re.search(", ends in (49|50)m", run("status").stdout)
    assert re.search(", ends in (49|50)m", run("status", "--plan", "friday").stdout)
    assert "ends in" not in run("status", "--topic", "orders").stdout
    totals = json.loads(run("status", "-o", "json").stdout)["totals"]
    assert totals["soonest_ms"] == totals["latest_ms"] == pytest.approx(2_940_000, abs=60_000)
