"""The exit codes of every command; they are public and never change."""

import errno
import os
import sys
from enum import IntEnum
from pathlib import Path

import click

from drover.errors import ClusterAccessError, ConfigurationError, CorruptLogError, DroverError, LogAccessError
from drover.events.bounds import visible

# The errors of a full disk or quota, on any write.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ExitCode(IntEnum):
    """The exit codes; click, too, ends with 2 for wrong usage."""

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
    """Return the failure, with its exit code, for a fault of the world."""
    match error:
        case ConfigurationError() | LogAccessError() | ClusterAccessError():
            return Failure(str(error), ExitCode.USAGE)
        case CorruptLogError():
            return Failure(str(error), ExitCode.CORRUPT)
        case _:
            return Failure(str(error))


def directory_gone(error: OSError) -> Failure | None:
    """Return the failure for a working directory that was removed; None for any other error."""
    if error.errno != errno.ENOENT or error.filename is not None:
        return None
    try:
        Path.cwd()
    except FileNotFoundError:
        return Failure("the current directory no longer exists: change to another one", ExitCode.USAGE)
    return None


def unwritable(error: OSError) -> Failure:
    """Return the failure for a write to a full disk; commands that were already sent stay sent."""
    if sys.stdout is not None and error.filename is None:
        # Output may still be in the buffer; Python would flush it again at exit, and print a traceback.
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
    return Failure(f"{error.filename or 'the output of this command'} cannot be written: {error.strerror}")
