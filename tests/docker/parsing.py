"""Commands that files for other programs hold, given to the real command line without being run."""

from collections.abc import Sequence

import click

from drover.cli.main import cli


def takes(words: Sequence[str]) -> None:
    """Let click parse the words after `drover`; a command or an option that there is not is an error of click."""
    command: click.Command = cli
    name, rest = "drover", list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            raise click.UsageError(f"there is no command {rest[0]}")
        name, command, rest = rest[0], found, rest[1:]
    command.make_context(name, rest)
