"""Start-up shared by the worker and the projector: garbage collection settings, and stopping before they are ready."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


# Thresholds of `gc.set_threshold`: allocations net of frees for generation 0, then collections per older generation.
COLLECTED_AFTER = (10_000, 20, 20)


def collect_rarely() -> None:
    """Exclude imported modules from garbage collection, and collect less often than Python's default.

    Every collection visits the whole state, although it is not garbage. A full collection stops the event loop for 40
    ms with the imports alone, and for 100 ms with 10,000 reassignments.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


async def unless_stopped(work: Coroutine[Any, Any, Result], stop: asyncio.Event) -> Result | None:
    """Return the result of `work`, or cancel it and return None as soon as `stop` is set. Raises as `work` does."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait((working,))
    return None
