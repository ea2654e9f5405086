"""An event loop whose time passes only while nothing is ready to run: minutes of waiting take no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from drover.agents import clock, clusters, dead_letters, host, shards, snapshots

Result = TypeVar("Result")

# Of the Unix time at which every run begins.
BEGIN_S = 1_700_000_000
OWNER: ContextVar[dict[asyncio.Task[Any], None] | None] = ContextVar("OWNER", default=None)


class NothingWillHappenError(AssertionError):
    """Every task waits for another one."""


class _Skipping(selectors.SelectSelector):
    """Does not wait, and counts for how long it would have."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise NothingWillHappenError
            self.skipped_s += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Keeps each task where `OWNER` said when it was made, so that a process can be ended as a whole, in order."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)
        self.set_task_factory(_new_task)

    def time(self) -> float:
        """Return the seconds that were waited."""
        return self._skipping.skipped_s


def _new_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **more)
    owned = OWNER.get()
    if owned is not None:
        owned[task] = None
        task.add_done_callback(lambda ended: owned.pop(ended, None))
    return task


async def _at_once(function: Callable[..., Result], *arguments: Any) -> Result:
    await asyncio.sleep(0)
    return function(*arguments)


def run_in_virtual_time(monkeypatch: pytest.MonkeyPatch, main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end; the worker's modules read this loop's time, and what they do in threads is done at once."""
    loop = VirtualLoop()
    own = SimpleNamespace(
        time_ns=lambda: int((BEGIN_S + loop.time()) * 1_000_000_000),
        monotonic_ns=lambda: int(loop.time() * 1_000_000_000),
        monotonic=loop.time,
    )
    with monkeypatch.context() as patched:
        for module in (clock, clusters):
            patched.setattr(module, "time", own)
        for module in (dead_letters, host, shards, snapshots):
            patched.setattr(module, "monotonic", loop.time)
        patched.setattr(asyncio, "to_thread", _at_once)
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close()
