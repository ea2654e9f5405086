"""The short form of every scenario: a fixed seed, one round of each fault."""

from pathlib import Path

import pytest

from drover.local import LocalCluster
from tests.faults.disks import Disk
from tests.faults.play import Report, play
from tests.faults.scenarios import SCENARIOS, SHORT
from tests.faults.stage import command

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(400)]
SEED = 1


async def _play(name: str, stage: tuple[LocalCluster, Disk], directory: Path) -> Report:
    cluster, disk = stage
    report = await play(SCENARIOS[name], SHORT, SEED, cluster, disk, directory)
    print(report)
    assert report.faults == [], f"play it again: {command(report)}"
    return report


async def test_a_storm_of_every_fault_loses_no_record_and_no_command(
    stage: tuple[LocalCluster, Disk], tmp_path: Path
) -> None:
    report = await _play("storm", stage, tmp_path)
    assert report.count("records", "acknowledged") > 5000
    assert report.count("reassignments ended", "reassignment-completed") >= 10
    assert report.count("workers ended", "SIGKILL") >= 2


async def test_kafkas_own_matrix_of_bounces_loses_no_record_at_a_thousand_a_second(
    stage: tuple[LocalCluster, Disk], tmp_path: Path
) -> None:
    report = await _play("matrix", stage, tmp_path)
    assert report.count("records", "acknowledged") > 10_000
    assert report.count("reassignments ended", "reassignment-completed") >= 15
