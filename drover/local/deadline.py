"""Wait for a condition with a deadline; only this module of the package sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from drover.errors import ClusterUnavailableError

POLL_S = 0.05
# Long, because a long deadline costs time only if the condition never holds.
PATIENCE_S = 60.0


async def wait_until(
    condition: Callable[[], bool | Awaitable[bool]], *, what: str, timeout_s: float = PATIENCE_S
) -> None:
    """Return once `condition` holds. Raises `ClusterUnavailableError` that names `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        holds = condition()
        if not isinstance(holds, bool):
            holds = await holds
        if holds:
            return
        if time.monotonic() >= deadline:
            raise ClusterUnavailableError(f"not within {timeout_s:g} s: {what}")
        await asyncio.sleep(POLL_S)
