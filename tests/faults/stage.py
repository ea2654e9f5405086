"""A cluster that may be broken, and the command that plays a run again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from drover.local import LocalCluster
from tests.commands import start_forkserver
from tests.faults.disks import Disk, small_disk
from tests.faults.oracles import Processes
from tests.faults.play import Report

BROKERS, RACKS = 4, 3
SMALL_DISK_BROKER = 4


@asynccontextmanager
async def breakable_cluster(
    directory: Path, *, simulated_disk: bool = False
) -> AsyncIterator[tuple[LocalCluster, Disk]]:
    """Run a cluster one of whose brokers has a small disk; a process that is left afterwards is an AssertionError."""
    start_forkserver()  # it stays for the tests that come next
    before = Processes.now()
    cluster = LocalCluster(directory)
    with small_disk(cluster, SMALL_DISK_BROKER, simulated=simulated_disk) as disk:
        try:
            await cluster.up(BROKERS, RACKS)
            yield cluster, disk
        finally:
            await cluster.down()
    assert before.left_behind() == []


def command(report: Report, *, long: bool = False) -> str:
    """The one command that plays it again."""
    return f"python -m tests.faults {report.scenario} --seed {report.seed}{' --long' if long else ''}"
