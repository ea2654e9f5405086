"""Reading the stock tool's file and splitting large plans."""

import json

import pytest

from drover.cli.plan_file import AlterRequest, alter_commands, parse_plan
from drover.errors import ConfigurationError
from drover.events.bounds import MAX_PARTITIONS
from drover.events.codec import MAX_COMMAND_BYTES, encode_command
from drover.events.commands import PartitionTarget

REQUEST = AlterRequest(id="a1", cluster="prod", by="me", reason="a test")


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
    request = AlterRequest(id="a1", cluster="prod", by="me", reason="r", queue=True)
    targets = [PartitionTarget(topic="t", partition=number, replicas=(1,)) for number in range(MAX_PARTITIONS + 1)]
    assert [command.queue for command in alter_commands(request, targets)] == [True] * 2


def test_a_small_plan_is_one_command_under_the_id() -> None:
    (command,) = alter_commands(REQUEST, [PartitionTarget(topic="t", partition=0, replicas=(1,))])
    assert (command.id, command.plan, command.more, command.plan_name) == ("a1", None, False, "a1")


@pytest.mark.parametrize("name", ["t", "t" * 249])
def test_a_large_plan_is_split_under_one_name_and_only_the_last_part_ends_it(name: str) -> None:
    targets = [PartitionTarget(topic=name, partition=number, replicas=(1, 2, 3)) for number in range(22_000)]
    commands = alter_commands(REQUEST, targets)
    assert [command.id for command in commands] == ["a1", *(f"a1.{part}" for part in range(2, len(commands) + 1))]
    assert len(commands) > 2
    assert {command.plan for command in commands} == {"a1"}
    assert [command.more for command in commands] == [True] * (len(commands) - 1) + [False]
    assert [target for command in commands for target in command.partitions] == targets
    assert max(len(encode_command(command)) for command in commands) < MAX_COMMAND_BYTES
    assert max(len(command.partitions) for command in commands) <= MAX_PARTITIONS
