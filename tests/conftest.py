"""What every test may use: one real cluster per session, started by the first test that asks for it."""

import functools
import gc
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Generator, Iterable
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
from tests.logins import kerberos
from tests.memory import memory_directory
from tests.topics import delete_topics

# Two busy cores are slow now and then, and what a run finds must not depend on chance: the same examples every time.
# `--hypothesis-profile=search` draws new ones.
settings.register_profile("search", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("same")

pytest_plugins = ("tests.left_behind", "tests.worker_logs")

RUNNING = pytest.StashKey[LocalCluster | None]()
ROOT = Path(__file__).parents[1]

# Whoever uses the cluster of the session names it, as a parameter or by its name.
SHARED_CLUSTER = "shared-cluster"
USES_SHARED_CLUSTER = re.compile(r'\blocal_cluster: |"local_cluster"')
# Folders whose stories share something that is started for them alone.
SHARING_FOLDERS = frozenset({"faults", "integration", "logins", "secure", "spark"})
# Stories that kill nodes get a cluster apart from those that need every node.
WITH_KILLS = "integration/with-kills"
# They begin first, so that a short group is the last one to end.
LONGEST_GROUPS = frozenset({SHARED_CLUSTER, WITH_KILLS, *SHARING_FOLDERS})
SHOWN_S = 0.5


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
        start_nodes=one_process_each if zookeeper_mode else SharedProcess(killed_nodes(request.session.items)),
    ) as cluster:
        request.config.stash[RUNNING] = cluster
        yield cluster
        request.config.stash[RUNNING] = None


def killed_nodes(items: Iterable[pytest.Item]) -> frozenset[int]:
    """Return the nodes that some of these tests end or pause."""
    return frozenset(node for item in items for mark in item.iter_markers("kills") for node in mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Delete the topics of a directory after its last test: brokers that keep hundreds are slow for the next."""
    yield
    cluster = item.config.stash.get(RUNNING, None)
    if cluster is not None and nextitem is not None and nextitem.path.parent != item.path.parent:
        delete_topics(cluster.bootstrap, lambda name: not name.startswith("__"))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """Keeps in one process the tests that share something that takes long to start.

    Not `--dist loadgroup`: pytest-xdist 3.8.0 writes the group where pytest 9.2 does not look, and groups nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(ROOT / nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    return GroupScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the longest groups begin first, where several processes share the tests; leave out what cannot be run."""
    gc.freeze()
    needing_kerberos = [item for item in items if item.get_closest_marker("kerberos") is not None]
    if needing_kerberos and kerberos.missing():
        config.hook.pytest_deselected(items=needing_kerberos)
        items[:] = [item for item in items if item not in needing_kerberos]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: group_of(item.path) not in LONGEST_GROUPS)


@functools.cache
def group_of(file: Path) -> str:
    """Name the group whose tests run in one process: stories of a folder, users of the shared cluster, or a file."""
    folder = file.parent
    text = file.read_text(encoding="utf-8")
    if folder.name in SHARING_FOLDERS and "mark.story" in text:
        return f"{folder.name}/with-kills" if "mark.kills(" in text else folder.name
    fixtures = folder / "conftest.py"
    texts = (text, fixtures.read_text(encoding="utf-8") if fixtures.exists() else "")
    if any(USES_SHARED_CLUSTER.search(text) for text in texts):
        return SHARED_CLUSTER
    return f"{folder.name}/{file.stem}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show where the time went: by folder, or by file if there was only one folder."""
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    folders = {Path(report.nodeid.partition("::")[0]).parent for report in reports}
    seconds: defaultdict[Path, float] = defaultdict(float)
    tests: Counter[Path] = Counter()
    for report in reports:
        file = Path(report.nodeid.partition("::")[0])
        place = file.parent if len(folders) > 1 else file
        seconds[place] += report.duration
        tests[place] += report.when == "call"
    terminalreporter.section("where the time went")
    for place, duration_s in sorted(seconds.items(), key=lambda entry: -entry[1]):
        if duration_s >= SHOWN_S:
            terminalreporter.line(f"{duration_s:7.1f} s  {tests[place]:5} tests  {place}")
    has_stories = "not story" not in terminalreporter.config.option.markexpr
    if has_stories and any(folder.name == "logins" for folder in folders) and (lacking := kerberos.missing()):
        notice = f"NOT RUN: the stories of Kerberos need {', '.join(lacking)} ({kerberos.REMEDY})"
        terminalreporter.line(notice, yellow=True)
