"""The exit codes of every command; they are public and never change."""

from enum import IntEnum

import click

from drover.errors import ClusterAccessError, ConfigurationError, CorruptLogError, DroverError, LogAccessError
from events.bounds import visible


class ExitCode(IntEnum):
    """0 is success; 2 is also what click gives for wrong usage."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNFINISHED = 3
    GUARDED = 4
    CORRUPT = 5
    INTERRUPTED = 130


class Failure(click.ClickException):
    """An error message for a person, and the exit code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(visible(message))
        self.exit_code = int(code)


def failure_of(error: DroverError) -> Failure:
    """Give a fault its exit code."""
    match error:
        case ConfigurationError() | LogAccessError() | ClusterAccessError():
            return Failure(str(error), ExitCode.USAGE)
        case CorruptLogError():
            return Failure(str(error), ExitCode.CORRUPT)
        case _:
            return Failure(str(error))
