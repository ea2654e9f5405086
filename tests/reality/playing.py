"""Plays batches on one cluster, and plays again what a slow machine has spoilt."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from drover.local import LocalCluster
from tests.reality.real import RealCluster
from tests.reality.recorder import Disagreement, run_batch
from tests.reality.scripts import Batch
from tests.reality.shrink import report


async def play(
    cluster: LocalCluster, batches: Sequence[Batch], say: Callable[[str], None], *, shrinks: bool = True
) -> tuple[list[Disagreement], int]:
    """Play batches of the same traits; return the disagreements, and how many scripts had to be played again.

    Tells of the first disagreement of a batch, made small, or (`shrinks` is off) of each as it is.
    """
    found: list[Disagreement] = []
    repeated = 0
    async with RealCluster(cluster) as real:
        if real.traits.with_elr and not batches[0].traits.with_elr:
            await real.switch_elr_off()
        for batch in batches:
            these = await run_batch(real, batch)
            spoilt = tuple(one.script for one in these if one.disturbed)
            these = [one for one in these if not one.disturbed]
            if spoilt:
                repeated += len(spoilt)
                these += await run_batch(real, replace(batch, scripts=spoilt))
            say(f"seed {batch.seed}: {len(batch.scripts)} scripts, {len(these)} disagree")
            if shrinks and these:
                say(await report(real, these[0]))
            for one in () if shrinks else these:
                say(str(one))
            found += these
    return found, repeated
