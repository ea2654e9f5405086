"""Contexts: settings files with a name, of which a user has one in use, so that commands need not name a file.

They are `contexts/NAME.toml` in the user's configuration directory, and the file `context` there holds the name of the
one in use.
"""

import re
from pathlib import Path

import platformdirs

from drover.errors import ConfigurationError
from drover.settings.trusted_files import read_trusted, write_own
from drover.text_files import decode_text

SUFFIX = ".toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def users_directory() -> Path | None:
    """Return the directory of this user's settings; None for a user without a home, as in many containers."""
    try:
        return platformdirs.user_config_path("drover")
    except RuntimeError:
        return None


def contexts() -> tuple[str, ...]:
    """Return the names of this user's contexts, in order."""
    directory = users_directory()
    if directory is None:
        return ()
    return tuple(
        sorted(file.stem for file in (directory / "contexts").glob(f"*{SUFFIX}") if _NAME.fullmatch(file.stem))
    )


def context_file(name: str) -> Path:
    """Return the file of a context, whether or not it exists. Raises `ConfigurationError` for an impossible name."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is not the name of a context: use letters, digits, '.', '_' and '-'")
    return _directory() / "contexts" / f"{name}{SUFFIX}"


def context_in_use() -> str | None:
    """Return the name of the context in use, if there is one. Raises `ConfigurationError` if it cannot be read."""
    directory = users_directory()
    if directory is None:
        return None
    file = directory / "context"
    try:
        return decode_text(read_trusted(file, "the file")).strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error}; choose one again with `drover context use`"
        ) from error


def file_of_context_in_use() -> Path | None:
    """Return the settings file of the context in use, if there is one. Raises `ConfigurationError` if it is gone."""
    name = context_in_use()
    if name is None:
        return None
    file = context_file(name)
    if not file.is_file():
        raise ConfigurationError(
            f"the context in use, {name}, has no file {file} any more: choose another with `drover context use`"
        )
    return file


def use_context(name: str | None) -> None:
    """Use a context from now on; None uses none. Raises `ConfigurationError` for one that does not exist."""
    directory = _directory()
    if name is None:
        (directory / "context").unlink(missing_ok=True)
        return
    if not context_file(name).is_file():
        known = ", ".join(contexts()) or "none"
        raise ConfigurationError(
            f"there is no context {name} (there are: {known}); make it with `drover config init --context {name}`"
        )
    directory.mkdir(parents=True, exist_ok=True)
    write_own(directory / "context", f"{name}\n")


def _directory() -> Path:
    directory = users_directory()
    if directory is None:
        raise ConfigurationError(
            "this user has no home for contexts: set XDG_CONFIG_HOME, or name a file with --config"
        )
    return directory
