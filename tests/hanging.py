"""A cluster that answers nobody for a while."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drover.local import LocalCluster


@asynccontextmanager
async def hanging(cluster: LocalCluster) -> AsyncIterator[None]:
    """Stop the process of every broker for the length of a block; afterwards the cluster serves again."""
    processes = {cluster.pid(broker.id) for broker in cluster.spec.brokers}
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
        await cluster.wait_until_serving()
