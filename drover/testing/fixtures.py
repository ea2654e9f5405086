"""Fixtures for tests with pytest-asyncio; docs/testing-your-tools.md shows how they are used.

Override those that end in `_settings` in a `conftest.py` or a test file. Fixtures import the rest of Drover only when a
test uses them, since every run of pytest in an environment that has Drover imports this module.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from drover.local import LocalCluster
    from drover.testing.in_memory import ModelInstallation, ModelSettings
    from drover.testing.local import LocalClusterSettings, LocalInstallation, LocalSettings

# Keeps the topics of a run's tests apart on the cluster.
_NUMBERS = count(1)


@pytest.fixture
def drover_model_settings() -> "ModelSettings":
    """The settings of a test's model installation."""
    from drover.testing.in_memory import ModelSettings  # noqa: PLC0415 - see above

    return ModelSettings()


@pytest_asyncio.fixture
async def drover_model(drover_model_settings: "ModelSettings") -> "AsyncIterator[ModelInstallation]":
    """A model installation of the test's own."""
    from drover.testing.in_memory import model_installation  # noqa: PLC0415 - see above

    async with model_installation(drover_model_settings) as installation:
        yield installation


@pytest.fixture(scope="session")
def drover_local_cluster_settings() -> "LocalClusterSettings":
    """The size of the local cluster, and its version of Kafka."""
    from drover.testing.local import LocalClusterSettings  # noqa: PLC0415 - see above

    return LocalClusterSettings()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def drover_local_cluster(
    drover_local_cluster_settings: "LocalClusterSettings", tmp_path_factory: pytest.TempPathFactory
) -> "AsyncIterator[LocalCluster]":
    """One real cluster for all tests; it may be used in any event loop."""
    async with drover_local_cluster_settings.running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def drover_local_settings() -> "LocalSettings":
    """The settings of a test's local installation; a number is added to the prefix."""
    from drover.testing.local import LocalSettings  # noqa: PLC0415 - see above

    return LocalSettings()


@pytest_asyncio.fixture
async def drover_local(
    drover_local_cluster: "LocalCluster", drover_local_settings: "LocalSettings", tmp_path: Path
) -> "AsyncIterator[LocalInstallation]":
    """An installation of the test's own on the cluster of all tests."""
    from drover.testing.local import local_installation  # noqa: PLC0415 - see above

    settings = replace(drover_local_settings, prefix=f"{drover_local_settings.prefix}-{next(_NUMBERS)}")
    async with local_installation(drover_local_cluster, tmp_path, settings) as installation:
        yield installation
