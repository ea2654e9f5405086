"""An event loop whose time passes only while nothing is ready to run: minutes of waiting take no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from drover.agents.clock import WALL_MS

Result = TypeVar("Result")

# The Unix time at which every loop begins.
BEGIN_S = 1_700_000_000
# The tasks of a simulated process, which are cancelled to end it; a dict, so that they end in the order of their start.
ProcessTasks = dict[asyncio.Task[Any], None]
_STARTING_TASKS_OF: ContextVar[ProcessTasks | None] = ContextVar("_STARTING_TASKS_OF", default=None)


class NothingWillHappenError(AssertionError):
    """Every task waits for another one."""


class _SkippingSelector(selectors.SelectSelector):
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
    """Skips every wait. Functions for an executor run in the loop, too, so that the order never varies."""

    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)
        self.set_task_factory(_new_task)

    def time(self) -> float:
        """Return the seconds that were skipped."""
        return self._skipping.skipped_s

    def wall_ms(self) -> int:
        """Return the wall clock's time."""
        return int((BEGIN_S + self._skipping.skipped_s) * 1000)

    def run_in_executor(  # type: ignore[override]  # typeshed says that this is a coroutine function
        self, executor: object, function: Callable[..., Result], *arguments: Any
    ) -> "asyncio.Future[Result]":
        """Run `function` in a task."""
        del executor
        return self.create_task(_called(function, arguments))

    def new_context(self) -> Context:
        """Return a copy of the present context in which wall clocks show this loop's time."""
        context = copy_context()
        context.run(WALL_MS.set, self.wall_ms)
        return context


async def _called(function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    return function(*arguments)


def _new_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    tasks = _STARTING_TASKS_OF.get()
    if tasks is not None:
        tasks[task] = None
        task.add_done_callback(lambda ended: tasks.pop(ended, None))
    return task


@contextmanager
def starting_tasks_of(process: ProcessTasks | None) -> Iterator[None]:
    """Add the tasks that start in this block, and those that they start, to a process's; None: to no process's."""
    token = _STARTING_TASKS_OF.set(process)
    try:
        yield
    finally:
        _STARTING_TASKS_OF.reset(token)


def run_in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on a loop of its own, as `asyncio.run` does."""
    loop = VirtualLoop()
    try:
        return loop.new_context().run(loop.run_until_complete, main)
    finally:
        loop.close()
