"""One cluster's state at the present end of the log, for commands that only look."""

import asyncio

from drover.client.history import fold_cluster
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState


async def read_state(connection: LogConnection, cluster: str) -> ClusterState:
    """Fold the log of a cluster; an empty state if the log has nothing on it. Raises `LogUnavailableError`."""
    return await fold_cluster(connection, cluster)


def state_now(connection: LogConnection, cluster: str) -> ClusterState:
    """Do the same where no loop runs."""
    return asyncio.run(read_state(connection, cluster))
