"""`python -m tests.hostile --hours 2 --first-seed 100`: plays seed after seed, and stops at the first that fails."""

import argparse
import asyncio
import resource
import time

import structlog

from tests.hostile.checks import check
from tests.hostile.play import Play
from tests.hostile.test_hostile import narrowed

ROUNDS = 150
MOST_MEMORY_MB = 1500


async def play(seed: int) -> float:
    """Play one seed; returns the longest time in which nothing else could run."""
    played = Play(seed, ROUNDS)
    try:
        await played.run()
        check(played)
    finally:
        await played.close()
    return played.watch.longest_s


def main() -> None:
    """Play seeds until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--first-seed", type=int, default=1000)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    until, seed = time.monotonic() + options.hours * 3600, options.first_seed
    while time.monotonic() < until:
        with narrowed(seed):
            longest_s = asyncio.run(play(seed))
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"seed {seed}: nothing to say, {longest_s:.2f} s at most, {memory_mb} MB", flush=True)
        assert memory_mb < MOST_MEMORY_MB, f"{memory_mb} MB"
        seed += 1


if __name__ == "__main__":
    main()
