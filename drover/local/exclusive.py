"""One process at a time may change what runs in a cluster's directory."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from drover.jars import cache_directory, writable_directory
from drover.local.waiting import wait_until

LOCK_TIMEOUT_S = 120.0


@asynccontextmanager
async def exclusive(directory: Path) -> AsyncIterator[None]:
    """Hold the directory's lock for the length of a block; the system frees it when its holder dies.

    The lock lies in the cache, as `down` removes the directory. Waiting too long is a ClusterUnavailableError, a
    cache that cannot be written a ConfigurationError.
    """
    locks = writable_directory(cache_directory() / "local-locks")
    lock = FileLock(locks / hashlib.sha256(str(directory).encode()).hexdigest()[:32])

    def acquired() -> bool:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    what = f"no other `drover local` command works on {directory}"
    await wait_until(acquired, what=what, timeout_s=LOCK_TIMEOUT_S)
    try:
        yield
    finally:
        lock.release()
