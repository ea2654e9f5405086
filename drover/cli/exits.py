"""The exit codes of every command; they are public and never change."""

import errno
import os
import sys
from enum import IntEnum
from pathlib import Path

import click

from drover.errors import ClusterAccessError, ConfigurationError, CorruptLogError, DroverError, LogAccessError
from drover.events.bounds import visible

# The disk is full, wherever something was being written.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


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


def directory_gone(error: OSError) -> Failure | None:
    """Return the failure for a working directory that was removed; None where the error is about anything else."""
    if error.errno != errno.ENOENT or error.filename is not None:
        return None
    try:
        Path.cwd()
    except FileNotFoundError:
        return Failure("the directory in which this command runs is gone: change to another one", ExitCode.USAGE)
    return None


def unwritable(error: OSError) -> Failure:
    """Give a full disk its exit code; what a command has sent before it could not print that remains sent."""
    if sys.stdout is not None and error.filename is None:
        # What was printed may still be in the buffer; Python would try again at its end, and print a traceback.
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
    return Failure(f"{error.filename or 'what this command writes'} cannot be written: {error.strerror}")
