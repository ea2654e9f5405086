"""Shared by the worker and the projector: garbage collection settings, stopping before they are ready, long work."""

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

Result = TypeVar("Result")


# Thresholds of `gc.set_threshold`: allocations net of frees for generation 0, then collections per older generation.
COLLECTED_AFTER = (10_000, 20, 20)


def collect_rarely() -> None:
    """Leave what was imported out of garbage collection, and collect less often than Python does by default.

    State that is kept is no garbage, but every collection goes through it. A full one would stop the event loop for
    40 ms with the imports alone, and for 100 ms with 10,000 reassignments; small ones took a fifteenth of each draft.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


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


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, done in a thread of its own. Raises what `work` raises.

    When this is cancelled, nobody waits for the thread, neither the end of the event loop nor that of the process; both
    wait for the threads of `asyncio.to_thread`.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: Exception | None) -> None:
        if ended.cancelled():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(cast("Result", result))

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the result is waited for
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="long work", daemon=True).start()
    return await ended
