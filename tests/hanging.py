"""A cluster that answers nobody for a while."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from drover.local import LocalCluster
from drover.local.deadline import wait_until


@asynccontextmanager
async def hanging(cluster: LocalCluster) -> AsyncIterator[None]:
    """Stop the process of every broker for the length of a block; afterwards the cluster serves again."""
    processes = {cluster.pid(broker.id) for broker in cluster.spec.brokers}
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        await wait_until(lambda: all(map(_stands_still, processes)), what="every thread of the brokers to stop")
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
        await cluster.wait_until_serving()


def _stands_still(process: int) -> bool:
    """Whether every thread has stopped; on a busy machine a broker can still answer just after SIGSTOP."""
    states = (file.read_text().rpartition(") ")[2][0] for file in Path(f"/proc/{process}/task").glob("*/stat"))
    return all(state == "T" for state in states)
