"""One secure cluster for all tests of this folder."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.secure.support import SecureCluster, secure_cluster


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def secure(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecureCluster]:
    async with secure_cluster(tmp_path_factory.mktemp("secure")) as cluster:
        yield cluster
