"""Shared by all commands that send a single message: send it and print its outcome."""

import click

from drover.cli.submitting import Request, send
from drover.events.commands import Command
from drover.journal.connection import LogConnection


def send_one(connection: LogConnection, command: Command, request: Request) -> None:
    """Send a command, print its outcome and end with its exit code."""
    answers = send(connection, [command], request)
    if request.timeout_s is None:
        return
    from drover.cli.answers import exit_code, print_answers  # noqa: PLC0415 - not before the command is out

    print_answers(answers, request.output)
    raise click.exceptions.Exit(exit_code(answers))
