"""The cluster under test: the simulated counterpart of three versions, and the real one for tests marked `cluster`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.events.traits import Traits
from drover.local import LocalCluster
from drover.traits import LATEST, known_traits
from tests.cluster.support import ClusterUnderTest, SimulatedCluster, real_cluster

REAL = "real"
SIMULATED = {
    "simulated": LATEST,
    "simulated 3.9": known_traits("3.9"),
    "simulated ZooKeeper mode": known_traits("3.9", zookeeper_mode=True),
}


@pytest.fixture(scope="module", params=[*SIMULATED, pytest.param(REAL, marks=pytest.mark.cluster)])
def local(request: pytest.FixtureRequest) -> LocalCluster | Traits:
    """Start the real cluster only for the tests that run on it; a twin is made of its traits."""
    if request.param != REAL:
        return SIMULATED[request.param]
    started: LocalCluster = request.getfixturevalue("local_cluster")
    return started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(local: LocalCluster | Traits) -> AsyncIterator[ClusterUnderTest]:
    if isinstance(local, Traits):
        yield SimulatedCluster(local)
        return
    real = await real_cluster(local)
    yield real
    await real.close()
