"""`drover plan` on clusters in files: what a proposal tells, its exit code and its file, and what `--apply` submits."""

import json
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.model import parse_model
from drover.cli.plan import stopping
from drover.cli.plan_file import parse_plan
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from drover.planner.assess import digest_of
from tests.cli.models import BROKERS, GIGABYTE, OFFSETS, ORDERS, broker, partition, write_model

GOALS = (
    ("drain", "3"),
    ("add", "4", "5", "6"),
    ("replace", "3", "--with", "6"),
    ("balance",),
    ("set-rf", "orders", "2"),
    ("evacuate", "c"),
    ("spread",),
    ("leaders",),
)
CRUISE_CONTROL = {
    "summary": {"numReplicaMovements": 1},
    "goalSummary": [],
    "proposals": [
        {
            "topicPartition": {"hash": 1, "topic": "orders", "partition": 0},
            "oldLeader": 1,
            "oldReplicas": [1, 2, 3],
            "newReplicas": [4, 2, 3],
        }
    ],
    "version": 1,
}
CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="drover")


def propose(model: str, *arguments: str) -> Result:
    return run("plan", *arguments, "--model", model)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_model(tmp_path / "model.json")


@pytest.fixture
def crowded(tmp_path: Path) -> str:
    """Only broker 6 could take what broker 3 has, and its disk is full."""
    full = broker(6, "c", log_dirs=[{"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 1}])
    return write_model(tmp_path / "crowded.json", *ORDERS, brokers=(*BROKERS[:3], full))


def test_a_drain_tells_everything_before_anything_is_done(model: str) -> None:
    shown = propose(model, "drain", "3", "--throttle", "10MB/s", "--include-internal")
    assert shown.exit_code == ExitCode.DONE
    assert shown.stdout.startswith("drain 3: 7 partitions to change, 7 copies of 7.0 GB together")
    assert "leaves a broker that is drained" in shown.stdout
    lines = [line.split() for line in shown.stdout.splitlines()]
    of_six = next(line for line in lines if line[:2] == ["6", "c"])
    assert of_six[2:5] == ["0", "→", "7"]
    assert "peak extra" in shown.stdout
    assert "It takes at least 11m40s at 10.0 MB/s per broker" in shown.stdout
    assert "Hash: " in shown.stdout


@pytest.mark.parametrize("goal", GOALS, ids=" ".join)
def test_every_goal_is_planned_and_the_same_figures_are_in_the_document(model: str, goal: tuple[str, ...]) -> None:
    shown = propose(model, *goal, "--include-internal", "-o", "json")
    assert shown.exit_code == ExitCode.DONE, shown.output
    document = json.loads(shown.stdout)
    assert document["asked"] == " ".join(word for word in goal).replace("--with", "with")
    assert document["totals"]["partitions"] == len(document["moves"])
    assert document["totals"]["copies"] == sum(len(move["adding"]) for move in document["moves"])
    assert sum(each["bytes_in"] for each in document["brokers"]) == document["totals"]["bytes"]
    assert document["rack_violations"] == {"before": 0, "after": 0, "remaining": []}
    table = propose(model, *goal, "--include-internal").stdout
    assert table.startswith(f"{document['asked']}: ")
    assert not document["moves"] or f"Hash: {document['hash']}" in table


def test_json_lines_are_the_moves(model: str) -> None:
    moves = [json.loads(line) for line in propose(model, "drain", "3", "-o", "jsonl").stdout.splitlines()]
    assert len(moves) == 6
    assert {"topic", "partition", "before", "after", "bytes", "reasons"} <= moves[0].keys()


def test_a_large_proposal_shows_its_first_moves_and_says_where_the_others_are(tmp_path: Path) -> None:
    model = write_model(tmp_path / "large.json", *(partition("t", number, 3) for number in range(50)))
    shown = propose(model, "drain", "3")
    assert shown.stdout.count("leaves a broker") == 20
    assert "... and 30 more: -o jsonl prints all, --out FILE writes them." in shown.stdout


def test_of_many_brokers_those_are_shown_for_which_it_means_most(tmp_path: Path) -> None:
    brokers = tuple(broker(number, "a") for number in range(1, 61))
    moved = (partition("t", number, 60, size_bytes=(number + 1) * GIGABYTE) for number in range(59))
    shown = propose(write_model(tmp_path / "wide.json", *moved, brokers=brokers), "drain", "60")
    assert "... and 20 brokers that change less: -o json prints all." in shown.stdout
    rows = [line.split() for line in shown.stdout.splitlines() if line[:2].strip().isdecimal()]
    assert len(rows) == 40
    assert rows[-1][:2] == ["60", "a"]


def test_the_file_is_the_stock_format_and_says_what_the_plan_was_made_for(model: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    shown = propose(model, "drain", "3", "--out", str(file))
    hash_ = shown.stdout.rsplit("Hash: ", 1)[1].strip()
    assert f"drover alter {file} --plan-hash {hash_} --reason WHY" in shown.stderr
    stock = json.loads(file.read_text())
    assert stock["version"] == 1
    assert {"topic", "partition", "replicas", "original_replicas"} == stock["partitions"][0].keys()
    plan = parse_plan(file.read_text(), "plan.json")
    assert plan.proposal is not None
    assert (plan.proposal.asked, plan.proposal.hash) == ("drain 3", hash_)
    lists = {(one.topic, one.partition): one.replicas or () for one in plan.targets}
    assert digest_of(plan.proposal.basis, lists) == hash_


def test_the_hint_says_what_else_it_takes_to_move_internal_topics(model: str, tmp_path: Path) -> None:
    file = str(tmp_path / "plan.json")
    shown = propose(model, "drain", "3", "--include-internal", "--out", file)
    assert " --allow-drover-topics --reason WHY" in shown.stderr
    assert " --allow-drover-topics" not in propose(model, "drain", "3", "--out", file).stderr
    assert f"The plan has no moves; {file} was not written." in propose(model, "drain", "5", "--out", file).stderr


def test_a_plan_on_standard_output_is_nothing_but_the_plan(model: str) -> None:
    shown = propose(model, "drain", "3", "--out", "-")
    assert len(parse_plan(shown.stdout, "-").targets) == 6
    assert "broker 3 keeps 1 partition" in shown.stderr
    assert shown.exit_code == ExitCode.GUARDED


def test_internal_topics_stay_unless_they_are_asked_for_and_whoever_empties_a_broker_is_told(model: str) -> None:
    told = propose(model, "drain", "3")
    assert "broker 3 keeps 1 partition: topic __consumer_offsets is internal" in told.stdout
    assert "add --include-internal to move internal topics too" in told.stdout
    assert told.exit_code == ExitCode.GUARDED
    assert propose(model, "drain", "3", "--exclude-topics", "__*").exit_code == ExitCode.DONE
    assert propose(model, "balance").exit_code == ExitCode.DONE
    assert '"__consumer_offsets"' not in propose(model, "drain", "3", "-o", "jsonl").stdout
    assert '"__consumer_offsets"' in propose(model, "drain", "3", "--include-internal", "-o", "jsonl").stdout


def test_the_factor_of_an_internal_topic_is_not_left_as_it_is_with_exit_code_0(model: str, tmp_path: Path) -> None:
    goal = ("set-rf", "__consumer_offsets", "2")
    told = propose(model, *goal)
    assert "add --include-internal to change internal topics too" in told.stdout
    assert told.exit_code == ExitCode.GUARDED
    file = tmp_path / "plan.json"
    assert propose(model, *goal, "--out", str(file)).exit_code == ExitCode.GUARDED
    assert not file.exists()
    assert propose(model, *goal, "--exclude-topics", "__*").exit_code == ExitCode.DONE
    shown = propose(model, *goal, "--include-internal", "-o", "json")
    assert [len(move["after"]) for move in json.loads(shown.stdout)["moves"]] == [2]
    assert shown.exit_code == ExitCode.DONE
    assert propose(model, "set-rf", "__consumer_offsets", "3").exit_code == ExitCode.DONE


def test_excluded_brokers_get_nothing_and_excluded_topics_stay(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.json", *(partition("t", number, 3) for number in range(3)), partition("u", 0, 3))
    moves = [
        json.loads(line)
        for line in propose(
            model, "drain", "3", "--exclude-brokers", "1,2", "--exclude-brokers", "4", "--exclude-topics", "u*", "-o",
            "jsonl",
        ).stdout.splitlines()
    ]  # fmt: skip
    assert {move["topic"] for move in moves} == {"t"}
    assert {added for move in moves for added in move["adding"]} <= {5, 6}
    told = propose(model, "drain", "3", "--exclude-topics", "u*")
    assert "broker 3 keeps 1 partition: topic u is excluded (excluded)" in told.stdout
    assert "--include-internal" not in told.stdout
    assert told.exit_code == ExitCode.DONE


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (("drain", "9"), "there is no broker 9"),
        (("add", "9"), "there is no broker 9"),
        (("replace", "1", "--with", "9"), "there is no broker 9"),
        (("evacuate", "z"), "no broker is in rack z"),
        (("set-rf", "nope", "3"), "there is no topic nope"),
        (("set-rf", "orders", "7"), "a replication factor of 7 needs as many brokers, and 6 are alive"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, tuple) else "",
)
def test_a_goal_that_makes_no_sense_here_ends_with_2_and_writes_nothing(
    model: str, tmp_path: Path, goal: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "plan.json"
    shown = propose(model, *goal, "--out", str(file))
    assert said in shown.stdout
    assert shown.exit_code == ExitCode.USAGE
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("drain",), "Missing argument 'BROKER...'"),
        (("drain", "three"), "'three' is not a list of broker ids: write 3,4"),
        (("replace", "3"), "Missing option '--with'"),
        (("set-rf", "orders", "0"), "0 is not in the range"),
        (("balance", "--max-bytes", "much"), "'much' is not a size"),
        (("balance", "--disk-limit", "2"), "'2' is not a share of a disk"),
        (("balance", "--disk-limit", "101%"), "up to 100%"),
        (("drain", "3", "--exclude-brokers", "a"), "'a' is not a list of broker ids"),
        (("drain", "3", "--exclude-brokers", "77"), "there is no broker 77 to exclude"),
        (("drain", "3", "--exclude-topics", "x*"), "no topic of the cluster is called x*"),
        (("drain", "3", "--exclude-topics", "a,,b"), "has an empty name"),
        (("drain", "3", "--apply", "--reason", "x"), "--apply needs a live cluster, and --model is a file"),
        (("drain", "3", "--load", "5s"), "choose one"),
        (("balance", "--band", "5%"), "write network-in=5%, or all=10%,12% for above and below"),
        (("balance", "--band", "memory=5%"), "memory is no load"),
        (("balance", "--band", "disk=5%,100%"), "give less than 100% below"),
        (("balance", "--limit", "leaders=50%"), "leaders is only compared with the mean"),
        (("balance", "--limit", "70%"), "write network-in=70%"),
        (("balance", "--explain", "rack", "3"), "'rack' is not 'broker'"),
        (("nonsense",), "No such command 'nonsense'"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, tuple) else "",
)
def test_wrong_usage_ends_with_2_and_prints_no_plan(model: str, arguments: tuple[str, ...], said: str) -> None:
    shown = propose(model, *arguments)
    assert said in shown.stderr
    assert shown.exit_code == ExitCode.USAGE
    assert shown.stdout == ""


def test_to_apply_needs_a_reason() -> None:
    shown = run("plan", "drain", "3", "--apply")
    assert "--apply needs --reason" in shown.stderr
    assert shown.exit_code == ExitCode.USAGE


def test_a_full_disk_is_named_and_ends_with_4(crowded: str) -> None:
    shown = propose(crowded, "drain", "3", "-o", "json")
    assert shown.exit_code == ExitCode.GUARDED
    unmet = json.loads(shown.stdout)["unmet"]
    assert {one["code"] for one in unmet} >= {"no-room"}
    told = propose(crowded, "drain", "3")
    assert "Not met:" in told.stdout
    assert told.exit_code == ExitCode.GUARDED
    roomier = propose(write_model(Path(crowded), *ORDERS), "drain", "3")
    assert roomier.exit_code == ExitCode.DONE


def test_an_offline_partition_is_named_and_ends_with_4(tmp_path: Path) -> None:
    brokers = (*BROKERS[:2], broker(3, "c", alive=False), *BROKERS[3:])
    offline = partition("t", 0, 3, leader=None, isr=[])
    model = write_model(tmp_path / "offline.json", offline, partition("t", 1, 3, 1), brokers=brokers)
    shown = propose(model, "drain", "3", "-o", "json")
    document = json.loads(shown.stdout)
    assert [(one["code"], one["topic"], one["partition"]) for one in document["unmet"]] == [("offline", "t", 0)]
    assert [(move["topic"], move["partition"]) for move in document["moves"]] == [("t", 1)]
    assert shown.exit_code == ExitCode.GUARDED


def test_partitions_in_fewer_racks_than_possible_are_named_until_they_are_spread(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.json", partition("t", 0, 1, 4), partition("t", 1, 1, 2))
    left = json.loads(propose(model, "drain", "6", "-o", "json").stdout)["rack_violations"]
    named = {"topic": "t", "partition": 0, "replicas": [1, 4], "racks": ["a", "a"]}
    assert left == {"before": 1, "after": 1, "remaining": [named]}
    spread = propose(model, "spread")
    assert "Partitions in fewer racks than possible: 1 now, 0 afterwards." in spread.stdout


# -- plan check


def plan_of(*moves: tuple[int, tuple[int, ...]]) -> dict[str, Any]:
    entries = [{"topic": "orders", "partition": number, "replicas": replicas} for number, replicas in moves]
    return {"version": 1, "partitions": entries}


def check(model: str, text: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["plan", "check", "-", "--model", model, *arguments], input=text, prog_name="drover")


GENERATED = (
    f"Current partition replica assignment\n{json.dumps(plan_of((0, (1, 2, 3))))}\n\n"
    f"Proposed partition reassignment configuration\n{json.dumps(plan_of((0, (4, 2, 3))))}\n"
)


@pytest.mark.parametrize(
    "text",
    [json.dumps(plan_of((0, (4, 2, 3)))), GENERATED, json.dumps(CRUISE_CONTROL)],
    ids=["topicmappr", "generate", "cruise-control"],
)
def test_plans_of_other_tools_are_judged_by_the_same_figures(model: str, text: str) -> None:
    shown = check(model, text, "-o", "json", "--throttle", "1MB/s")
    assert shown.exit_code == ExitCode.DONE, shown.output
    document = json.loads(shown.stdout)
    (move,) = document["moves"]
    assert (move["before"], move["after"], move["bytes"]) == ([1, 2, 3], [4, 2, 3], GIGABYTE)
    assert document["totals"]["least_time_s"] == 1000
    assert check(model, text).stdout.startswith("check -: 1 partition to change, 1 copy of 1.0 GB together")


@pytest.mark.parametrize(
    ("replicas", "code"),
    [((1, 2, 9), "unknown-broker"), ((1, 1, 2), "wrong-list"), ((1, 2, 4), "rack-spread")],
)
def test_what_a_plan_breaks_is_named_and_ends_with_4(model: str, replicas: tuple[int, ...], code: str) -> None:
    shown = check(model, json.dumps(plan_of((0, replicas))), "-o", "json")
    assert shown.exit_code == ExitCode.GUARDED
    assert code in {one["code"] for one in json.loads(shown.stdout)["unmet"]}


def test_a_copy_to_a_broker_that_shall_get_nothing_is_named(model: str) -> None:
    shown = check(model, json.dumps(plan_of((0, (4, 2, 3)))), "--exclude-brokers", "4")
    assert "orders:0: broker 4 is excluded (excluded)" in shown.stdout
    assert shown.exit_code == ExitCode.GUARDED


def test_a_plan_for_something_that_is_not_there_is_named(model: str) -> None:
    shown = check(model, json.dumps(plan_of((77, (1, 2, 3)))))
    assert "orders:77 does not exist (unknown-partition)" in shown.stdout
    assert shown.exit_code == ExitCode.GUARDED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oops", "- is not JSON"),
        ('{"partitions": []}', "names no partition"),
        ('{"proposals": [{"topicPartition": {}}]}', "the field topic is missing"),
        (json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": None}]}), "stops the move of t:0"),
    ],
)
def test_what_is_not_a_plan_is_refused_with_2(model: str, text: str, said: str) -> None:
    shown = check(model, text)
    assert said in shown.stderr
    assert shown.exit_code == ExitCode.USAGE


def test_a_plan_that_was_checked_can_be_held_to_its_hash(model: str, tmp_path: Path) -> None:
    file = tmp_path / "held.json"
    shown = check(model, json.dumps(CRUISE_CONTROL), "--out", str(file))
    assert shown.exit_code == ExitCode.DONE
    plan = parse_plan(file.read_text(), "held.json")
    assert plan.proposal is not None
    assert plan.targets[0].original_replicas == (1, 2, 3)
    assert f"Hash: {plan.proposal.hash}" in shown.stdout


def test_the_factor_is_set_for_patterns_and_lists_of_topics(tmp_path: Path) -> None:
    names = ("logs-a", "logs-b", "orders", "logsx")
    internal = partition("__state", 0, 1, 2, internal=True)
    model = write_model(tmp_path / "m.json", *(partition(name, 0, 1, 2) for name in names), internal)

    def raised(*arguments: str) -> set[str]:
        shown = propose(model, "set-rf", *arguments, "-o", "json")
        assert shown.exit_code == ExitCode.DONE, shown.stderr
        moves = json.loads(shown.stdout)["moves"]
        assert {len(move["after"]) for move in moves} == {3}
        return {move["topic"] for move in moves}

    assert raised("logs-*", "3") == {"logs-a", "logs-b"}
    assert raised("logs-?", "orders", "3") == {"logs-a", "logs-b", "orders"}
    assert raised("orders,logsx", "logs-a", "3") == {"orders", "logsx", "logs-a"}
    assert raised("*", "3", "--exclude-topics", "logs*") == {"orders"}
    everything = propose(model, "set-rf", "*", "3")
    assert everything.exit_code == ExitCode.DONE, "a pattern names no internal topic"
    assert "__state:0 keeps 2 replicas" in everything.stdout
    assert raised("*", "3", "--include-internal") == {*names, "__state"}
    asked = json.loads(propose(model, "set-rf", "logs-*", "orders", "3", "-o", "json").stdout)["asked"]
    assert asked == "set-rf logs-* orders 3"


def test_a_topic_or_a_pattern_that_means_nothing_changes_nothing(model: str) -> None:
    for arguments, said in (
        (("nope*", "3"), "no topic of the cluster is called nope*"),
        (("orders", "nope", "3"), "there is no topic nope"),
        (("orders",), "Missing argument 'TOPIC...'"),
    ):
        shown = propose(model, "set-rf", *arguments)
        assert said in shown.output
        assert shown.exit_code == ExitCode.USAGE


def test_what_a_plan_of_others_cannot_end_or_gives_up_is_said_with_4_and_a_changed_factor_with_0(
    tmp_path: Path,
) -> None:
    model = write_model(
        tmp_path / "model.json",
        partition("t", 0, 1, 2, 3, leader=None, isr=[1]),
        partition("t", 1, 1, 2, 3, moving=True, target=[1, 2, 6]),
        partition("t", 2, 1, 2, 3, isr=[1]),
        partition("t", 3, 1, 2, 3),
    )

    def judged(number: int, *replicas: int) -> tuple[int, list[str]]:
        text = json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": number, "replicas": replicas}]})
        done = check(model, text, "-o", "json")
        return done.exit_code, [one["code"] for one in json.loads(done.stdout)["unmet"]]

    assert judged(0, 4, 2, 3) == (ExitCode.GUARDED, ["offline"])
    assert judged(1, 4, 2, 3) == (ExitCode.GUARDED, ["moving"])
    assert judged(2, 4, 2, 3) == (ExitCode.GUARDED, ["out-of-sync"])
    assert judged(3, 1, 2) == (ExitCode.DONE, ["replication-factor"])
    assert judged(3, 4, 2, 3) == (ExitCode.DONE, [])


def test_a_plan_beside_one_that_is_open_names_it(tmp_path: Path) -> None:
    brokers = (*BROKERS[:5], broker(6, "c", emptied_by="plan friday (ann)"))
    model = write_model(tmp_path / "model.json", *ORDERS, brokers=brokers)
    shown = propose(model, "drain", "1")
    assert "broker 6 gets nothing: plan friday (ann) empties it (left-out)" in shown.stdout
    assert shown.exit_code == ExitCode.DONE


FULL = broker(6, "c", log_dirs=[{"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 1}])


class Live:
    """A live cluster that is a file, and whatever was submitted to it."""

    def __init__(self, directory: Path) -> None:
        self.model = directory / "model.json"
        self.config = directory / "drover.toml"
        self.config.write_text(CONFIG)
        self.submitted: list[Alter] = []
        self.additions: dict[str, Any] = {}
        write_model(self.model)

    def submit(self, _connection: object, commands: Sequence[Alter], _request: object, **options: Any) -> None:
        self.submitted += commands
        self.additions = dict(options["additions"])

    def apply(self, *goal: str) -> Result:
        arguments = ("plan", *goal, "--apply", "--reason", "why", "--config", str(self.config))
        return CliRunner().invoke(cli, arguments, prog_name="drover")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    made = Live(tmp_path)
    monkeypatch.setattr("drover.cli.plan.submit", made.submit)
    monkeypatch.setattr(
        "drover.cli.plan.read_model", lambda *_, **__: parse_model(made.model.read_text(), "model.json")
    )
    return made


def test_a_proposal_is_printed_and_submitted_as_a_plan_with_what_it_was_made_for(live: Live) -> None:
    done = live.apply(
        "drain", "3", "--include-internal", "--plan", "friday", "--throttle", "5MB/s", "--queue", "--by", "ann"
    )
    assert done.exit_code == ExitCode.DONE, done.output
    assert done.stdout.startswith("drain 3: 7 partitions to change")
    (command,) = live.submitted
    assert (command.plan, command.by, command.reason, command.queue) == ("friday", "ann", "why", True)
    assert command.throttle_bytes_per_second == 5_000_000
    assert command.allow_drover_topics
    lists = {one.key: (one.original_replicas, one.replicas) for one in command.partitions}
    assert lists[TopicPartition("orders", 0)] == ((1, 2, 3), (1, 2, 6))


@pytest.mark.parametrize(
    ("goal", "empties", "fills"),
    [
        (("drain", "2", "3"), (2, 3), ()),
        (("evacuate", "c"), (3, 6), ()),
        (("add", "4"), (), (4,)),
        (("replace", "3", "--with", "6"), (3,), (6,)),
        (("balance",), (), ()),
    ],
)
def test_a_plan_says_which_brokers_it_empties_and_fills_also_by_way_of_a_file(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: tuple[str, ...], empties: tuple[int, ...],
    fills: tuple[int, ...],
) -> None:  # fmt: skip
    write_model(live.model, *ORDERS)
    assert live.apply(*goal).exit_code == ExitCode.DONE
    file = tmp_path / "plan.json"
    written = CliRunner().invoke(cli, ("plan", *goal, "--config", str(live.config), "--out", str(file)))
    assert written.exit_code == ExitCode.DONE, written.output
    monkeypatch.setattr(
        "drover.cli.alter.submit", lambda _connection, commands, _request, **_options: live.submitted.extend(commands)
    )
    shown = tmp_path / "shown.json"
    shown.write_text(CliRunner().invoke(cli, ("plan", *goal, "--config", str(live.config), "-o", "json")).stdout)
    assert (
        CliRunner().invoke(cli, ("alter", str(shown), "--reason", "why", "--config", str(live.config))).exit_code == 0
    )
    allowed = ("alter", str(file), "--reason", "why", "--config", str(live.config), "--allow-emptied-brokers")
    assert CliRunner().invoke(cli, allowed).exit_code == ExitCode.DONE
    assert [(one.empties, one.fills) for one in live.submitted] == [(empties, fills)] * 3
    assert [one.allow_emptied_brokers for one in live.submitted] == [False, False, True]


def test_a_plan_of_others_that_was_checked_says_which_brokers_it_drains(live: Live, tmp_path: Path) -> None:
    write_model(live.model, *ORDERS[:2])
    given, held = tmp_path / "given.json", tmp_path / "held.json"
    lists = [{"topic": "orders", "partition": number, "replicas": [1, 2, 6]} for number in range(2)]
    given.write_text(json.dumps({"version": 1, "partitions": lists}))
    done = CliRunner().invoke(cli, ("plan", "check", str(given), "--model", str(live.model), "--out", str(held)))
    assert done.exit_code == ExitCode.DONE, done.output
    assert json.loads(held.read_text())["proposal"]["empties"] == [3]


def test_programs_get_the_proposal_and_the_outcomes_in_one_document(live: Live) -> None:
    done = live.apply("drain", "3", "--include-internal", "-o", "json")
    assert done.stdout == ""
    assert live.additions["proposal"]["asked"] == "drain 3"
    assert json.dumps(live.additions, default=str)


def test_what_is_not_met_is_submitted_only_as_partial(live: Live) -> None:
    write_model(live.model, *ORDERS[:1], OFFSETS)
    refused = live.apply("drain", "3")
    assert (
        "nothing was submitted, because the plan does not meet the whole goal: --partial submits it anyway"
        in refused.stderr
    )
    assert (refused.exit_code, live.submitted) == (ExitCode.GUARDED, [])
    assert live.apply("drain", "3", "--partial").exit_code == ExitCode.DONE
    (command,) = live.submitted
    assert [one.topic for one in command.partitions] == ["orders"]
    assert not command.allow_drover_topics


def test_where_nothing_can_move_nothing_is_submitted(live: Live) -> None:
    write_model(live.model, *ORDERS, brokers=(*BROKERS[:3], FULL))
    full = live.apply("drain", "3", "--partial")
    assert full.stdout.startswith("drain 3: nothing can be moved.")
    assert "no-room" in full.stdout
    assert full.exit_code == ExitCode.GUARDED
    assert live.apply("drain", "9").exit_code == ExitCode.USAGE
    write_model(live.model, *ORDERS)
    assert live.apply("drain", "5").stdout == "drain 5: nothing has to move.\n"
    assert live.submitted == []


def test_the_first_interrupt_ends_the_search_and_the_second_one_the_command() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping(1000) as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_search_ends_when_its_time_is_over() -> None:
    with stopping(3600) as patient, stopping(0) as hasty:
        assert not patient()
        assert hasty()


def test_what_was_not_planned_in_time_is_named_and_ends_with_4(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.json", *ORDERS)
    arguments = ["plan", "drain", "3", "--model", model, "--time-limit", "0s", "-o", "json"]
    shown = CliRunner().invoke(cli, arguments, prog_name="drover")
    document = json.loads(shown.stdout)
    assert document["interrupted"]
    assert {one["code"] for one in document["unmet"]} == {"interrupted"}
    assert shown.exit_code == ExitCode.GUARDED


def test_the_way_to_submit_a_plan_can_be_pasted_whatever_the_file_is_called(tmp_path: Path) -> None:
    model, file = tmp_path / "model.json", tmp_path / "friday's plan.json"
    write_model(model)
    done = CliRunner().invoke(cli, ["plan", "drain", "3", "--model", str(model), "--out", str(file)])
    (told,) = (line for line in done.stderr.splitlines() if "Submit it with: " in line)
    words = shlex.split(told.partition("Submit it with: ")[2])
    assert words[:3] == ["drover", "alter", str(file)]


def test_a_cordoned_broker_gets_nothing_and_is_named(tmp_path: Path) -> None:
    disk = {"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 500 * GIGABYTE, "cordoned": True}
    brokers = (*BROKERS[:3], broker(4, "a"), broker(5, "b"), broker(6, "c", log_dirs=[disk]))
    model = write_model(tmp_path / "model.json", *ORDERS, brokers=brokers)
    shown = propose(model, "drain", "3", "-o", "json")
    document = json.loads(shown.stdout)
    assert shown.exit_code == ExitCode.DONE
    assert [len(move["adding"]) for move in document["moves"]] == [1] * 6
    assert all(move["adding"] != [6] for move in document["moves"])
    assert [(one["code"], one["broker"]) for one in document["log_directories"]] == [("cordoned", 6)]
    said = "Broker 6 is cordoned, with all of its log directories (cordoned.log.dirs): it receives no replicas."
    assert said in propose(model, "drain", "3").stdout
    assert said in propose(model, "drain", "3", "--out", "-").stderr
    refused = propose(model, "add", "6")
    assert "broker 6 is cordoned: cordoned.log.dirs names all of its log directories" in refused.stdout
    assert refused.exit_code == ExitCode.USAGE


def test_a_band_that_cannot_be_met_ends_with_4(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model.json", *(partition("t", number, 1 + number % 2) for number in range(5)))
    assert propose(model, "balance", "--exclude-brokers", "3,4,5,6").exit_code == ExitCode.DONE
    shown = propose(model, "balance", "--exclude-brokers", "3,4,5,6", "--band", "disk=1%")
    assert shown.exit_code == ExitCode.GUARDED
    assert "broker 1 stays overloaded, in shares of what is fair: disk 1.20 (overloaded)" in shown.stdout


def loaded_model(file: Path) -> str:
    """Two brokers with rates and capacities, one of which has everything."""
    able = {"network_in_bytes_per_s": 1e6, "network_out_bytes_per_s": 1e6, "cores": 4}
    rates = {"write_bytes_per_s": 2e5, "read_bytes_per_s": 1e5}
    brokers = (broker(1, "a", **able), broker(2, "b", **able))
    return write_model(file, *(partition("t", number, 1, **rates) for number in range(5)), brokers=brokers)


def test_an_explanation_shows_where_a_broker_stands_and_what_stands_in_the_way(tmp_path: Path) -> None:
    model = loaded_model(tmp_path / "model.json")
    shown = propose(model, "balance", "--exclude-topics", "t", "--explain", "broker", "1")
    assert shown.exit_code == ExitCode.GUARDED
    assert "Broker 1, in shares of what is fair for it:" in shown.stdout
    assert "Of 5 replicas that no plan may change:\n  5 topic t is excluded" in shown.stdout
    document = json.loads(propose(model, "balance", "--explain", "broker", "2", "-o", "json").stdout)["explained"]
    assert {each["load"] for each in document["standings"]} >= {"disk", "network-in", "leaders"}
    none = propose(model, "drain", "1", "--explain", "broker", "1")
    assert "Broker 1 has no fair share, and gets nothing: broker 1 is being emptied." in none.stdout
    wrong = propose(model, "balance", "--explain", "broker", "7")
    assert (wrong.exit_code, "there is no broker 7; there are 1, 2" in wrong.stderr) == (2, True)


def test_a_plan_of_another_tool_is_judged_by_load_and_by_every_limit(tmp_path: Path) -> None:
    model, plan = loaded_model(tmp_path / "model.json"), tmp_path / "plan.json"
    lists = [{"topic": "t", "partition": number, "replicas": [2]} for number in range(5)]
    plan.write_text(json.dumps({"version": 1, "partitions": lists}))
    shown = run("plan", "check", str(plan), "--model", model)
    assert shown.exit_code == ExitCode.GUARDED
    assert "of the fair share" in shown.stdout
    assert "broker 2 would bear 100% of what it can bear of network-in, and the limit is 80%" in shown.stdout
    assert run("plan", "check", str(plan), "--model", model, "--limit", "network-in=100%").exit_code == ExitCode.DONE
