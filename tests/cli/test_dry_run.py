"""`drover alter --dry-run` and `--plan-hash`: what a plan takes, and what has changed since it was made."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli import dry_run
from drover.cli.dry_run import Estimate, Targets, Tried, estimate, print_estimate, try_plan
from drover.cli.exits import ExitCode, Failure
from drover.cli.main import cli
from drover.cli.model import parse_model
from drover.decide.decision import Decision
from drover.events.clusters import ClusterFrozen
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
from tests.cli import models
from tests.cli.models import BROKERS, GIGABYTE, broker, partition, write_model

ORDERS, NOWHERE = TopicPartition("orders", 0), TopicPartition("orders", 77)
TARGET = (4, 5, 3)
SEEN = Observation("prod", "kafka-1", 0, 0, (1, 2, 3, 4, 5, 6))
CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'


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
    return estimate([command], accepted, state or ClusterState("prod"), model, DEFAULT_LIMITS)


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
    assert "1 partition to change, 2 copies of 2.0 GB together, 1 with another" in printed.err
    assert "Add --throttle RATE to estimate the least time." in printed.err
    assert "peak extra" in printed.out


def test_what_a_plan_breaks_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(cost(alter(), {ORDERS: (1, 4, 2)}, model_in(tmp_path)))
    assert (
        "Problem: orders:0: [1, 4, 2] is on fewer racks than the brokers allow (rack-spread)" in capsys.readouterr().err
    )


@pytest.mark.parametrize(("limit", "overfull"), [(0.501, []), (0.5, [4, 5])])
def test_disks_are_judged_by_the_limit_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float, overfull: list[int]
) -> None:
    facts = PartitionFacts("orders-1", 1, (1, 2, 3), (1, 2, 3))

    def answering(answer: object) -> Callable[..., Awaitable[object]]:
        async def answered(*_: object) -> object:
            return answer

        return answered

    monkeypatch.setattr(dry_run, "state_of", answering(ClusterState("prod")))
    monkeypatch.setattr(dry_run, "_seen", answering(replace(SEEN, partitions={ORDERS: facts}, min_isr={"orders": 1})))
    monkeypatch.setattr(dry_run, "live_model", answering(model_in(tmp_path)))
    clusters = {"prod": ClusterSettings("nowhere:1")}
    settings = Settings(LogSettings("nowhere:1"), clusters, planning=PlanningSettings(limit))
    found = dry_run.try_now(settings, [alter()]).estimate
    assert found is not None
    assert [one.broker for one in found.proposal.unmet] == overfull


def test_a_trial_says_what_would_keep_the_moves_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ClusterState("prod", kafka_cluster_id="kafka-1")
    settings = Settings(LogSettings("nowhere:1"), {"prod": ClusterSettings("nowhere:1")})

    def answering(answer: object) -> Callable[..., Awaitable[object]]:
        async def answered(*_: object) -> object:
            return answer

        return answered

    facts = PartitionFacts("orders-1", 1, (1, 2, 3), (1, 2, 3))
    monkeypatch.setattr(dry_run, "state_of", answering(state))
    monkeypatch.setattr(dry_run, "_seen", answering(replace(SEEN, partitions={ORDERS: facts}, min_isr={"orders": 1})))
    monkeypatch.setattr(dry_run, "live_model", answering(model_in(tmp_path)))
    assert dry_run.try_now(settings, [alter()]).waiting is None
    apply(state, ClusterFrozen(cluster="prod", by="bob", reason="release"), 0)
    try_plan(settings, [alter()], "table")
    said = "Its moves would wait now: withheld, frozen by bob (release): `drover unfreeze`"
    assert said in capsys.readouterr().err


def test_a_trial_of_a_plan_that_breaks_a_rule_says_so_and_ends_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = model_in(tmp_path)
    model = replace(model, partitions=tuple(replace(partition, isr=(1,)) for partition in model.partitions))

    def tried(target: tuple[int, ...]) -> Tried:
        decision = Decision(accepted=(ORDERS,))
        return Tried((decision,), cost(alter(), {ORDERS: target}, model))

    settings = Settings(LogSettings("nowhere:1"), {"prod": ClusterSettings("nowhere:1")})
    monkeypatch.setattr(dry_run, "try_now", lambda *_: tried((4, 2, 3)))
    with pytest.raises(Failure, match="the plan breaks 1 rule, named above") as refused:
        dry_run.try_plan(settings, [alter()], "json")
    assert refused.value.exit_code == ExitCode.GUARDED
    document = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in document["estimate"]["problems"]] == ["out-of-sync"]
    monkeypatch.setattr(dry_run, "try_now", lambda *_: tried((1, 2)))
    dry_run.try_plan(settings, [alter()], "table")
    assert (
        "Problem: the replication factor changes: 1 partition from 3 to 2 (replication-factor)"
        in capsys.readouterr().err
    )


def test_nothing_is_said_of_a_plan_that_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(cost(alter(), {}, model_in(tmp_path)))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


class Held:
    """A plan for the cluster in one file, submitted to the cluster in the same file as it is later."""

    def __init__(self, directory: Path) -> None:
        self.model = directory / "model.json"
        self.plan = directory / "plan.json"
        self.config = directory / "drover.toml"
        self.config.write_text(CONFIG)
        write_model(self.model, *models.ORDERS)
        self.make()

    def make(self) -> None:
        """Make the plan for the cluster as it is now."""
        planned = self._run("plan", "drain", "3", "--model", str(self.model), "--out", str(self.plan), "-o", "json")
        self.hash = json.loads(planned.stdout)["hash"]

    def submit(self, *arguments: str) -> Result:
        """Ask whether it would be submitted now; --dry-run looks at the cluster and sends nothing."""
        options = ("--reason", "x", "--dry-run", "--config", str(self.config))
        return self._run("alter", str(self.plan), *options, *(arguments or ("--plan-hash", self.hash)))

    def _run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, prog_name="drover")


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held(tmp_path)
    monkeypatch.setattr(
        "drover.cli.dry_run.read_model", lambda *_, **__: parse_model(made.model.read_text(), "model.json")
    )
    return made


def orders(number: int, *replicas: int) -> tuple[dict[str, Any], ...]:
    """The partitions of the cluster, one with other replicas."""
    return tuple(partition("orders", number, *replicas) if one["partition"] == number else one for one in models.ORDERS)


def test_an_unchanged_cluster_takes_it_with_every_present_list_asserted(held: Held) -> None:
    shown = held.submit()
    assert shown.exit_code == ExitCode.DONE, shown.output
    assert "Would send 6 partitions" in shown.stderr
    assert ["orders:0", "1,", "2,", "6", "1,", "2,", "3"] in [line.split() for line in shown.stdout.splitlines()]


def test_sizes_leaders_and_isrs_may_change(held: Held) -> None:
    changed = tuple({**one, "size_bytes": 7, "leader": 2, "isr": [2]} for one in models.ORDERS)
    write_model(held.model, *changed)
    assert held.submit().exit_code == ExitCode.DONE


@pytest.mark.parametrize("replicas", [(4, 2, 3), (2, 1, 3), (1, 2)], ids=["moved", "reordered", "shrunk"])
def test_a_list_that_has_changed_is_named(held: Held, replicas: tuple[int, ...]) -> None:
    write_model(held.model, *orders(0, *replicas))
    shown = held.submit()
    assert f"orders:0 was on [1, 2, 3], and now is on {list(replicas)}" in shown.stderr
    assert "the cluster has changed since" in shown.stderr
    assert "nothing was submitted" in shown.stderr
    assert (shown.exit_code, shown.stdout) == (ExitCode.GUARDED, "")


def test_a_broker_that_has_died_or_gone_to_another_rack_is_named(held: Held) -> None:
    write_model(held.model, *models.ORDERS, brokers=(*BROKERS[:5], broker(6, "c", alive=False)))
    shown = held.submit()
    assert "broker 6 is not alive any more" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED
    write_model(held.model, *models.ORDERS, brokers=(*BROKERS[:5], broker(6, "d")))
    assert "broker 6 was in rack c, and now is in rack d" in held.submit().stderr
    write_model(held.model, *models.ORDERS, brokers=(*BROKERS[:5], broker(6, None)))
    assert "broker 6 was in rack c, and now is in no rack" in held.submit().stderr


def test_a_topic_that_has_gone_is_named(held: Held) -> None:
    write_model(held.model, *models.ORDERS[1:])
    shown = held.submit()
    assert "orders:0 was on [1, 2, 3], and now is on no broker" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_another_cluster_under_the_name_is_named(held: Held) -> None:
    write_model(held.model, *models.ORDERS, cluster_id="kafka-2")
    shown = held.submit()
    assert "the plan was made for Kafka cluster kafka-1, and this is kafka-2" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_topic_that_was_made_anew_is_named_once(held: Held) -> None:
    write_model(held.model, *({**one, "topic_id": "orders-2"} for one in models.ORDERS))
    shown = held.submit()
    assert shown.stderr.count("topic orders was deleted and made anew") == 1
    assert shown.exit_code == ExitCode.GUARDED


def test_a_plan_of_a_model_without_ids_of_topics_is_told_what_it_lacks(held: Held) -> None:
    write_model(held.model, *({**one, "topic_id": ""} for one in models.ORDERS))
    held.make()
    assert held.submit().exit_code == ExitCode.DONE
    write_model(held.model, *models.ORDERS)
    shown = held.submit()
    assert shown.stderr.count("the id of topic orders was unknown, and now is orders-1") == 1
    assert shown.exit_code == ExitCode.GUARDED


def test_a_replica_of_another_topic_that_came_onto_the_brokers_is_noticed(held: Held) -> None:
    write_model(held.model, *models.ORDERS, partition("unmanaged", 0, 3, 4))
    shown = held.submit()
    assert "broker 3 had 6 replicas, and now has 7" in shown.stderr
    assert "broker 4" not in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_file_that_was_edited_is_another_plan(held: Held) -> None:
    document = json.loads(held.plan.read_text())
    document["partitions"][0]["replicas"] = [5, 2, 1]
    held.plan.write_text(json.dumps(document))
    shown = held.submit()
    assert f"is not the plan {held.hash}: its hash is " in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_file_without_its_proposal_is_held_to_the_hash_but_cannot_tell_what_changed(held: Held) -> None:
    document = json.loads(held.plan.read_text())
    del document["proposal"]
    held.plan.write_text(json.dumps(document))
    assert held.submit().exit_code == ExitCode.DONE
    write_model(held.model, *orders(0, 4, 2, 3))
    shown = held.submit()
    assert "the file does not record the cluster that it was made for" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_hash_needs_a_plan_that_moves(held: Held) -> None:
    shown = CliRunner().invoke(cli, ["alter", "--undo", "p", "--plan-hash", "x", "--reason", "x"], prog_name="drover")
    assert "--plan-hash goes with one PLAN.json" in shown.stderr
    assert shown.exit_code == ExitCode.USAGE
    held.plan.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": null}]}')
    stops = held.submit()
    assert "stops the move of t:0" in stops.stderr
    assert stops.exit_code == ExitCode.USAGE
