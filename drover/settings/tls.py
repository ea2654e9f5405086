"""A TLS context whose files are read again once they have changed, so that a renewed certificate needs no restart."""

import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from drover.errors import ConfigurationError

_log = logging.getLogger(__name__)

# Of each file: when it was changed, its size, and whether another one has taken its place.
_Marks = tuple[tuple[int, ...] | None, ...]


class ReloadingContext(ssl.SSLContext):
    """What `make` returned last; each connection first looks whether one of the files has changed.

    Files that cannot be used, such as a certificate whose key has not been written yet, are logged once; connections
    go on with what was read before.
    """

    def __new__(cls, make: Callable[[], ssl.SSLContext], files: Sequence[str]) -> Self:
        """Make the object that the clients take for a context."""
        del make, files
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Sequence[str]) -> None:
        self._make = make
        self._files = tuple(files)
        self._lock = threading.Lock()
        self._marks = _marks_of(self._files)
        self._current = make()

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection of asyncio's."""
        return self._now().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a connection on a socket."""
        return self._now().wrap_socket(*arguments, **options)

    def get_ca_certs(self, *arguments: Any, **options: Any) -> Any:
        """Return the authorities that are trusted now."""
        return self._now().get_ca_certs(*arguments, **options)

    def _now(self) -> ssl.SSLContext:
        with self._lock:
            marks = _marks_of(self._files)
            if marks != self._marks:
                # Taken before the files are read: a change meanwhile is seen by the next connection.
                self._marks = marks
                try:
                    self._current = self._make()
                except ConfigurationError as error:
                    _log.warning("connections keep the certificates that were read before: %s", error)
            return self._current


def _marks_of(files: Sequence[str]) -> _Marks:
    return tuple(_mark_of(file) for file in files)


def _mark_of(file: str) -> tuple[int, ...] | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
