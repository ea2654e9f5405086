"""Files that operators name: read and written as text, and what is said when that fails."""

import sys
from pathlib import Path

from drover.errors import ConfigurationError
from drover.text_files import decode_text


def read_text(file: Path, what: str) -> str:
    """Read a file, or standard input for `-`; `what` says what it is, such as `plan`.

    Raises `ConfigurationError` that names the file.
    """
    try:
        return decode_text(_read_input(what) if str(file) == "-" else file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the {what} {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the {what} {file} is no text in UTF-8 or UTF-16: {error}") from error


def _read_input(what: str) -> bytes:
    """Read standard input as bytes: Python would pass on what is not UTF-8 as half characters in some locales."""
    if sys.stdin is None:
        raise ConfigurationError(f"the {what} - cannot be read: standard input is closed")
    return sys.stdin.buffer.read()


def write_text(file: Path, text: str, what: str) -> None:
    """Write a file, or standard output for `-`. Raises `ConfigurationError` that names the file."""
    if str(file) == "-":
        if sys.stdout is None:
            raise ConfigurationError(f"the {what} - cannot be written: standard output is closed")
        sys.stdout.write(text)
        # Now, and not at the end, when nobody would be told.
        sys.stdout.flush()
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the {what} {file} cannot be written: {error.strerror}") from error
