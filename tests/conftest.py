"""What every test may use: one real cluster per session, started by the first test that asks for it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalCluster
from drover.local import local_cluster as run_local_cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local_cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    """Four brokers in three racks and a ZooKeeper; a test that breaks a node mends it before it ends."""
    async with run_local_cluster(tmp_path_factory.mktemp("cluster"), brokers=4, racks=3) as cluster:
        yield cluster
