"""Processor time of the page's server, without viewers and with: `python -m bench.page`.

A log in memory grows by 200 events a second, in batches of ten; the viewers, in a process of their own, read streams of
the same view. Processor time is compared within one run, so that other work on the machine matters little.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from functools import partial

import aiohttp
import psutil

from drover.web.query import Query, ViewName
from events.partitions import TopicPartition
from events.reassignments import Blocker, ReassignmentBlocked, ReassignmentUnblocked
from tests.integration.support import wait_for
from tests.web.scene import busy, partitions, place
from tests.web.showing import Showing, showing

EVENTS_PER_BATCH, BATCHES_PER_S = 10, 20
# As often as `drover.web.sources` tells viewers at most.
REFRESH_S = 0.1
PERIOD_S = 15.0


async def main(viewers: int, moves: int) -> None:
    """Measure, and print the figures as JSON."""
    async with showing(busy(moves)) as shown:
        alone = await _serve(shown)
        program = [sys.executable, "-m", "bench.page", "--read", f"{shown.address}/api/stream?view=now"]
        reading = await asyncio.create_subprocess_exec(*program, "--viewers", str(viewers))
        await wait_for(partial(_are_there, shown, viewers), "every viewer to come")
        rss_alone = psutil.Process().memory_info().rss
        watched = await _serve(shown)
        reading.terminate()
        await reading.wait()
        first_rows_ms = _first_rows_ms(shown)
    figures = {
        "viewers": viewers,
        "moves": moves,
        "events_per_s": EVENTS_PER_BATCH * BATCHES_PER_S,
        "core_share_without_viewers": round(alone, 3),
        "core_share_with_viewers": round(watched, 3),
        "memory_mb": round(rss_alone / 1e6),
        "document_of_first_page_ms": first_rows_ms,
    }
    print(json.dumps(figures, indent=1))


async def _are_there(shown: Showing, viewers: int) -> bool:
    return shown.page.channels.viewers >= viewers


async def _serve(shown: Showing) -> float:
    """Let the log grow for a while; returns processor time per second."""
    moves = list(partitions(shown.scene))[-400:]
    began_s, spent_s, number = time.monotonic(), time.process_time(), 0
    refreshed_s = began_s
    while time.monotonic() - began_s < PERIOD_S:
        shown.scene.say(*_events(moves, number))
        number += 1
        if time.monotonic() - refreshed_s >= REFRESH_S:
            refreshed_s = time.monotonic()
            shown.refresh()
        await asyncio.sleep(max(0.0, began_s + number / BATCHES_PER_S - time.monotonic()))
    return (time.process_time() - spent_s) / (time.monotonic() - began_s)


def _events(moves: Sequence[TopicPartition], number: int) -> list[ReassignmentBlocked | ReassignmentUnblocked]:
    """Block ten moves, and unblock them with the batch after it."""
    first = number // 2 * EVENTS_PER_BATCH % (len(moves) - EVENTS_PER_BATCH)
    chosen = moves[first : first + EVENTS_PER_BATCH]
    if number % 2:
        return [ReassignmentUnblocked(**place(key)) for key in chosen]
    return [ReassignmentBlocked(**place(key), why=Blocker.NO_LEADER, detail="it must return") for key in chosen]


def _first_rows_ms(shown: Showing) -> float:
    began_s = time.process_time()
    shown.page.build(Query(ViewName.PLAN))
    return round((time.process_time() - began_s) * 1000, 1)


async def read(address: str, viewers: int) -> None:
    """Read as many streams, for ever."""

    async def view(session: aiohttp.ClientSession) -> None:
        async with session.get(address) as response:
            async for _ in response.content.iter_any():
                pass

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        await asyncio.gather(*(view(session) for _ in range(viewers)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--moves", type=int, default=10_000)
    parser.add_argument("--read", metavar="ADDRESS")
    asked = parser.parse_args()
    asyncio.run(read(asked.read, asked.viewers) if asked.read else main(asked.viewers, asked.moves))
