"""Wait for a condition with a deadline; the only place of this package that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from drover.errors import ClusterUnavailableError

POLL_S = 0.05
# A deadline costs something only where what is waited for never comes.
PATIENCE_S = 60.0


async def wait_until(
    condition: Callable[[], bool | Awaitable[bool]], *, what: str, timeout_s: float = PATIENCE_S
) -> None:
    """Return as soon as `condition` holds; after `timeout_s` it is a ClusterUnavailableError that names `what`."""
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
