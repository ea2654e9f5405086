"""Passwords, and the files that hold them."""

from drover.errors import ConfigurationError


class Secret(str):
    """A password: what is printed, logged or put into an error message does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide it: the clients log their options."""
        return "'***'"


def unusable(section: str, setting: str, file: str | None, error: Exception) -> ConfigurationError:
    """Say that a file which a setting names cannot be used."""
    said = getattr(error, "strerror", None) or str(error)
    return ConfigurationError(
        f"{section}.{setting}: the file {file} cannot be used ({said}); correct it or name another"
    )
