"""`drover alter --dry-run`: what the accepted partitions of a plan would take."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from drover.cli import trying
from drover.cli.estimating import Estimate, Targets, estimate, print_estimate
from drover.cli.exits import ExitCode, Failure
from drover.cli.model_file import parse_model
from drover.cli.trying import Tried
from drover.decide.decision import Decision
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened, PlanThrottleSet
from drover.facts import Observation, PartitionFacts
from drover.fold.evolve import apply
from drover.planner.goals import DEFAULT_LIMITS
from drover.planner.model import ClusterModel
from drover.settings.settings import ClusterSettings, LogSettings, PlanningSettings, Settings
from drover.state.cluster import ClusterState
from drover.state.plans import ClusterThrottle
from tests.cli.models import GIGABYTE, write_model

ORDERS, NOWHERE = TopicPartition("orders", 0), TopicPartition("orders", 77)
TARGET = (4, 5, 3)
SEEN = Observation("prod", "kafka-1", 0, 0, (1, 2, 3, 4, 5, 6))


def alter(*, throttle: int | None = None, plan: str | None = None) -> Alter:
    return Alter(
        id="a1",
        cluster="prod",
        by="ana",
        reason="x",
        plan=plan,
        partitions=(PartitionTarget(topic="orders", partition=0, replicas=TARGET),),
        throttle_bytes_per_second=throttle,
    )


def model_in(tmp_path: Path) -> ClusterModel:
    name = write_model(tmp_path / "model.json")
    return parse_model(Path(name).read_text(encoding="utf-8"), name)


def cost(command: Alter, accepted: Targets, model: ClusterModel, state: ClusterState | None = None) -> Estimate:
    return estimate([command], accepted, state or ClusterState("prod"), model, DEFAULT_LIMITS.disk_limit)


def test_an_estimate_tells_copies_and_the_least_time_at_the_throttle(tmp_path: Path) -> None:
    document = cost(alter(throttle=GIGABYTE // 100), {ORDERS: TARGET}, model_in(tmp_path)).document()
    figures = {name: document[name] for name in ("partitions", "copies", "bytes", "leaders_moved")}
    assert figures == {"partitions": 1, "copies": 2, "bytes": 2 * GIGABYTE, "leaders_moved": 1}
    # Two copies out of one broker.
    assert document["least_time_s"] == pytest.approx(200)
    moved = {row["broker"]: (row["bytes_in"], row["bytes_out"]) for row in document["brokers"]}
    assert moved[4] == (GIGABYTE, 0)
    assert moved[1] == (0, 2 * GIGABYTE)


def test_the_throttle_is_that_which_holds_for_the_plan(tmp_path: Path) -> None:
    state, model = ClusterState("prod"), model_in(tmp_path)
    state.cluster_throttle = ClusterThrottle(GIGABYTE, "ana", "x", 0)
    apply(state, PlanOpened(cluster="prod", plan="friday", by="ana", reason="r"), 0)
    assert cost(alter(plan="friday"), {ORDERS: TARGET}, model, state).throttle == GIGABYTE
    apply(state, PlanThrottleSet(cluster="prod", plan="friday", bytes_per_second=5), 0)
    assert cost(alter(plan="friday"), {ORDERS: TARGET}, model, state).throttle == 5
    assert cost(alter(plan="friday", throttle=7), {ORDERS: TARGET}, model, state).throttle == 7


def test_without_a_throttle_there_is_no_time_and_what_is_not_there_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimated = cost(alter(), {ORDERS: TARGET, NOWHERE: (1, 2)}, model_in(tmp_path))
    assert (estimated.partitions, estimated.least_time_s) == (1, None)
    print_estimate(estimated)
    printed = capsys.readouterr()
    assert "1 partition: 2 copies of 2.0 GB together, 1 with another" in printed.err
    assert "With --throttle RATE it says how long the copies take at least." in printed.err
    assert "peak extra" in printed.out


def test_what_a_plan_breaks_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(cost(alter(), {ORDERS: (1, 4, 2)}, model_in(tmp_path)))
    assert "Mind: orders:0: [1, 4, 2] is on fewer racks than the brokers allow (rack-spread)" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "overfull"), [(0.501, []), (0.5, [4, 5])])
def test_disks_are_judged_by_the_limit_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float, overfull: list[int]
) -> None:
    facts = PartitionFacts("orders-1", 1, (1, 2, 3), (1, 2, 3))

    def answering(answer: object) -> Callable[..., Awaitable[object]]:
        async def answered(*_: object) -> object:
            return answer

        return answered

    monkeypatch.setattr(trying, "state_of", answering(ClusterState("prod")))
    monkeypatch.setattr(trying, "_seen", answering(replace(SEEN, partitions={ORDERS: facts}, min_isr={"orders": 1})))
    monkeypatch.setattr(trying, "live_model", answering(model_in(tmp_path)))
    clusters = {"prod": ClusterSettings("nowhere:1")}
    settings = Settings(LogSettings("nowhere:1"), clusters, planning=PlanningSettings(limit))
    found = trying.try_now(settings, [alter()]).estimate
    assert found is not None
    assert [one.broker for one in found.proposal.unmet] == overfull


def test_a_trial_of_a_plan_that_breaks_a_rule_says_so_and_ends_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = model_in(tmp_path)
    model = replace(model, partitions=tuple(replace(partition, isr=(1,)) for partition in model.partitions))

    def tried(target: tuple[int, ...]) -> Tried:
        decision = Decision(accepted=(ORDERS,))
        return Tried((decision,), cost(alter(), {ORDERS: target}, model))

    settings = Settings(LogSettings("nowhere:1"), {"prod": ClusterSettings("nowhere:1")})
    monkeypatch.setattr(trying, "try_now", lambda *_: tried((4, 2, 3)))
    with pytest.raises(Failure, match="the plan breaks 1 rule, named above") as refused:
        trying.try_plan(settings, [alter()], "json")
    assert refused.value.exit_code == ExitCode.GUARDED
    document = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in document["estimate"]["problems"]] == ["out-of-sync"]
    monkeypatch.setattr(trying, "try_now", lambda *_: tried((1, 2)))
    trying.try_plan(settings, [alter()], "table")
    assert (
        "Mind: the replication factor changes: 1 partition from 3 to 2 (replication-factor)" in capsys.readouterr().err
    )


def test_nothing_is_said_of_a_plan_that_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(cost(alter(), {}, model_in(tmp_path)))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
