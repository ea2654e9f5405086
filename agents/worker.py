"""The life of a worker process: its signals, its heartbeat, and the order in which it stops."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import structlog

from drover.agents.app import CommandGroup
from drover.agents.host import ShardHost
from drover.agents.services import BesideWorker
from drover.agents.watchdog import EXIT_FAULT, Watchdog
from drover.errors import DroverError, GroupNotLeftError
from drover.service.health import Check
from drover.service.process import collect_rarely

Work = Callable[[asyncio.Event, Watchdog], Awaitable[None]]
_log = structlog.get_logger(__name__)


def run_process(work: Work) -> int:
    """Run `work` in an event loop that a watchdog guards, and return the process's exit code.

    SIGTERM and SIGINT set the event that `work` is given. A fault while it runs ends the process with 70, a stop that
    takes too long with 71.
    """
    collect_rarely()
    watchdog = Watchdog()
    watchdog.start()
    try:
        asyncio.run(_serve(work, watchdog))
    finally:
        watchdog.close()
    return 0


async def _serve(work: Work, watchdog: Watchdog) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    beating = asyncio.create_task(_beat(watchdog))
    try:
        await work(stop, watchdog)
    except GroupNotLeftError as error:
        _log.warning("ending without leaving the group", why=str(error))
        # Our own parts are closed; do not wait for Faust's thread, which waits for a broker or another member.
        os._exit(0)
    except DroverError:
        # A fault of the world: the command line reports it, with its own exit code.
        raise
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a supervisor: it ends the process, and says why
        reason = "a fault while it ran or stopped"
        _log.critical("the worker ends", reason=reason, error=repr(error), exit_code=EXIT_FAULT, exc_info=error)
        os._exit(EXIT_FAULT)
    finally:
        beating.cancel()


async def _beat(watchdog: Watchdog) -> None:
    while True:
        watchdog.beat()
        await asyncio.sleep(0.5)


async def run_until_stopped(
    host: ShardHost, group: CommandGroup, stop: asyncio.Event, watchdog: Watchdog, beside: BesideWorker | None = None
) -> None:
    """Run the host and its group until `stop` is set, then end both: decisions first, then the group, then the log.

    `beside` is asked to end first, so that it ends meanwhile; its creator closes it.

    Raises the error that kept the host from starting, or `GroupNotLeftError` if only the group could not be ended.
    """
    stopped = asyncio.create_task(stop.wait())
    working = asyncio.create_task(_work(host, group))
    await asyncio.wait((stopped, working), return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        stopped.cancel()
        await host.stop()
        # The host did not start; the error says why.
        await working
        return
    _log.info("stopping")
    if beside is not None:
        beside.end()
    watchdog.stopping("writing its last records")
    await host.close_shards()
    try:
        if host.is_replayed:
            watchdog.stopping("leaving the group")
            await group.stop()
    finally:
        watchdog.stopping("closing the log and the clusters")
        working.cancel()
        await asyncio.wait((working,))
        await host.stop()
    _log.info("stopped")


async def _work(host: ShardHost, group: CommandGroup) -> None:
    await host.start()
    try:
        await group.start()
        await group.wait_until_ended()
    except Exception as error:  # noqa: BLE001 - Faust is half started: only ending the process is certain to work
        if not host.is_closing:
            host.fail("the consumer group failed", error)
        _log.warning("the group was still being joined when the worker was stopped", error=repr(error))
    if not host.is_closing:
        host.fail("the consumer group ended without being asked to", None)


def readiness(host: ShardHost, beside: BesideWorker | None = None) -> tuple[Check, ...]:
    """Return for `/readyz` whether the log is replayed, the group joined and every assigned shard owned."""
    waiting = [shard.number for shard in host.shards if shard.unowned_since is not None]
    return (
        Check("log", ok=host.is_replayed, detail="replayed" if host.is_replayed else "replaying"),
        Check("group", ok=host.is_joined, detail="assigned" if host.is_joined else "no assignment yet"),
        Check("shards", ok=not waiting, detail=f"assigned but unowned: {waiting}" if waiting else ""),
        *(() if beside is None else beside.notes()),
    )
