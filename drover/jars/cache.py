"""Where jars are kept on this machine, and which of them were verified; knows nothing of the network.

A jar is trusted without reading it again when its size is right and the marker file says that this very content was
verified here: a start must not hash 50 MB.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from drover.errors import ConfigurationError
from drover.jars.lock import Jar

MARKER_NAME = "verified.json"
# Where nothing is, or nothing that this user can see.
_ABSENT = (FileNotFoundError, NotADirectoryError, PermissionError)


def cache_directory() -> Path:
    """Return the user's cache directory for Drover; `DROVER_CACHE_DIR` overrides the platform's place.

    Raises `ConfigurationError` for a user without a home.
    """
    override = os.environ.get("DROVER_CACHE_DIR")
    try:
        return Path(override).expanduser().absolute() if override else Path(platformdirs.user_cache_dir("drover"))
    except RuntimeError as error:
        raise ConfigurationError(
            "this user has no home directory, so nothing can be kept there: name a directory in DROVER_CACHE_DIR"
        ) from error


def writable_directory(directory: Path) -> Path:
    """Make a directory of the cache where it is missing, and return it.

    Raises `ConfigurationError` if nothing can be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror
    else:
        if os.access(directory, os.W_OK | os.X_OK):
            return directory
        why = "it cannot be written"
    raise ConfigurationError(f"nothing can be kept in {directory} ({why}): name a directory in DROVER_CACHE_DIR")


def jars_directory() -> Path:
    """Return the directory below which every jar lies at its Maven path."""
    return cache_directory() / "jars"


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_marker(directory: Path) -> dict[str, str]:
    """Return jar path to the SHA-256 that was verified; an absent or unreadable marker means none was."""
    try:
        content = json.loads((directory / MARKER_NAME).read_text(encoding="utf-8"))
    except (*_ABSENT, json.JSONDecodeError):
        return {}
    return content if isinstance(content, dict) else {}


def mark_verified(directory: Path, jars: Iterable[Jar]) -> None:
    """Add jars to the marker file, atomically; the caller holds the cache's lock."""
    verified = read_marker(directory) | {jar.path: jar.sha256 for jar in jars}
    marker = directory / MARKER_NAME
    part = marker.with_suffix(".json.part")
    part.write_text(json.dumps(verified, indent=1, sort_keys=True), encoding="utf-8")
    part.replace(marker)


def untrusted(directory: Path, jars: Iterable[Jar]) -> tuple[Jar, ...]:
    """Return the jars that are absent, of another size, or never verified here; reads sizes only.

    A jar that others may write, or whose path leads through a directory that they may write, never counts as verified:
    it is hashed each time.
    """
    if any(is_exposed(place) for place in (directory, directory / MARKER_NAME, *directory.resolve().parents)):
        return tuple(jars)
    verified = read_marker(directory)
    are_exposed: dict[Path, bool] = {}

    def is_trusted(jar: Jar) -> bool:
        if verified.get(jar.path) != jar.sha256 or _size_bytes(directory / jar.path) != jar.size_bytes:
            return False
        file = directory / jar.path
        between = [place for place in file.parents if place.is_relative_to(directory)]
        for place in (file, *between):
            if place not in are_exposed:
                are_exposed[place] = is_exposed(place)
        return not any(are_exposed[place] for place in (file, *between))

    return tuple(jar for jar in jars if not is_trusted(jar))


def verify_present(directory: Path, jar: Jar) -> bool:
    """Tell whether the jar lies in the cache with the right content; a damaged one is removed."""
    file = directory / jar.path
    if _size_bytes(file) == jar.size_bytes and sha256_of(file) == jar.sha256:
        return True
    file.unlink(missing_ok=True)
    return False


def is_exposed(place: Path) -> bool:
    """Whether others may have changed a file, or put one into a directory: they own it, or group or world may write it.

    In a directory with the sticky bit, such as /tmp, others cannot replace what is not theirs.
    """
    try:
        status = place.stat()
    except _ABSENT:
        return False
    if status.st_uid not in {os.geteuid(), 0}:
        return True
    is_sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not is_sticky


def _size_bytes(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except _ABSENT:
        return None
