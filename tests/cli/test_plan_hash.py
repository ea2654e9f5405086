"""`drover alter --plan-hash` holds the cluster to what the proposal was made for, and says what has changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.model_file import parse_model
from tests.cli.models import BROKERS, ORDERS, broker, partition, write_model

CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'


class Held:
    """A plan for the cluster in one file, submitted to the cluster in the same file as it is later."""

    def __init__(self, directory: Path) -> None:
        self.model = directory / "model.json"
        self.plan = directory / "plan.json"
        self.config = directory / "drover.toml"
        self.config.write_text(CONFIG)
        write_model(self.model, *ORDERS)
        self.make()

    def make(self) -> None:
        """Make the plan for the cluster as it is now."""
        planned = self._run("plan", "drain", "3", "--model", str(self.model), "--to", str(self.plan), "-o", "json")
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
        "drover.cli.plan_hash.read_model", lambda *_, **__: parse_model(made.model.read_text(), "model.json")
    )
    return made


def orders(number: int, *replicas: int) -> tuple[dict[str, Any], ...]:
    """The partitions of the cluster, one with other replicas."""
    return tuple(partition("orders", number, *replicas) if one["partition"] == number else one for one in ORDERS)


def test_an_unchanged_cluster_takes_it_with_every_present_list_asserted(held: Held) -> None:
    shown = held.submit()
    assert shown.exit_code == ExitCode.DONE, shown.output
    assert "Would send 6 partitions" in shown.stderr
    assert ["orders:0", "1,", "2,", "6", "1,", "2,", "3"] in [line.split() for line in shown.stdout.splitlines()]


def test_sizes_leaders_and_isrs_may_change(held: Held) -> None:
    changed = tuple({**one, "size_bytes": 7, "leader": 2, "isr": [2]} for one in ORDERS)
    write_model(held.model, *changed)
    assert held.submit().exit_code == ExitCode.DONE


@pytest.mark.parametrize("replicas", [(4, 2, 3), (2, 1, 3), (1, 2)], ids=["moved", "reordered", "shrunk"])
def test_a_list_that_has_changed_is_named(held: Held, replicas: tuple[int, ...]) -> None:
    write_model(held.model, *orders(0, *replicas))
    shown = held.submit()
    assert f"orders:0 was on [1, 2, 3], and now is on {list(replicas)}" in shown.stderr
    assert "the cluster is not what" in shown.stderr
    assert "nothing was submitted" in shown.stderr
    assert (shown.exit_code, shown.stdout) == (ExitCode.GUARDED, "")


def test_a_broker_that_has_died_or_gone_to_another_rack_is_named(held: Held) -> None:
    write_model(held.model, *ORDERS, brokers=(*BROKERS[:5], broker(6, "c", alive=False)))
    shown = held.submit()
    assert "broker 6 is not alive any more" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED
    write_model(held.model, *ORDERS, brokers=(*BROKERS[:5], broker(6, "d")))
    assert "broker 6 was in rack c, and now is in rack d" in held.submit().stderr
    write_model(held.model, *ORDERS, brokers=(*BROKERS[:5], broker(6, None)))
    assert "broker 6 was in rack c, and now is in no rack" in held.submit().stderr


def test_a_topic_that_has_gone_is_named(held: Held) -> None:
    write_model(held.model, *ORDERS[1:])
    shown = held.submit()
    assert "orders:0 was on [1, 2, 3], and now is on no broker" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_another_cluster_under_the_name_is_named(held: Held) -> None:
    write_model(held.model, *ORDERS, cluster_id="kafka-2")
    shown = held.submit()
    assert "the plan was made for Kafka cluster kafka-1, and this is kafka-2" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_topic_that_was_made_anew_is_named_once(held: Held) -> None:
    write_model(held.model, *({**one, "topic_id": "orders-2"} for one in ORDERS))
    shown = held.submit()
    assert shown.stderr.count("topic orders was deleted and made anew") == 1
    assert shown.exit_code == ExitCode.GUARDED


def test_a_plan_of_a_model_without_ids_of_topics_is_told_what_it_lacks(held: Held) -> None:
    write_model(held.model, *({**one, "topic_id": ""} for one in ORDERS))
    held.make()
    assert held.submit().exit_code == ExitCode.DONE
    write_model(held.model, *ORDERS)
    shown = held.submit()
    assert shown.stderr.count("the id of topic orders was unknown, and now is orders-1") == 1
    assert shown.exit_code == ExitCode.GUARDED


def test_a_replica_of_another_topic_that_came_onto_the_brokers_is_noticed(held: Held) -> None:
    write_model(held.model, *ORDERS, partition("foreign", 0, 3, 4))
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
    assert "the file does not tell what the cluster was like" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_a_hash_needs_a_plan_that_moves(held: Held) -> None:
    shown = CliRunner().invoke(cli, ["alter", "--undo", "p", "--plan-hash", "x", "--reason", "x"], prog_name="drover")
    assert "--plan-hash goes with one PLAN.json" in shown.stderr
    assert shown.exit_code == ExitCode.USAGE
    held.plan.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": null}]}')
    stops = held.submit()
    assert "stops the move of t:0" in stops.stderr
    assert stops.exit_code == ExitCode.USAGE
