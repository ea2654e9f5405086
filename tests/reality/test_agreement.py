"""Model and reality side by side: random scripts whose every answer and every rest must be the same on both."""

import pytest

from drover.local import LocalCluster
from tests.reality.real import RealCluster
from tests.reality.recorder import Disagreement, run_batch
from tests.reality.scripts import Batch, Kill, Start, make_batch
from tests.reality.shrink import report

SEED = 3
SCRIPTS = 32

pytestmark = pytest.mark.cluster


async def play(local: LocalCluster, batch: Batch) -> None:
    """Play a batch; what a broker that was too slow has spoilt is played once more by itself."""
    async with RealCluster(local) as real:
        found = await run_batch(real, batch)
        again = tuple(one.script for one in found if one.disturbed)
        found = [one for one in found if not one.disturbed]
        if again:
            found += await run_batch(real, Batch(batch.seed, batch.weather, again, batch.with_elr))
        assert not found, await told(real, found)


async def told(real: RealCluster, found: list[Disagreement]) -> str:
    """Tell of the first disagreement at length."""
    return f"{len(found)} scripts disagree, the first: {await report(real, found[0])}"


async def test_scripts_under_which_two_brokers_die_and_return_agree(local_cluster: LocalCluster) -> None:
    batch = make_batch(SEED, SCRIPTS)
    assert sum(isinstance(event, Kill) for event in batch.weather) == 2
    assert sum(isinstance(event, Start) for event in batch.weather) == 2
    assert sum(len(script.operations) for script in batch.scripts) > SCRIPTS * 10
    await play(local_cluster, batch)
