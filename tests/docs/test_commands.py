"""Every command that the documentation names exists, with these options."""

import re

import click
import pytest

from drover.cli.main import cli
from tests.docs.shell_blocks import ROOT, Typed, pictured, typed

DROVER = typed("drover")
MAKE = typed("make")
PICTURED = pictured("drover")
GUIDES = ("README.md", "docs/operating.md")


def parse(words: tuple[str, ...]) -> click.Command:
    """Find the command and let it parse its options, without running it; a made-up one is a click error."""
    command: click.Command = cli
    context = click.Context(cli, info_name="drover", resilient_parsing=False)
    rest = list(words[1:])
    # Some groups are commands themselves.
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command = found
        context = click.Context(command, parent=context, info_name=name)
    options = [word for word in rest if re.match(r"--?[a-z]", word)]
    if options:
        # Mentions such as `drover alter --follow` leave the rest out: only what is written must be known.
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert [option for option in options if option.split("=")[0] not in known] == []
    return command


@pytest.mark.parametrize("call", DROVER, ids=str)
def test_a_documented_command_exists_with_these_options(call: Typed) -> None:
    assert parse(call.words) is not cli


@pytest.mark.parametrize("call", [call for call in DROVER if call.file in GUIDES and "--reason" in call.words], ids=str)
def test_a_command_that_can_be_copied_from_a_guide_is_complete(call: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Click itself parses it: required options, argument counts and types."""
    command = parse(call.words)
    depth = 1
    while parse(call.words[: depth + 1]) is not command:
        depth += 1
    monkeypatch.chdir(ROOT)
    command.make_context(call.words[depth], list(call.words[depth + 1 :]))


@pytest.mark.parametrize("words", PICTURED, ids=" ".join)
def test_a_command_in_the_picture_exists_with_these_options(words: tuple[str, ...]) -> None:
    assert parse(words) is not cli


def test_the_picture_shows_a_move_a_rollback_and_the_history() -> None:
    assert [words[1] for words in PICTURED] == ["alter", "status", "cancel", "history"]


@pytest.mark.parametrize("call", MAKE, ids=str)
def test_a_documented_target_exists(call: Typed) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    folder = call.words[1].removeprefix("test-")
    assert call.words[1] in targets or folder == "FOLDER" or (ROOT / "tests" / folder / "__init__.py").is_file()


def test_the_documentation_names_commands_at_all() -> None:
    assert len(DROVER) > 20
    assert {call.words[1] for call in DROVER} >= {"local", "log", "worker", "alter", "cancel", "status", "history"}
    assert {call.words[1] for call in MAKE} >= {"demo", "test", "install"}


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_every_command_is_in_a_guide(name: str) -> None:
    guides = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    text = "".join(guide.read_text(encoding="utf-8") for guide in guides)
    assert re.search(rf"drover {name}\b|`{name}`", text)
