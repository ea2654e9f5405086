"""Files that say where commands go: read only if nobody else could have written them.

`DROVER_CONFIG_OWNER` names one more user who may own such a file, or `any`. `DROVER_CONFIG_MODE=any` takes a file that
its group or anybody may write: some mounts show every file as one.
"""

import os
import stat
from pathlib import Path

from drover.errors import ConfigurationError

OWNER_VARIABLE = "DROVER_CONFIG_OWNER"
MODE_VARIABLE = "DROVER_CONFIG_MODE"
ANY = "any"
# The machine's administrator, who may own a file besides the current user.
TRUSTED_OWNERS = frozenset({0})


def read_trusted(file: Path, name: str) -> bytes:
    """Return the content of a file, which messages call by this name.

    Raises `ConfigurationError` if others could have put it there, also if the user has named it, and `OSError`.
    """
    with file.open("rb") as stream:
        # Check the opened file, because another one may take its name at any time.
        _check(file, name, os.fstat(stream.fileno()))
        return stream.read()


def write_own(file: Path, text: str) -> None:
    """Write a file that `read_trusted` takes, whatever rights new files get by the user's umask. Raises `OSError`."""
    # Written beside it and moved, so that nobody reads half of it.
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    part.replace(file)


def _check(file: Path, name: str, status: os.stat_result) -> None:
    where = f"{name} {file.absolute()} is not used, because"
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) if stat.S_ISREG(status.st_mode) else 0
    if writers and os.environ.get(MODE_VARIABLE) != ANY:
        who = "anybody" if writers & stat.S_IWOTH else "its group"
        raise ConfigurationError(
            f"{where} {who} may write it: chmod go-w {file}. On a mount where chmod has no effect, copy the file to "
            f"another file system, or set {MODE_VARIABLE}={ANY} if you trust everybody who can write to that mount"
        )
    trusted = os.environ.get(OWNER_VARIABLE, "")
    if status.st_uid not in {os.geteuid(), *TRUSTED_OWNERS} and trusted not in {ANY, str(status.st_uid)}:
        raise ConfigurationError(
            f"{where} it belongs to user {status.st_uid}: make it yours or root's, or set "
            f"{OWNER_VARIABLE}={status.st_uid} if that user may say where your commands go"
        )
