"""A lock that lets one process at a time start and stop the nodes of a cluster's directory."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from drover.jars import cache_directory, writable_directory
from drover.local.deadline import wait_until

LOCK_TIMEOUT_S = 120.0


@asynccontextmanager
async def exclusive(directory: Path) -> AsyncIterator[None]:
    """Hold the directory's lock for the length of a block; the system frees it when its holder dies.

    The lock file is in the cache, because `down` removes the directory. Raises `ClusterUnavailableError` if the wait is
    too long, and `ConfigurationError` if the cache cannot be written.
    """
    locks = writable_directory(cache_directory() / "local-locks")
    lock = FileLock(locks / hashlib.sha256(str(directory).encode()).hexdigest()[:32])

    def acquired() -> bool:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    goal = f"no other `drover local` command works on {directory}"
    await wait_until(acquired, what=goal, timeout_s=LOCK_TIMEOUT_S)
    try:
        yield
    finally:
        lock.release()
