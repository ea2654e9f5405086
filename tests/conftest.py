"""What every test may use: one real cluster per session, started by the first test that asks for it."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from kafka.admin import KafkaAdminClient

from drover.local import LocalCluster
from drover.local import local_cluster as run_local_cluster

RUNNING = pytest.StashKey[LocalCluster]()
TOPICS_PER_CALL = 50

SHARED_CLUSTER = "shared-cluster"
# Folders whose tests share something that is started for them alone.
OWN_PARTS = frozenset({"faults", "local", "projections", "secure", "spark"})
# How long the long groups take on two quiet cores, measured: the sooner these begin, the less waits for the last.
LONG_S = {
    SHARED_CLUSTER: 300,
    "faults": 150,
    "secure": 90,
    "simulation/test_seeds": 80,
}
WORTH_TELLING_S = 0.5


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep in one process what shares something that takes long to start, and let the longest begin first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: -LONG_S.get(group_of(item), 0))


def group_of(item: pytest.Item) -> str:
    """Name what shares a process: the users of the one cluster, a folder with something of its own, or a file."""
    folder = item.path.parent.name
    if item.get_closest_marker("cluster") and folder not in OWN_PARTS:
        return SHARED_CLUSTER
    return folder if folder in OWN_PARTS else f"{folder}/{item.path.stem}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the time went: by folder, or by file if there was only one."""
    reports = [one for kind in terminalreporter.stats.values() for one in kind if isinstance(one, pytest.TestReport)]
    folders = {Path(report.nodeid.partition("::")[0]).parent for report in reports}
    seconds: defaultdict[Path, float] = defaultdict(float)
    tests: Counter[Path] = Counter()
    for report in reports:
        file = Path(report.nodeid.partition("::")[0])
        place = file.parent if len(folders) > 1 else file
        seconds[place] += report.duration
        tests[place] += report.when == "call"
    terminalreporter.section("where the time went")
    for place, spent in sorted(seconds.items(), key=lambda entry: -entry[1]):
        if spent >= WORTH_TELLING_S:
            terminalreporter.line(f"{spent:7.1f} s  {tests[place]:5} tests  {place}")
