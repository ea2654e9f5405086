"""Passwords, and the files that hold them and keys."""

from pathlib import Path

from drover.errors import ConfigurationError
from drover.text_files import decode_text


class Secret(str):
    """A password: what is printed, logged or put into an error message does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide it: the clients log their options."""
        return "'***'"


def unusable(section: str, setting: str, file: str, why: str) -> ConfigurationError:
    """Say that a file which a setting names cannot be used."""
    return ConfigurationError(f"{section}.{setting}: the file {file} cannot be used: {why}")


def read_file(section: str, setting: str, file: str) -> bytes:
    """Read a file that a setting names. Raises `ConfigurationError` that names both."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise unusable(section, setting, file, f"{error.strerror}; correct it or name another") from error


def read_secret(section: str, setting: str, text: str | None, file: str | None) -> Secret | None:
    """Return the password of a setting: its text, or the content of the file in `setting` + `_file` without a line end.

    None if neither is set. Raises `ConfigurationError` for a file that cannot be read or is empty.
    """
    if file is None:
        return Secret(text) if text else None
    setting = f"{setting}_file"
    try:
        password = decode_text(read_file(section, setting, file)).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise unusable(section, setting, file, "it is not UTF-8 text") from error
    if not password:
        raise unusable(section, setting, file, "it is empty")
    return Secret(password)
