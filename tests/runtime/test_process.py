"""Long work beside the event loop."""

import asyncio
import threading

import pytest

from drover.runtime.process import in_thread


async def test_the_result_comes_back_and_so_does_an_error() -> None:
    assert await in_thread(lambda: 3) == 3
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(lambda: int("no number"))


async def test_the_loop_runs_meanwhile() -> None:
    go_on = threading.Event()
    working = asyncio.create_task(in_thread(lambda: go_on.wait(20)))
    await asyncio.sleep(0.01)
    assert not working.done()
    go_on.set()
    assert await working
