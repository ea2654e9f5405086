"""What every test may use: one real cluster per session, started by the first test that asks for it."""

import asyncio
import functools
import gc
import os
import re
import signal
import textwrap
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from drover.jars import KAFKA_VERSION
from drover.local import LocalCluster, one_process_each
from drover.local import local_cluster as run_local_cluster
from drover.testing.shared_process import SharedProcess
from tests.memory import memory_directory
from tests.topics import delete_topics

# Two busy cores are slow now and then, and what a run finds must not depend on chance: the same examples every time.
# `--hypothesis-profile=search` draws new ones.
settings.register_profile("search", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("same")

pytest_plugins = ("tests.left_behind", "tests.worker_logs")

RUNNING = pytest.StashKey[LocalCluster | None]()
GROUP = pytest.StashKey[str]()
ROOT = Path(__file__).parents[1]

SHARED_CLUSTER = "shared-cluster"
# As a parameter, or by its name.
USES_SHARED_CLUSTER = re.compile(r'\blocal_cluster: |"local_cluster"')
# Folders whose tests share something that is started for them alone.
OWN_PARTS = frozenset({"docs", "faults", "local", "projections", "reality", "secure", "spark", "versions"})
# Live stories in which nobody kills a node, and those in which somebody does: each kind has a cluster of its own.
WITHOUT_KILLS, WITH_KILLS = "integration/without-kills", "integration/with-kills"
KILLS = re.compile(r"\bmark\.kills\(")
CLUSTER_GROUPS = (WITHOUT_KILLS, WITH_KILLS, SHARED_CLUSTER)
# About how long the long groups take on two quiet cores: the sooner these begin, the less waits for the last.
LONG_S = {
    WITHOUT_KILLS: 550,
    WITH_KILLS: 400,
    SHARED_CLUSTER: 370,
    "healing/test_live": 180,
    "healing/test_live_unreachable": 150,
    "faults": 150,
    "secure": 145,
    "docs": 140,
    "web/test_page": 80,
    "versions": 75,
    "reality": 60,
    "projections": 50,
    "local": 50,
    "simulation/test_crash_points": 40,
}
WORTH_TELLING_S = 0.5
# Holds the path of the file to which what failed is added: runs that belong together are told of at their end.
FAILURES = pytest.StashKey[str | None]()
TOLD_CHARACTERS = 800


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests that share the cluster run on another version of Kafka."""
    parser.addoption("--kafka", default=KAFKA_VERSION, help="the version of the shared cluster")
    parser.addoption("--zookeeper-mode", action="store_true", help="with its metadata in ZooKeeper (Kafka 3)")


def pytest_configure(config: pytest.Config) -> None:
    """Keep what the tests write in memory where there is plenty, unless PYTEST_DEBUG_TEMPROOT says where it goes."""
    # In the background of a shell this process ignores Ctrl-C, as would all that it starts: some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Collected tests live as long as the run, and garbage collection over them took a tenth of the time.
    gc.set_threshold(100_000, 20, 100)
    # Not for those that pytest starts: some tests run tests that are to fail.
    config.stash[FAILURES] = os.environ.pop("DROVER_TEST_FAILURES", None)
    place = memory_directory()
    if place is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LocalCluster]:
    """Four brokers in three racks and a ZooKeeper; a test that breaks a node mends it before it ends.

    Those that a test is marked to kill have a process each, the others share one. Every topic goes when the tests of a
    directory have ended.
    """
    kafka, zookeeper_mode = request.config.getoption("kafka"), request.config.getoption("zookeeper_mode")
    async with run_local_cluster(
        tmp_path_factory.mktemp("cluster"),
        brokers=4,
        racks=3,
        kafka=kafka,
        controllers=0 if zookeeper_mode else 1,
        start_nodes=one_process_each if zookeeper_mode else SharedProcess(killed_nodes(sharing(request))),
    ) as cluster:
        request.config.stash[RUNNING] = cluster
        yield cluster
        request.config.stash[RUNNING] = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember the group whose fixtures are being set up."""
    item.config.stash[GROUP] = group_of(item.path)


def sharing(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """Return the tests that will use this process's cluster."""
    items = request.session.items
    if not is_for_one_group(request.config):
        return items
    return [item for item in items if group_of(item.path) == request.config.stash[GROUP]]


def is_for_one_group(config: pytest.Config) -> bool:
    """Tell whether no second group will use this process's cluster.

    With a process for each group that uses one, every such group begins at once, and each in its own process.
    """
    workers: int = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    return workers >= len(CLUSTER_GROUPS)


def killed_nodes(items: Iterable[pytest.Item]) -> frozenset[int]:
    """Return the nodes that some of these tests end or pause."""
    return frozenset(node for item in items for mark in item.iter_markers("kills") for node in mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Delete the topics of a directory after its last test: brokers that keep hundreds are slow for the next.

    Take the cluster down once no further test of this process needs it.
    """
    yield
    cluster = item.config.stash.get(RUNNING, None)
    if cluster is None or nextitem is None:
        return
    if is_for_one_group(item.config) and group_of(nextitem.path) != group_of(item.path):
        item.config.stash[RUNNING] = None
        with ThreadPoolExecutor(1) as thread:  # the loop of the tests is this thread's
            thread.submit(asyncio.run, cluster.down()).result()
    elif nextitem.path.parent != item.path.parent:
        delete_topics(cluster.bootstrap, lambda name: not name.startswith("__"))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """Keeps in one process what shares something that takes long to start.

    Not `--dist loadgroup`: pytest-xdist 3.8.0 writes the group where pytest 9.2 does not look, and groups nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(ROOT / nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    return GroupScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the longest group begin first, where several processes share the tests."""
    gc.freeze()
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: -LONG_S.get(group_of(item.path), 0))


@functools.cache
def group_of(file: Path) -> str:
    """Name what shares a process: the users of the one cluster, a folder with something of its own, or a file."""
    folder = file.parent
    if folder.name == "integration":
        return WITH_KILLS if KILLS.search(file.read_text(encoding="utf-8")) else WITHOUT_KILLS
    if folder.name in OWN_PARTS:
        return folder.name
    texts = (path.read_text(encoding="utf-8") for path in (file, folder / "conftest.py") if path.exists())
    if any(USES_SHARED_CLUSTER.search(text) for text in texts):
        return SHARED_CLUSTER
    return f"{folder.name}/{file.stem}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the time went: by folder, or by file if there was only one. Keep what failed, if that is asked for."""
    failures = terminalreporter.config.stash[FAILURES]
    if failures is not None:
        broken = (one for kind in ("failed", "error") for one in terminalreporter.stats.get(kind, ()))
        with Path(failures).open("a", encoding="utf-8") as log:
            log.writelines(map(_failure, broken))
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


def _failure(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Tell of a failure in a few lines."""
    crash = getattr(report.longrepr, "reprcrash", None)
    where = "" if crash is None else f"  {crash.path}:{crash.lineno}\n"
    why = report.longreprtext[-TOLD_CHARACTERS:] if crash is None else crash.message[:TOLD_CHARACTERS]
    return f"FAILED {report.nodeid}\n{where}{textwrap.indent(why, '  ')}\n"
