"""Blocking or long work in a thread of its own, and its result in the event loop that waits for it."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_daemon_thread(name: str, work: Callable[[], Result]) -> tuple["asyncio.Future[Result]", threading.Thread]:
    """Run `work` in a thread; the future has its result, or raises what it raised.

    Nobody has to wait for it: neither the end of the loop nor that of the process does, as both would for the threads
    of `asyncio.to_thread`.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be waiting any more

    def body() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # a thread's supervisor: every fault goes to the caller
            problem = error
            deliver(loop, answer, lambda: answer.set_exception(problem))
        else:
            deliver(loop, answer, lambda: answer.set_result(result))

    thread = threading.Thread(target=body, name=f"drover-{name}", daemon=True)
    thread.start()
    return answer, thread


def deliver(loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    """Settle a future in its loop, from any thread, unless it is settled or nobody waits any more."""

    def settle_once() -> None:
        if not answer.done():
            settle()

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(settle_once)
