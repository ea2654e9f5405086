"""Commands are found: by sections, headings and examples in help, by suggestions, and by the shell's completion."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from drover.cli import completion
from drover.cli.help import DroverCommand, DroverGroup, did_you_mean
from drover.cli.invocation import Invocation
from drover.cli.main import COMMANDS, SECTIONS, cli
from drover.client.history import FoldedLog
from drover.fold.log import ShardFold
from drover.state.plans import Plan

assert isinstance(cli, DroverGroup)
PATHS = tuple(cli.paths(click.Context(cli)))
NOWHERE = """
[log]
bootstrap = "127.0.0.1:1"
[clusters.prod]
bootstrap = "127.0.0.1:1"
[clusters.test]
bootstrap = "127.0.0.1:1"
"""


def test_the_names_for_suggestions_are_those_of_the_groups() -> None:
    assert tuple(DroverGroup.paths(cli, click.Context(cli))) == PATHS


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), name)
        assert inner is not None, f"{path} is no command"
        command = inner
    return command


def examples() -> Iterator[tuple[tuple[str, ...], str]]:
    for path in PATHS:
        command = command_at(path)
        assert isinstance(command, DroverCommand), path
        yield from ((path, line) for line in command.example.splitlines())


def test_help_lists_every_command_once_by_section() -> None:
    output = CliRunner().invoke(cli, ["-h"], prog_name="drover").output
    assert [line[:-1] for line in output.splitlines() if line[:-1] in SECTIONS] == list(SECTIONS)
    assert len(COMMANDS) == sum(map(len, SECTIONS.values()))
    assert all(f"\n  {name} " in output for name in COMMANDS)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_an_example_of_itself_in_its_help(path: tuple[str, ...]) -> None:
    command = command_at(path)
    assert isinstance(command, DroverCommand)
    if not isinstance(command, click.Group) or command.invoke_without_command:
        assert f"drover {' '.join(path)}" in command.example
    output = CliRunner().invoke(cli, [*path, "-h"], prog_name="drover").output
    assert all(f"\n  {line}\n" in output for line in command.example.splitlines())


@pytest.mark.parametrize(("path", "line"), tuple(examples()), ids=str)
def test_an_example_can_be_typed_as_it_is(path: tuple[str, ...], line: str) -> None:
    """Click itself parses it: required options, argument counts and types."""
    words = shlex.split(line, comments=True)
    if words[0] != "drover":
        return
    depth = len(path)
    assert tuple(words[1 : 1 + depth]) == path
    command_at(path).make_context(words[depth], words[1 + depth :])


def test_options_that_many_commands_share_have_headings_behind_the_command_s_own() -> None:
    output = CliRunner().invoke(cli, ["pause", "-h"], prog_name="drover").output
    places = [output.index(f"\n{heading}:\n") for heading in ("Options", "Connection", "Sending")]
    assert places == sorted(places)
    assert output.index("--bootstrap-server") > places[1]
    assert output.index("--reason TEXT") > places[2]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("statsu", "`drover status`"),
        ("drain", "`drover plan drain`"),
        ("demote", "`drover leaders demote`"),
        ("plan drian", "`drover plan drain`"),
        ("xyzzy", "`drover -h` lists the commands."),
    ],
)
def test_an_unknown_command_is_answered_with_the_similar_ones(typed: str, meant: str) -> None:
    result = CliRunner().invoke(cli, typed.split(), prog_name="drover")
    assert result.exit_code == 2
    assert meant in result.stderr


def test_suggestions_name_at_most_three_and_none_where_nothing_is_similar() -> None:
    assert did_you_mean("fryday", ["friday", "monday"]) == "Did you mean friday?"
    assert did_you_mean("fryday", ["friday", "freyday"]) == "Did you mean freyday or friday?"
    assert did_you_mean("payments", ["friday"]) == ""


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_of_a_shell_asks_drover(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell], prog_name="drover")
    assert result.exit_code == 0
    assert completion.VARIABLE in result.output


def completed(directory: Path, typed: str) -> list[str]:
    """Ask as the script of bash does."""
    words = typed.split(" ")
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), completion.VARIABLE: "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from drover.cli.main import main; main()"],
        env={**os.environ, **asked, "DROVER_CONFIG": str(directory / "drover.toml")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("drover unf", ["unfreeze"]),
        ("drover status --cluster te", ["test"]),
        ("drover pause --cluster prod f", []),
        ("drover plan drain --cluster prod 1", []),
    ],
)
def test_names_are_completed_silently_also_where_no_server_answers(
    typed: str, names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "drover.toml").write_text(NOWHERE)
    assert completed(tmp_path, typed) == names


def test_plans_are_completed_from_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def folded(*_: object) -> FoldedLog:
        fold = ShardFold(0, 1)
        for name in ("friday", "freight", "monday"):
            fold.state.cluster("prod").put_plan(Plan(name, "ann", "r", 0))
        return FoldedLog({0: fold})

    monkeypatch.setattr("drover.client.history.fold_shards", folded)
    (tmp_path / "drover.toml").write_text(NOWHERE)
    context = click.Context(cli, obj=Invocation(config=tmp_path / "drover.toml", cluster="prod"))
    assert completion.names("plans", context, "fr") == ["friday", "freight"]
