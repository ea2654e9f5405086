"""`python -m tests.reality SEED SCRIPT`: play one script on the model and on a cluster started for it."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from drover.local import local_cluster
from tests.reality.real import RealCluster
from tests.reality.recorder import run_batch, tell
from tests.reality.scripts import ROUNDS, Batch, make_batch
from tests.reality.shrink import kept


def main() -> int:
    """Play the script; the exit code is 1 when both sides disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.reality", description="Play one recorder script.")
    parser.add_argument("seed", type=int)
    parser.add_argument("script", type=int)
    parser.add_argument("--rounds", help="only the operations of these rounds, as in 0,1,7 (all)")
    parser.add_argument("--without-elr", action="store_true", help="with KIP-966 switched off")
    options = parser.parse_args()
    batch = make_batch(options.seed, options.script + 1, with_elr=not options.without_elr)
    rounds = range(ROUNDS) if options.rounds is None else [int(place) for place in options.rounds.split(",")]
    return asyncio.run(_play(kept(batch, options.script, rounds)))


async def _play(batch: Batch) -> int:
    print("\n".join(tell(batch, batch.scripts[0], ROUNDS)))
    with tempfile.TemporaryDirectory(prefix="drover-reality-") as directory:
        async with local_cluster(Path(directory)) as cluster, RealCluster(cluster) as real:
            if not batch.with_elr:
                await real.switch_elr_off()
            found = await run_batch(real, batch)
    for disagreement in found:
        print(f"\n{disagreement}")
    print("they disagree" if found else "model and Kafka agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
