"""The only place where a worker reads the time."""

import time

from drover.reconcile.messages import Moment


def now() -> Moment:
    """Return the current time: the wall clock for records, and the monotonic clock for durations."""
    return Moment(wall_ms=time.time_ns() // 1_000_000, monotonic_ms=time.monotonic_ns() // 1_000_000)
