"""Plans in files: the stock tool's format and others that people give, and how large plans are split."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.plan_file import parse_plan
from drover.client.commands import split
from drover.errors import ConfigurationError
from drover.events.bounds import MAX_PARTITIONS
from drover.events.codec import MAX_COMMAND_BYTES, encode_command
from drover.events.commands import Alter, PartitionTarget
from tests.cli.models import write_model

LOG_LINES = "[2026-11-28 10:15:00,123] WARN Couldn't find topic (kafka.admin)\nOpenJDK warning: {options} ignored\n"
CURRENT = "Current partition replica assignment\n"
SHOWN = {"topic": "orders", "partition": 0, "before": [1, 2, 3], "after": [4, 2, 3], "bytes": 7}
PROPOSAL = {
    "topicPartition": {"hash": 1, "partition": 0, "topic": "orders"},
    "oldLeader": 1,
    "oldReplicas": [1, 2, 3],
    "newReplicas": [4, 2, 3],
}


def whole(targets: Sequence[PartitionTarget], *, queue: bool = False) -> Alter:
    return Alter(id="a1", cluster="prod", by="me", reason="a test", partitions=tuple(targets), queue=queue)


def plan(*entries: dict[str, object], **more: object) -> str:
    return json.dumps({"version": 1, "partitions": entries, **more})


def test_the_stock_format_is_read() -> None:
    text = plan({"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]})
    assert parse_plan(text, "p.json").targets == (PartitionTarget(topic="t", partition=0, replicas=(1, 2)),)


def test_of_the_output_of_generate_the_proposed_block_is_taken() -> None:
    current = plan({"topic": "t", "partition": 0, "replicas": [1, 2]})
    proposed = plan({"topic": "t", "partition": 0, "replicas": [3, 4]})
    text = (
        f"Current partition replica assignment\n{current}\n\n"
        f"Proposed partition reassignment configuration\n{proposed}\n"
    )
    assert parse_plan(text, "p.json").targets[0].replicas == (3, 4)
    with pytest.raises(ConfigurationError, match="only the current assignment"):
        parse_plan(f"Current partition replica assignment\n{current}\n", "p.json")
    with pytest.raises(ConfigurationError, match="nothing follows the heading"):
        parse_plan(text.partition("configuration")[0] + "configuration\n", "p.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Proposed partition reassignment configuration\n{"version": ' + "9" * 5000 + "}", "is not JSON"),
        ("", "is empty"),
        ("Proposed partition reassignment configuration\n{oops", "is not JSON"),
        ("[]", "not in the stock tool's format"),
        (plan(version=2), "has version 2"),
        (plan(), "names no partition"),
        (plan({"topic": "t", "partition": 0}), "entry 1: the field replicas is missing"),
        (
            plan({"topic": "t", "partition": "0", "replicas": [1]}),
            "partitions, entry 1, partition: it must be a whole number",
        ),
        (plan({"topic": "t", "partition": 0, "replicas": [1], "logdirs": []}), "logdirs is no field of it"),
        (
            plan({"topic": "t", "partition": 10**20, "replicas": [1]}),
            "partitions, entry 1, partition: it must be at most 2147483647",
        ),
        (plan({"topic": "t", "partition": 0, "replicas": [1, 10**20]}), "replicas, entry 2: it must be at most"),
        (
            plan({"topic": "t", "partition": 0, "replicas": [1], "original_replicas": [10**20]}),
            "original_replicas, entry 1: it must be at most",
        ),
        ("[" * 100_000, "nested too deeply"),
        ("Proposed partition reassignment configuration\n" + '{"a":' * 100_000, "nested too deeply"),
        (plan({"topic": "t", "partition": 0, "replicas": []}), "t:0 has no replicas"),
        (plan(*[{"topic": "t", "partition": 0, "replicas": [1]}] * 2), "names partition t:0 twice"),
        (plan({"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/data"]}), "names a log directory"),
        (plan({"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["any"] * 2}), "as many log_dirs"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        parse_plan(text, "p.json")
    assert "p.json" in str(raised.value)


def test_null_replicas_and_asserted_originals_are_read() -> None:
    text = plan(
        {"topic": "t", "partition": 0, "replicas": None},
        {"topic": "t", "partition": 1, "replicas": [1, 2], "original_replicas": [2, 1]},
    )
    assert parse_plan(text, "p.json").targets == (
        PartitionTarget(topic="t", partition=0, replicas=None),
        PartitionTarget(topic="t", partition=1, replicas=(1, 2), original_replicas=(2, 1)),
    )


def test_every_part_of_a_plan_queues_alike() -> None:
    targets = [PartitionTarget(topic="t", partition=number, replicas=(1,)) for number in range(MAX_PARTITIONS + 1)]
    assert [command.queue for command in split(whole(targets, queue=True))] == [True] * 2


def test_a_small_plan_is_one_command_under_the_id() -> None:
    (command,) = split(whole([PartitionTarget(topic="t", partition=0, replicas=(1,))]))
    assert (command.id, command.plan, command.more, command.plan_name) == ("a1", None, False, "a1")


@pytest.mark.parametrize("name", ["t", "t" * 249])
def test_a_large_plan_is_split_under_one_name_and_only_the_last_part_ends_it(name: str) -> None:
    targets = [PartitionTarget(topic=name, partition=number, replicas=(1, 2, 3)) for number in range(22_000)]
    commands = split(whole(targets))
    assert [command.id for command in commands] == ["a1", *(f"a1.{part}" for part in range(2, len(commands) + 1))]
    assert len(commands) > 2
    assert {command.plan for command in commands} == {"a1"}
    assert [command.more for command in commands] == [True] * (len(commands) - 1) + [False]
    assert [target for command in commands for target in command.partitions] == targets
    assert max(len(encode_command(command)) for command in commands) < MAX_COMMAND_BYTES
    assert max(len(command.partitions) for command in commands) <= MAX_PARTITIONS


PLAN = {
    "version": 1,
    "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3], "log_dirs": ["any"] * 3}],
}
TEXT = json.dumps(PLAN)
GENERATED = f"{LOG_LINES}{CURRENT}{{}}\n\nProposed partition reassignment configuration\n{TEXT}\n\n$ exit\n"
EXECUTED = f"{LOG_LINES}{CURRENT}\n{TEXT}\n\nSave this to use as the --reassignment-json-file option during rollback\n"


def cruise_control(*proposals: dict[str, Any], **more: Any) -> str:
    """Return an answer as Gson writes it, which knows numbers that JSON does not have."""
    document = {
        "summary": {"monitoredPartitionsPercentage": 100.0, "balancedness": float("nan"), "spread": float("inf")},
        "loadAfterOptimization": {"brokers": [{"Broker": 1, "DiskPct": float("-inf")}]},
        "version": 1,
        **({"proposals": proposals} if "proposals" not in more else {}),
        **more,
    }
    return json.dumps({name: value for name, value in document.items() if value is not None})


def lists(text: str) -> list[tuple[str, int, Sequence[int] | None]]:
    return [(one.topic, one.partition, one.replicas) for one in parse_plan(text, "p.json").targets]


@pytest.mark.parametrize(
    "text",
    [
        cruise_control(PROPOSAL),
        f"HTTP/1.1 200 OK\r\nUser-Task-ID: e4256bcb\r\n\r\n{cruise_control(PROPOSAL)}\n",
        LOG_LINES + TEXT,
        f"$ cat plan.json\n{TEXT}\n$ ",
        TEXT.replace(", ", ",\r\n  "),
        f"\ufeff{TEXT}",
        GENERATED,
        TEXT.replace('"replicas"', '"observers": [], "replicas"'),
        json.dumps({"asked": "drain 1", "moves": [SHOWN], "unmet": []}),
    ],
    ids=["nan", "headers", "log", "prompt", "windows", "mark", "generate", "observers", "shown"],
)
def test_a_plan_is_taken_from_what_programs_and_people_put_around_it(text: str) -> None:
    assert lists(text) == [("orders", 0, (4, 2, 3))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            cruise_control(proposals=None),
            "holds only the summary of Cruise Control's answer, without the moves: repeat",
        ),
        ('{"progress": [{"operation": "Rebalance"}]}', "Cruise Control is still working. Repeat the request with"),
        ('{"stackTrace": "java", "errorMessage": "NotEnough"}', "Cruise Control answered with an error: NotEnough"),
        (
            "1 move:\n{orders-0, oldLeader: 1, [1, 2] -> [3, 2]}\n",
            "answer as text: repeat the request with json=true&verbose=",
        ),
        ('{"topics": [{"topic": "orders"}]}', "is a list of topics for kafka-reassign-partitions --generate"),
        (TEXT.replace('"replicas"', '"observers": [4], "replicas"'), "orders:0 names observers, which only Conflu"),
        (
            '{"moves": [], "refused": true, "unmet": []}',
            "is not a plan: it holds the reasons why `drover plan` could not make one",
        ),
        (EXECUTED, "only the current assignment, not a proposed one; to return to it, save its JSON alone in a file"),
        ('{"topic": "a"}\n{"topic": "b"}\n', "holds 2 JSON documents, and a plan is a single one"),
        ('{"commands": [{"type": "alter"}], "estimate": {}}', "is the output of `drover alter --dry-run`"),
        ('{"version": 1, "brokers": [], "partitions": []}', "is a model of a cluster, not a plan"),
        (f"{LOG_LINES}{TEXT[:-2]}", "is not JSON"),
        (TEXT.replace("4", "NaN"), "is not JSON"),
        (" \n", "is empty"),
    ],
)
def test_what_is_something_else_is_told_by_name_and_with_the_remedy(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_plan(text, "p.json")
    assert str(raised.value).startswith("p.json")
    assert said in str(raised.value)


def test_what_drover_plan_shows_as_json_asserts_the_lists_that_it_was_made_for() -> None:
    shown = {"moves": [{"topic": "t", "partition": 1, "before": [1, 2], "after": [3, 2]}]}
    (target,) = parse_plan(json.dumps(shown), "-").targets
    assert (target.original_replicas, target.replicas) == ((1, 2), (3, 2))


# -- on the command line


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    Path("drover.toml").write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    write_model(Path("model.json"))


def run(line: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, shlex.split(line), input=stdin, prog_name="drover")


def moved(result: Result) -> list[tuple[str, int]]:
    assert result.exit_code == ExitCode.DONE, result.output
    return [(move["topic"], move["partition"]) for move in json.loads(result.stdout)["moves"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_plan_may_have_the_encoding_of_any_shell(encoding: str) -> None:
    """`>` of PowerShell writes UTF-16."""
    Path("plan.json").write_bytes(TEXT.encode(encoding))
    assert moved(run("plan check plan.json --model model.json -o json")) == [("orders", 0)]


def test_a_file_that_is_no_text_is_named() -> None:
    Path("plan.json").write_bytes(b"\x1f\x8b\x08\x00\xff\xff")
    result = run("plan check plan.json --model model.json")
    assert "the plan plan.json is not text in UTF-8 or UTF-16" in result.stderr
    assert result.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("command", ["alter {} --reason x", "alter {} --dry-run", "plan check {} --model model.json"])
def test_cruise_control_that_proposes_nothing_leaves_nothing_to_do(command: str) -> None:
    Path("answer.json").write_text(cruise_control())
    result = run(command.format("answer.json"))
    assert result.stderr == "answer.json asks for no move: there is nothing to do.\n"
    assert result.exit_code == ExitCode.DONE


def test_several_files_are_one_plan() -> None:
    Path("one.json").write_text(TEXT)
    second = {"topic": "orders", "partition": 1, "replicas": [5, 3, 1]}
    Path("two.json").write_text(json.dumps({"version": 1, "partitions": [second]}))
    Path("none.json").write_text(cruise_control())
    both = run("plan check one.json none.json two.json --model model.json -o json")
    assert moved(both) == [("orders", 0), ("orders", 1)]
    assert json.loads(both.stdout)["asked"] == "check one.json, none.json, two.json"
    assert moved(run("plan check one.json - --model model.json -o json", Path("two.json").read_text())) == moved(both)
    for line, said in (
        ("plan check one.json one.json --model model.json", "a PLAN.json is named twice"),
        ("alter - - --reason x", "name each file once (- is standard input)"),
        ("alter one.json two.json --plan-hash 1 --reason x", "--plan-hash goes with one PLAN.json"),
    ):
        result = run(line, TEXT)
        assert said in result.stderr
        assert result.exit_code == ExitCode.USAGE
    Path("two.json").write_text(TEXT)
    result = run("alter one.json two.json --reason x")
    assert "one.json and two.json both name partition orders:0: choose one" in result.stderr
    assert result.exit_code == ExitCode.USAGE


def test_what_drover_plan_prints_can_be_submitted() -> None:
    shown = run("plan drain 3 --include-internal --model model.json -o json")
    Path("plan.json").write_text(shown.stdout)
    assert moved(run("plan check plan.json --model model.json -o json")) == moved(shown)


@pytest.mark.parametrize("brokers", ["1 4", "1,4", "1, 4", "1,4,"])
def test_brokers_are_named_with_spaces_or_commas(brokers: str) -> None:
    assert json.loads(run(f"plan drain {brokers} --model model.json -o json").stdout)["asked"] == "drain 1 4"
    assert "reason" in run(f"leaders blacklist set {brokers}").stderr


@pytest.mark.parametrize("brokers", ["1;4", "1,,4", "2147483648", "1,b"])
def test_what_names_no_brokers_is_refused(brokers: str) -> None:
    result = run(f"plan drain '{brokers}' --model model.json")
    assert result.exit_code == ExitCode.USAGE
    assert "BROKER" in result.stderr
