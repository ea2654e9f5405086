"""The cluster under test: the simulated twin, and the real one for tests marked `cluster`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalCluster
from drover.traits import LATEST
from tests.cluster.support import ClusterUnderTest, RealCluster, SimulatedCluster


@pytest.fixture(scope="module", params=["simulated", pytest.param("real", marks=pytest.mark.cluster)])
def local(request: pytest.FixtureRequest) -> LocalCluster | None:
    """Start the real cluster only for the tests that run on it."""
    if request.param == "simulated":
        return None
    started: LocalCluster = request.getfixturevalue("local_cluster")
    return started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(local: LocalCluster | None) -> AsyncIterator[ClusterUnderTest]:
    if local is None:
        yield SimulatedCluster(LATEST)
        return
    real = RealCluster(local)
    yield real
    await real.close()
