"""Work in a thread of its own, beside the event loop."""

import asyncio
import threading

import pytest

from drover.threads import in_daemon_thread


async def test_the_result_comes_back_and_so_does_an_error() -> None:
    assert await in_daemon_thread("three", lambda: 3)[0] == 3
    with pytest.raises(ValueError, match="invalid literal"):
        await in_daemon_thread("fails", lambda: int("no number"))[0]


async def test_the_loop_runs_meanwhile() -> None:
    go_on = threading.Event()
    working = in_daemon_thread("waits", lambda: go_on.wait(20))[0]
    await asyncio.sleep(0.01)
    assert not working.done()
    go_on.set()
    assert await working
