"""Time limits that also hold for what a cancelled task cleans up, on every Python that Drover is for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


@asynccontextmanager
async def time_limit(seconds: float | None) -> AsyncGenerator[None]:
    """End what runs inside with TimeoutError after so many seconds (None: never), as `asyncio.timeout` does.

    In Python 3.11.2, which is Debian 12's, `asyncio.timeout` ends with CancelledError instead when the task has been
    cancelled before: a limit inside a longer one that is over, or in what a stopping worker still does. Whoever waits
    for TimeoutError would then not hear of it. A cancellation that comes meanwhile stays one.
    """
    task = asyncio.current_task()
    assert task is not None, "coroutines run in tasks"
    before = task.cancelling()
    limit = asyncio.timeout(seconds)  # noqa: TID251 - the replacement that the ban names
    try:
        async with limit:
            yield
    except asyncio.CancelledError as error:
        if limit.expired() and task.cancelling() <= before:
            raise TimeoutError from error
        raise
