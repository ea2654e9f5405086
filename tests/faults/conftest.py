"""One cluster for every scenario of this package, as each mends what it broke."""

import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalCluster
from tests.faults.disks import Disk
from tests.faults.stage import breakable_cluster


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[LocalCluster, Disk]]:
    """A cluster that no other test uses, and the disk of one of its brokers; nothing of it is left afterwards."""
    async with breakable_cluster(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(autouse=True)
def few_words(caplog: pytest.LogCaptureFixture) -> None:
    """The clients complain thousands of times about brokers that are down on purpose."""
    caplog.set_level(logging.CRITICAL, "aiokafka")
    caplog.set_level(logging.CRITICAL, "kafka")
