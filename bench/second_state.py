"""The cost of keeping a speculative state beside the folded one: `python -m bench.second_state`."""

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from bench.core_site import CLUSTER, Site
from bench.owner import Owner
from drover.fold import log as fold
from drover.shard import managed
from drover.state.scheduling import Limits


def timed(module: Any, name: str) -> list[float]:
    """Add up the processor time of a function of a module."""
    spent = [0.0]
    inner: Callable[..., Any] = getattr(module, name)

    def outer(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return inner(*arguments)
        finally:
            spent[0] += time.process_time() - began

    setattr(module, name, outer)
    return spent


async def measure() -> None:
    """Move some of 13,750 partitions, and print the shares."""
    folded, speculative = timed(fold, "apply_all"), timed(managed, "apply")
    site = Site(brokers=100, topics=4, partitions=13_750)
    limits = Limits(max_partitions_in_flight=1250, max_moves_per_broker=40)
    owner = Owner({CLUSTER: limits}, {CLUSTER: site.driver}, site.now)
    began = time.process_time()
    await site.alter_all(owner)
    for _ in range(60):
        await site.step(owner, 25)
    total = time.process_time() - began
    tracemalloc.start()
    twin = owner.fold.state.copy()
    kib = tracemalloc.get_traced_memory()[0] // 1024
    print(f"processor time: {total:.2f} s, folding events {folded[0]:.3f} s, speculating {speculative[0]:.3f} s")
    print(f"memory of the second state: {kib} KiB for {len(twin.cluster(CLUSTER).reassignments)} reassignments")


if __name__ == "__main__":
    asyncio.run(measure())
