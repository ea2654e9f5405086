"""The stores that the contract and the writers are tested on: a real ZooKeeper, and the twin in memory."""

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalZooKeeper
from drover.projections.memory import MemoryStore
from drover.projections.store import Store
from tests.projections.rig import zookeeper_store

_roots = itertools.count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalZooKeeper]:
    """One real ZooKeeper; a test that breaks it mends it before it ends."""
    real = LocalZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    await real.start()
    yield real
    await real.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def real_store(zookeeper: LocalZooKeeper) -> AsyncIterator[Store]:
    """A connection to it."""
    made = zookeeper_store(zookeeper)
    yield made
    await made.close()


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.story)])
def real_zookeeper(request: pytest.FixtureRequest) -> LocalZooKeeper | None:
    """Start the real ZooKeeper only for the tests that run on it; an asynchronous fixture could not start it."""
    if request.param == "memory":
        return None
    zookeeper: LocalZooKeeper = request.getfixturevalue("zookeeper")
    return zookeeper


@pytest_asyncio.fixture(loop_scope="session")
async def store(real_zookeeper: LocalZooKeeper | None) -> AsyncIterator[Store]:
    """Each store in turn."""
    made = MemoryStore() if real_zookeeper is None else zookeeper_store(real_zookeeper)
    yield made
    await made.close()


@pytest.fixture
def root() -> str:
    """A place in the store that no other test uses."""
    return f"/drover-{next(_roots)}"
