"""One Drover with one worker for the tests that need no second."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalCluster
from tests.integration.support import Installation, installation


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def drover(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """A Drover whose single worker owns every shard."""
    async with installation(
        local_cluster, tmp_path_factory.mktemp("drover"), "whole", max_moves_per_broker=500
    ) as made:
        await made.start_worker("solo")
        await made.wait_until_owned("solo")
        yield made
