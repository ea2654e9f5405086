"""Waiting until the leaders of a broker are where a command wants them, as the log says."""

import asyncio
import time

from drover.cli.exits import ExitCode, Failure
from drover.cli.output import say
from drover.cli.submitting import Request
from drover.client.history import fold_shards
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState

_LOOK_EVERY_S = 0.5


def wait_for_leaders(connection: LogConnection, request: Request, broker: int, since_ms: int, *, drained: bool) -> None:
    """Wait until a count that is younger than the command shows that nothing is left to do; say what waits.

    Raises:
        Failure: that is not so when the request's time is over; the work goes on.
    """
    deadline = time.monotonic() + (request.timeout_s or 0)
    while True:
        state = asyncio.run(_state(connection, request.cluster))
        done = state is not None and is_done(state, broker, since_ms, drained=drained)
        if state is not None and done:
            say(_sentence(state, broker, drained=drained))
            return
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_EVERY_S)
    leads = "an unknown number of" if state is None else _leads(state, broker)
    waiting = 0 if state is None else len(state.waiting)
    raise Failure(
        f"broker {broker} leads {leads} partitions, {waiting} wait: see `drover leaders show`. The work goes on.",
        ExitCode.UNFINISHED,
    )


def is_done(state: ClusterState, broker: int, since_ms: int, *, drained: bool) -> bool:
    """Whether nothing is left to do: the broker leads nothing, or every canonical order is back."""
    if state.elections:
        return False
    if not drained:
        return broker in state.blacklist or not any(broker in kept.canonical for kept in state.orders.values())
    tally = state.leader_counts.get(broker)
    return tally is not None and tally.at_ms >= since_ms and tally.leaders == 0


def _sentence(state: ClusterState, broker: int, *, drained: bool) -> str:
    if drained:
        return f"Broker {broker} of {state.name} leads nothing."
    return f"The canonical order of every list with broker {broker} of {state.name} is back."


def _leads(state: ClusterState, broker: int) -> str:
    tally = state.leader_counts.get(broker)
    return "an unknown number of" if tally is None else str(tally.leaders)


async def _state(connection: LogConnection, cluster: str) -> ClusterState | None:
    (fold,) = (await fold_shards(connection, cluster)).folds.values()
    return fold.state.clusters.get(cluster)
