"""What every test may use: one real cluster per session, started by the first test that asks for it."""

from collections.abc import AsyncIterator, Generator

import pytest
import pytest_asyncio
from kafka.admin import KafkaAdminClient

from drover.local import LocalCluster
from drover.local import local_cluster as run_local_cluster

RUNNING = pytest.StashKey[LocalCluster]()
TOPICS_PER_CALL = 50


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LocalCluster]:
    """Four brokers in three racks and a ZooKeeper; a test that breaks a node mends it before it ends.

    Every topic goes when the tests of a directory have ended.
    """
    async with run_local_cluster(tmp_path_factory.mktemp("cluster"), brokers=4, racks=3) as cluster:
        request.config.stash[RUNNING] = cluster
        yield cluster
        del request.config.stash[RUNNING]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Delete the topics of a directory after its last test: brokers that keep hundreds are slow for the next."""
    yield
    cluster = item.config.stash.get(RUNNING, None)
    if cluster is not None and nextitem is not None and nextitem.path.parent != item.path.parent:
        _delete_topics(cluster.bootstrap)


def _delete_topics(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        names = [name for name in admin.list_topics() if not name.startswith("__")]
        for first in range(0, len(names), TOPICS_PER_CALL):
            admin.delete_topics(names[first : first + TOPICS_PER_CALL])
    finally:
        admin.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a directory's tests in one process: they share what takes long to start."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))
