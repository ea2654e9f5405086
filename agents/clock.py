"""The only place where a worker reads the time."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar

from drover.reconcile.messages import Timestamp


def system_wall_ms() -> int:
    """Return the time of this machine's clock."""
    return time.time_ns() // 1_000_000


# What wall clocks show in this context: a model worker's are those of its event loop.
WALL_MS: ContextVar[Callable[[], int]] = ContextVar("WALL_MS", default=system_wall_ms)


def now() -> Timestamp:
    """Return the current time: the wall clock for records, and the monotonic clock for durations."""
    return Timestamp(wall_ms=WALL_MS.get()(), monotonic_ms=int(monotonic() * 1000))


def monotonic() -> float:
    """Return the seconds of the running event loop's clock, which is also the one that its timers go by."""
    return asyncio.get_running_loop().time()
