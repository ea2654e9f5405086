"""The client for programs without an event loop: each method runs that of `Client` in the loop of a thread."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from drover.client.answers import Answer, Ownership, Sent
from drover.client.client import Client
from drover.client.history import ValidRecord
from drover.client.time_travel import Ended, Point
from drover.events.commands import Alter, Command
from drover.state.cluster import ClusterState
from drover.state.plans import Plan

Result = TypeVar("Result")


class SyncClient:
    """A `Client` whose methods block; a context manager. See `Client` for what they do, and for their errors.

    It may be used from one thread at a time. Ctrl-C ends a wait. Raises `RuntimeError` outside of the context.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    def from_settings(cls, config: str | os.PathLike[str] | None = None, *, cluster: str | None = None) -> "SyncClient":
        """Return a client with the settings that the command line would use, not connected yet."""
        return cls(Client.from_settings(config, cluster=cluster))

    @property
    def cluster(self) -> str:
        """The cluster of this client."""
        return self._client.cluster

    def __enter__(self) -> Self:
        """Connect."""
        if self._loop is not None:
            raise RuntimeError("this client is already connected: use it, or create another one")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="drover-client", daemon=True)
        self._thread.start()
        with ExitStack() as undoing:
            undoing.callback(self._end_loop)
            self._run(self._client.__aenter__())
            undoing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect. Idempotent."""
        if self._loop is None:
            return
        try:
            self._cancel_running()
            self._run(self._client.__aexit__(kind, error, trace))
            self._run(self._loop.shutdown_asyncgens())
        finally:
            self._end_loop()

    def submit(self, command: Command) -> Sent:
        """Write a command to its topic, and return once it is durable."""
        return self._run(self._client.submit(command))

    def submit_all(self, commands: Sequence[Command]) -> tuple[Sent, ...]:
        """Write commands in this order, and return once all are durable."""
        return self._run(self._client.submit_all(commands))

    def send(self, command: Command, timeout_s: float | None = None) -> Answer:
        """Write a command and await its recorded outcome."""
        return self._run(self._client.send(command, timeout_s))

    def send_all(self, commands: Sequence[Command], timeout_s: float | None = None) -> tuple[Answer, ...]:
        """Write commands of one cluster and await their recorded outcomes."""
        return self._run(self._client.send_all(commands, timeout_s))

    def outcomes(
        self,
        sent: Sequence[Sent],
        timeout_s: float | None = None,
        on_waiting: Callable[[Ownership | None], None] | None = None,
    ) -> tuple[Answer, ...]:
        """Await the recorded outcomes of commands of one cluster; `on_waiting` is called in the client's thread."""
        return self._run(self._client.outcomes(sent, timeout_s, on_waiting))

    def wait_for_plan(self, plan: str, *, cluster: str | None = None, timeout_s: float | None = None) -> Plan:
        """Wait until a plan has ended, and return it."""
        return self._run(self._client.wait_for_plan(plan, cluster=cluster, timeout_s=timeout_s))

    def wait_for_moves(self, answer: Answer, timeout_s: float | None = None) -> tuple[Ended, ...]:
        """Wait until each partition that a command has accepted has ended, and return how."""
        return self._run(self._client.wait_for_moves(answer, timeout_s))

    def replay(self, *, after: int | None = None, cluster: str | None = None) -> Iterator[ValidRecord]:
        """Yield every valid record about a cluster up to the log's present end."""
        return self._each(self._client.replay(after=after, cluster=cluster))

    def follow(self, *, after: int | None = None, cluster: str | None = None) -> Iterator[ValidRecord]:
        """Yield every new valid record about a cluster, for ever."""
        return self._each(self._client.follow(after=after, cluster=cluster))

    def state(self, at: Point | None = None, *, cluster: str | None = None) -> ClusterState:
        """Return the state of a cluster by the log, now or at a point of the past."""
        return self._run(self._client.state(at, cluster=cluster))

    def undo(self, plan: str, *, id: str, by: str, reason: str, cluster: str | None = None) -> Alter:  # noqa: A002 - the field's name
        """Return the command that takes back the completed moves of a plan."""
        return self._run(self._client.undo(plan, id=id, by=by, reason=reason, cluster=cluster))

    def _each(self, items: AsyncGenerator[Result, None]) -> Iterator[Result]:
        try:
            while True:
                try:
                    item = self._run(_next(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            # The end of the context has closed it already.
            if self._loop is not None:
                self._run(items.aclose())

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(
                "this client is not connected: use it within `with SyncClient.from_settings() as client`"
            )
        try:
            return asyncio.run_coroutine_threadsafe(self._tracked(coroutine), self._loop).result()
        except KeyboardInterrupt:
            self._cancel_running()
            raise

    async def _tracked(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        self._running.add(task)
        try:
            return await coroutine
        finally:
            self._running.discard(task)

    def _cancel_running(self) -> None:
        """Cancel what Ctrl-C has left running, and wait until its connections are closed."""
        assert self._loop is not None, "it runs"

        async def cancel() -> None:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()

    def _end_loop(self) -> None:
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        assert loop is not None, "it runs"
        assert thread is not None, "it runs"
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _next(items: AsyncGenerator[Result, None]) -> Result:
    return await anext(items)
