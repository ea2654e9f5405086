"""What the long-running processes of Drover have in common: how they begin, and how they stop while they do."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def keep_imported() -> None:
    """Leave what was imported out of garbage collection: each full one would stop the event loop for 40 ms."""
    gc.collect()
    gc.freeze()


async def unless_stopped(work: Coroutine[Any, Any, Result], stop: asyncio.Event) -> Result | None:
    """Return the result of `work`, or cancel it and return None as soon as `stop` is set. Raises what `work` raises."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait((working,))
    return None
