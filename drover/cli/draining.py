"""Waiting until the leaders of a broker are where a command wants them, as the log says."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import Enum

from drover.cli.exits import ExitCode, Failure
from drover.cli.output import plural
from drover.client.watching import View, watch
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState
from drover.state.leaders import KeptOrder

PAUSE_S = 0.5


class Waiting(Enum):
    """How far the leaders of a broker are: on their way, where they belong, or not to be waited for."""

    GOES_ON = "goes on"
    IS_DONE = "is done"
    IS_LAZY = "is lazy"
    IS_OVER = "is over"


def wait_for_leaders(connection: LogConnection, cluster: str, broker: int, timeout_s: float, *, drained: bool) -> str:
    """Wait until the log says that nothing is left to do, and return that as a sentence.

    Raises:
        Failure: that is not so after `timeout_s`, or cannot become so; what was begun goes on.
    """
    return asyncio.run(_wait(watch(connection, cluster, PAUSE_S), cluster, broker, timeout_s, drained=drained))


async def _wait(
    views: AsyncGenerator[View, None], cluster: str, broker: int, timeout_s: float, *, drained: bool
) -> str:
    deadline = time.monotonic() + timeout_s
    state = ClusterState(cluster)
    async with aclosing(views) as watching:
        async for view in watching:
            state = view.log.cluster(cluster)
            found = (
                drained_as_far(state, broker, view.log.time_of(cluster)) if drained else restored_as_far(state, broker)
            )
            if found is Waiting.IS_DONE:
                return _sentence(state, broker, drained=drained)
            if found is not Waiting.GOES_ON or time.monotonic() > deadline:
                break
        else:
            found = Waiting.GOES_ON
    raise Failure(_why(state, broker, found), ExitCode.UNFINISHED)


def drained_as_far(state: ClusterState, broker: int, at_ms: int) -> Waiting:
    """Tell how far a drain is; it is done when a count that is younger than the listing shows that nothing is led.

    `at_ms` is the log's time. A count that is still to come is an old one, by a clock that was far ahead.
    """
    listing = state.listings.get(broker)
    if listing is None:
        return Waiting.IS_OVER
    tally = state.leader_counts.get(broker)
    if tally is None or not listing.since_ms <= tally.at_ms <= at_ms or state.leaders_under_way:
        return Waiting.GOES_ON
    if not tally.leaders:
        return Waiting.IS_DONE
    return Waiting.IS_LAZY if state.limits.lazy_leadership and state.balance is None else Waiting.GOES_ON


def restored_as_far(state: ClusterState, broker: int) -> Waiting:
    """Tell how far the undo of a drain is; it is done when the broker is in its place in every list of Drover's order.

    Other brokers may still be listed. An order that somebody else has set is not waited for.
    """
    if broker in state.blacklist:
        return Waiting.IS_OVER
    away = any(
        broker in kept.canonical and not kept.left_alone and not _is_in_order(kept, state.listed_for(key.topic))
        for key, kept in state.orders.items()
    )
    return Waiting.GOES_ON if away or state.leaders_under_way else Waiting.IS_DONE


def _is_in_order(kept: KeptOrder, listed: frozenset[int]) -> bool:
    """Whether the brokers that may lead are in their canonical order; a list goes back to it before it is forgotten."""
    if listed.isdisjoint(kept.canonical):
        return False
    here, canonical = ([one for one in order if one not in listed] for order in (kept.replicas, kept.canonical))
    return here == canonical


def _sentence(state: ClusterState, broker: int, *, drained: bool) -> str:
    if drained:
        return f"Broker {broker} of {state.name} leads nothing."
    return f"The canonical order of every list with broker {broker} of {state.name} is back."


def _why(state: ClusterState, broker: int, found: Waiting) -> str:
    if found is Waiting.IS_OVER:
        is_listed = "is on the list again" if broker in state.blacklist else "is not on the list any more"
        return f"broker {broker} {is_listed}: somebody has changed it since; see `drover leaders show`"
    if found is Waiting.IS_LAZY:
        return (
            f"broker {broker} is listed, and leadership of {state.name} is lazy: no leader moves before "
            "`drover leaders balance` asks for elections"
        )
    tally = state.leader_counts.get(broker)
    leads = "an unknown number of partitions" if tally is None else plural(tally.leaders, "partition")
    return f"broker {broker} leads {leads}, {len(state.waiting)} wait: see `drover leaders show`. The work goes on."
