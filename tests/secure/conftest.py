"""One secure cluster for all tests of this folder, and a worker on it for those that want one."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local.layout import ADMIN, WORKER
from tests.integration.support import wait_for
from tests.secure.support import SecureCluster, Serving, secure_cluster, worker


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def secure(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecureCluster]:
    async with secure_cluster(tmp_path_factory.mktemp("secure")) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def serving(secure: SecureCluster) -> AsyncIterator[Serving]:
    """Topics made by the admin, something to move, and a worker."""
    made = await secure.drover("log", "init", config=secure.local.config_of(ADMIN))
    assert made.code == 0, made.errors
    directory = ("--dir", str(secure.local.directory))
    size = ("--partitions", "1", "--replicas", "2", "--megabytes")
    # A throttled follower still fetches up to 1 MiB in one go, so a partition of 1 MB could be copied at once.
    seeding = (
        secure.drover("local", "seed", topic, *size, megabytes, *directory, config=secure.local.config_file)
        for topic, megabytes in (("orders", "1"), ("slow", "10"))
    )
    for seeded in await asyncio.gather(*seeding):
        assert seeded.code == 0, seeded.errors
    async with worker(secure, secure.local.config_of(WORKER), "solo") as log:

        async def owned() -> bool:
            return "shards are owned" in log.read_text()

        await wait_for(owned, "the worker owns the shards")
        yield Serving(secure, log)
