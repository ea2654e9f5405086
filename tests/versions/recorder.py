"""`python -m tests.versions.recorder --kafka V`: the recorder's scripts on the model and on a version of Kafka."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from drover.local import local_cluster
from tests.cluster.support import traits_of_release
from tests.reality.playing import play
from tests.reality.scripts import make_batch

SCRIPTS = 104
SCRIPTS_PER_BATCH = 52
FIRST_SEED = 300


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of one version: how many scripts ran and disagreed, how many ran again, and the seconds it took."""

    scripts: int
    disagreements: int
    repeated: int
    seconds: float


async def play_on(
    kafka: str, *, zookeeper_mode: bool, scripts: int, say: Callable[[str], None], seed: int, without_elr: bool
) -> Played:
    """Play scripts on a cluster of this version that is started for them."""
    began = time.monotonic()
    traits = traits_of_release(kafka, zookeeper_mode=zookeeper_mode)
    if without_elr:
        traits = structs.replace(traits, with_elr=False)
    sizes = [min(SCRIPTS_PER_BATCH, scripts - first) for first in range(0, scripts, SCRIPTS_PER_BATCH)]
    batches = [make_batch(seed + number, size, traits) for number, size in enumerate(sizes)]
    with tempfile.TemporaryDirectory(prefix="drover-recorder-") as directory:
        controllers = 0 if zookeeper_mode else 1
        async with local_cluster(Path(directory), brokers=4, kafka=kafka, controllers=controllers) as cluster:
            found, repeated = await play(cluster, batches, say, shrinks=False)
    return Played(scripts, len(found), repeated, time.monotonic() - began)


def main() -> int:
    """Play and print the outcome; the exit code is 1 when a script disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.recorder", description=(__doc__ or "").strip())
    parser.add_argument("--kafka", required=True, help="the version of the cluster")
    parser.add_argument("--zookeeper-mode", action="store_true", help="with its metadata in ZooKeeper (Kafka 3)")
    parser.add_argument("--scripts", type=int, default=SCRIPTS)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--without-elr", action="store_true", help="with KIP-966 switched off")
    options = parser.parse_args()
    played = asyncio.run(
        play_on(
            options.kafka,
            zookeeper_mode=options.zookeeper_mode,
            scripts=options.scripts,
            seed=options.seed,
            without_elr=options.without_elr,
            say=lambda line: print(line, flush=True),
        )
    )
    print(
        f"Kafka {options.kafka}{' in ZooKeeper mode' if options.zookeeper_mode else ''}: {played.scripts} scripts,"
        f" {played.disagreements} disagree, {played.repeated} played again, {played.seconds:.0f} s"
    )
    return 1 if played.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
