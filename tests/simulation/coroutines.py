"""Coroutines driven by hand: each says where it may be interrupted, and nothing ever waits for a clock."""

import asyncio
import contextvars
import types
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

Result = TypeVar("Result")


class Point(StrEnum):
    """Where a worker may die, or stand still while the world goes on."""

    LOOK = "look"
    ASIDE = "aside"
    APPEND = "append"
    ACKNOWLEDGE = "acknowledge"
    REQUEST = "request"
    ANSWER = "answer"


@types.coroutine
def reach(point: Point) -> Generator[Point, None, None]:
    """Stand at a point until whoever drives the coroutine lets it go on."""
    yield point


class Running(Generic[Result]):
    """A coroutine under way; `point` is where it stands, None before it has begun and after it has ended."""

    __slots__ = ("_coroutine", "_result", "done", "point")

    def __init__(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        self._coroutine = coroutine
        self._result: Result | None = None
        self.point: Point | None = None
        self.done = False

    @property
    def result(self) -> Result:
        """What it returned."""
        assert self.done, "it has not ended yet"
        return self._result  # type: ignore[return-value]  # it is what the coroutine returned, once done

    def advance(self, fault: BaseException | None = None) -> bool:
        """Go on to the next point, or with `fault` instead of what was waited for; whether it has ended."""
        try:
            while True:
                point = self._coroutine.send(None) if fault is None else self._coroutine.throw(fault)
                fault = None
                if point is not None:  # a bare yield, as of `asyncio.sleep(0)`, is nowhere
                    self.point = point
                    return False
        except StopIteration as end:
            self._result, self.point, self.done = end.value, None, True
            return True

    def finish(self) -> Result:
        """Go on to the end."""
        while not self.done:
            self.advance()
        return self.result

    def close(self) -> None:
        """End it where it stands: the process that ran it is no more."""
        self._coroutine.close()
        self.done = True


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, past every point."""
    return Running(coroutine).finish()


class TinyLoop:
    """As much of an event loop as `asyncio.gather` needs, in the order in which things were begun."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and what it starts to the end; no point may be reached in it."""
        outside = events._get_running_loop()
        events._set_running_loop(cast("asyncio.AbstractEventLoop", self))
        try:
            task: asyncio.Task[Result] = self.create_task(coroutine)
            while not task.done():
                self._ready.popleft()._run()
            return task.result()
        finally:
            events._set_running_loop(outside)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, cast("asyncio.AbstractEventLoop", self), context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast("asyncio.AbstractEventLoop", self))

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=cast("asyncio.AbstractEventLoop", self), **options)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(f"a task failed: {context}")
