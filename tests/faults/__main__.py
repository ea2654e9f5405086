"""Play scenarios from the command line: again with the seed of a failure, or new ones for hours.

usage: python -m tests.faults [storm|matrix] [--seed N] [--long] [--hours H] [--simulated-disk]
"""

import argparse
import asyncio
import itertools
import logging
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.play import Report, play
from tests.faults.scenarios import LONG, SCENARIOS, SHORT
from tests.faults.stage import breakable_cluster, command


async def _play_once(name: str, seed: int, *, long: bool, simulated_disk: bool) -> Report:
    """Play on a cluster of its own; what was written is kept if a fault is found."""
    directory = Path(tempfile.mkdtemp(prefix=f"drover-faults-{name}-{seed}-"))
    async with breakable_cluster(directory / "cluster", simulated_disk=simulated_disk) as (cluster, disk):
        (directory / "drover").mkdir()
        report = await play(SCENARIOS[name], LONG if long else SHORT, seed, cluster, disk, directory / "drover")
    print(report, flush=True)
    if report.faults:
        print(f"the workers' logs are in {directory}; play it again: {command(report, long=long)}", flush=True)
    else:
        shutil.rmtree(directory)
    return report


async def _play(arguments: argparse.Namespace) -> int:
    playing = asyncio.current_task()
    assert playing
    # Whoever ends a soak gets the cluster and the disk cleared away, as with Ctrl-C.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    names = [arguments.scenario] if arguments.scenario else list(SCENARIOS)
    until = time.monotonic() + arguments.hours * 3600
    for seed in itertools.count(arguments.seed):
        for name in names:
            report = await _play_once(name, seed, long=arguments.long, simulated_disk=arguments.simulated_disk)
            if report.faults:
                return 1
            if time.monotonic() >= until:
                return 0
    raise AssertionError("there is always another seed")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Real faults on a local cluster.")
    parser.add_argument("scenario", nargs="?", choices=sorted(SCENARIOS), help="default: all of them in turn")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; the next run takes the next one")
    parser.add_argument("--long", action="store_true", help="several rounds of everything, a minute without quorum")
    parser.add_argument("--hours", type=float, default=0.0, help="go on for so long; default: one run")
    parser.add_argument("--simulated-disk", action="store_true", help="mount nothing, even where it is allowed")
    # Its complaints about brokers that are down are what is wanted here, thousands of them.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    return asyncio.run(_play(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
