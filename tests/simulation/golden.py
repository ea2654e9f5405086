"""Logs that seeds of the soak wrote, kept for ever: `python -m tests.simulation.golden` adds those that are missing.

It never changes one that is there: a log that does not replay to its hash any more shows that the fold has changed what
old records mean, and the fold must be repaired, not the file.
"""

import sys
import zlib
from pathlib import Path
from random import Random

from msgspec import Struct, msgpack

from tests.simulation.actions import perform
from tests.simulation.generate import Generator
from tests.simulation.settings import drawn
from tests.simulation.world import World

FOLDER = Path(__file__).parent / "golden"
STEPS = 500


class GoldenShard(Struct, frozen=True):
    """One shard's records, and the hash of the state after the last one."""

    records: tuple[bytes, ...]
    state_hash: bytes


class GoldenLog(Struct, frozen=True):
    """What one seed wrote."""

    seed: int
    steps: int
    shards: tuple[GoldenShard, ...]


def read(path: Path) -> GoldenLog:
    """Read one golden log."""
    return msgpack.decode(zlib.decompress(path.read_bytes()), type=GoldenLog)


def made(seed: int) -> GoldenLog:
    """Run a seed and keep what it wrote."""
    random = Random(seed)
    settings = drawn(random)
    world, generator = World(settings), Generator(random, settings)
    with world.inside():
        for _ in range(STEPS):
            perform(world, generator.next(world))
        shards = tuple(
            GoldenShard(tuple(records), fold.state.hash())
            for records, fold in zip(world.log.shards, world.checker.folds, strict=True)
        )
    return GoldenLog(seed, STEPS, shards)


def main(seeds: list[str]) -> None:
    """Add the logs of these seeds, each under the name that the seed and the day's code give it."""
    for seed in seeds:
        log = msgpack.encode(made(int(seed)))
        path = FOLDER / f"seed-{seed}.msgpack.zlib"
        if not path.exists():
            path.write_bytes(zlib.compress(log, 9))
            print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
