"""`python -m tests.reality SEED SCRIPT`: play one script on the model and on a cluster started for it."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from drover.jars import KAFKA_VERSION
from drover.local import local_cluster
from tests.cluster.support import traits_of_release
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
    parser.add_argument("--kafka", default=KAFKA_VERSION, help="the version of the cluster")
    parser.add_argument("--zookeeper-mode", action="store_true", help="with its metadata in ZooKeeper (Kafka 3)")
    options = parser.parse_args()
    traits = traits_of_release(options.kafka, zookeeper_mode=options.zookeeper_mode)
    if options.without_elr:
        traits = replace(traits, with_elr=False)
    batch = make_batch(options.seed, options.script + 1, traits)
    rounds = range(ROUNDS) if options.rounds is None else [int(place) for place in options.rounds.split(",")]
    controllers = 0 if options.zookeeper_mode else 1
    return asyncio.run(_play(kept(batch, options.script, rounds), options.kafka, controllers))


async def _play(batch: Batch, kafka: str, controllers: int) -> int:
    print("\n".join(tell(batch, batch.scripts[0], ROUNDS)))
    with tempfile.TemporaryDirectory(prefix="drover-reality-") as directory:
        async with (
            local_cluster(Path(directory), kafka=kafka, controllers=controllers) as cluster,
            RealCluster(cluster) as real,
        ):
            if real.traits.with_elr and not batch.traits.with_elr:
                await real.switch_elr_off()
            found = await run_batch(real, batch)
    for disagreement in found:
        print(f"\n{disagreement}")
    print("they disagree" if found else "model and Kafka agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
